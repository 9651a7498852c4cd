#!/usr/bin/env bash
# Compiles everything with the oldest compiler that Cargo.toml promises (`rust-version`), and runs the tests of the published crates with it.
# What it compiles goes into target/msrv, so that other builds stay as they are.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/fetch.sh

fail() { printf 'error: %s\nhint: %s\n' "$1" "$2" >&2; exit 1; }

version=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
if ! cargo "+$version" --version >/dev/null 2>&1; then
  command -v rustup >/dev/null || fail "no rustup to install Rust $version with" 'install rustup (https://rustup.rs)'
  fetch rustup toolchain install "$version" --profile minimal ||
    fail "cannot install Rust $version" 'check the network, and that rustup may install toolchains'
fi
export CARGO_TARGET_DIR=$PWD/target/msrv
cargo "+$version" check --workspace
cargo "+$version" test -p forebay-l3 -p forebay-jpeg -p forebay-png
