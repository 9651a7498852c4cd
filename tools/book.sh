#!/usr/bin/env bash
# The documentation site, in target/book. mdBook is compiled into the checkout once, without what serves and watches.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/fetch.sh

version=0.5.4
if [[ "$(.tools/bin/mdbook --version 2>/dev/null)" != "mdbook v$version" ]]; then
    CARGO_PROFILE_DEV_DEBUG=0 fetch cargo install --quiet --debug --locked --root .tools --target-dir target/mdbook --no-default-features --features search --version "$version" mdbook
fi
.tools/bin/mdbook build
