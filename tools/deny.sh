#!/usr/bin/env bash
# Licenses, advisories and sources of everything that is linked, by cargo-deny and deny.toml. If cargo-deny is not installed, it is compiled
# into target/cargo-deny, which takes some minutes. The advisories come from a repository on GitHub.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/fetch.sh

fail() { printf 'error: %s\nhint: %s\n' "$1" "$2" >&2; exit 1; }

root=$PWD/target/cargo-deny
export PATH="$PATH:$root/bin"
if ! command -v cargo-deny >/dev/null; then
  printf 'note: compiling cargo-deny into target/cargo-deny\n' >&2
  fetch cargo install --quiet --locked --root "$root" cargo-deny ||
    fail 'cannot install cargo-deny' 'check the network and the package registry'
fi
cargo deny check bans licenses sources
cargo deny check advisories ||
  fail 'the check of advisories failed' 'update or replace the crates listed above; if the advisories could not be fetched, check the network'
