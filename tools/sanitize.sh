#!/usr/bin/env bash
# Runs tests under tools that find memory errors and races: AddressSanitizer on the crates with `unsafe`, ThreadSanitizer on the
# loader and the build, valgrind on the kernels.
#
#   tools/sanitize.sh [address] [thread] [valgrind]        all three unless told otherwise
#
# The sanitizers are unstable flags, which RUSTC_BOOTSTRAP lets pass; each has a build folder of its own. For AddressSanitizer the standard
# library is not instrumented: its own memory accesses are not checked.
set -euo pipefail
cd "$(dirname "$0")/.."

triple=$(rustc -vV | sed -n 's/^host: //p')
unsafe=(-p forebay-allocator -p forebay-jpeg -p forebay-l3 -p forebay-png -p forebay-codec -p forebay-pipeline)

sanitized() { # KIND, then cargo's arguments
    local kind=$1
    shift
    RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=$kind -Cunsafe-allow-abi-mismatch=sanitizer" \
        cargo test --quiet --target "$triple" --target-dir "target/sanitize-$kind" "$@"
}

address() {
    # An allocation that is refused is an answer; tests ask for more than there is.
    ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=1 sanitized address "${unsafe[@]}" --lib --tests
}

thread() {
    # Locks of a standard library that is not instrumented would look like none: it is built as well, from its source.
    [[ -d "$(rustc --print sysroot)/lib/rustlib/src/rust" ]] || rustup component add rust-src
    # Tests whose time is measured fail where everything takes ten times as long.
    TSAN_OPTIONS="halt_on_error=1:second_deadlock_stack=1" sanitized thread -Zbuild-std -p forebay-engine --test it -- \
        --skip stats:: --skip profiling::without_runs --skip profiling::caches_are_faster
}

valgrind_on() { # the tests of a crate
    local binary
    binary=$(cargo test --quiet -p "$1" --lib --no-run --message-format=json |
        sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | tail -n 1)
    valgrind --quiet --error-exitcode=9 --leak-check=no "$binary" --test-threads=1
}

for tool in "${@:-address thread valgrind}"; do
    for one in $tool; do
        echo "== $one"
        case $one in
        address) address ;;
        thread) thread ;;
        valgrind) for crate in forebay-allocator forebay-jpeg forebay-l3 forebay-png; do valgrind_on "$crate"; done ;;
        *) echo "no tool \`$one\`: address, thread, valgrind" >&2 && exit 2 ;;
        esac
    done
done
