#!/usr/bin/env bash
# What is written for 64-bit ARM, on a machine that is none: compiled by Rust's target and Debian's cross compiler, run by qemu.
#   tools/arm.sh test            lints and tests of the crates with kernels
#   tools/arm.sh count PNG…      instructions of decoding images: the png crate, L3 without and with NEON
# Where something is missing it says so and ends without an error; `FOREBAY_ARM=required` makes that one.
set -euo pipefail
cd "$(dirname "$0")/.."

target=aarch64-unknown-linux-gnu
packages='qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross'

skip() {
  printf 'skipped: %s\nhint: %s\n' "$1" "$2" >&2
  if [ "${FOREBAY_ARM:-}" = required ]; then exit 1; fi
  exit 0
}

command -v qemu-aarch64 >/dev/null || skip 'no qemu-aarch64 to run programs with' "sudo apt-get install $packages"
command -v aarch64-linux-gnu-gcc >/dev/null || skip 'no aarch64-linux-gnu-gcc to compile C and link with' "sudo apt-get install $packages"
rustup target add "$target" >/dev/null 2>&1 || skip "no standard library for $target" "rustup target add $target, with a network"

export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER='qemu-aarch64 -L /usr/aarch64-linux-gnu'
out=${CARGO_TARGET_DIR:-target}

# Tests of forebay-jpeg compare with libjpeg-turbo, whose build wants cmake (`make setup` brings it).
run_tests() {
  local crates=(-p forebay-l3 -p forebay-png)
  cargo clippy --target "$target" "${crates[@]}" --all-targets --quiet -- -D warnings
  cargo clippy --target "$target" -p forebay-jpeg -p forebay-resize --quiet -- -D warnings
  # Emulation is slow; what is tested is optimized, and still checks for overflow.
  cargo --config profile.dev.package.forebay-l3.opt-level=3 --config profile.dev.package.forebay-png.opt-level=3 \
    test --target "$target" "${crates[@]}" --quiet
  if [ -x "${CMAKE:-.tools/bin/cmake}" ]; then
    cargo test --target "$target" -p forebay-jpeg --quiet
  else
    skip 'the tests of forebay-jpeg: no cmake to build libjpeg-turbo with' 'make setup'
  fi
}

# instructions ROUNDS LINE: what the program executes to decode that many times.
instructions() {
  qemu-aarch64 -L /usr/aarch64-linux-gnu -plugin "$out/instructions.so" "$out/$target/release/examples/rates" "${pictures[@]}" \
    --rounds "$1" --only "$2" 2>&1 >/dev/null | awk '$1 == "instructions" { print $2 }'
}

# Reading, encoding and checking are in both counts, so that the difference is decoding alone.
count() {
  local line before after png=
  [ $# -gt 0 ] || { printf 'error: no image was given\nhint: tools/arm.sh count FILE.png…\n' >&2; exit 1; }
  pictures=("$@")
  cargo build --release --target "$target" -p forebay-l3 --example rates --quiet
  "${CC:-cc}" -O2 -shared -fPIC -o "$out/instructions.so" tools/arm/instructions.c
  printf '%-14s %14s %8s\n' '' instructions '× png'
  for line in png fast,scalar fast,neon dense,scalar dense,neon; do
    before=$(instructions 1 "$line")
    after=$(instructions 2 "$line")
    png=${png:-$((after - before))}
    awk -v line="$line" -v count="$((after - before))" -v png="$png" 'BEGIN { printf "%-14s %14d %8.2f\n", line, count, png / count }'
  done
}

case ${1:-} in
  test) run_tests ;;
  count) shift; count "$@" ;;
  *) printf 'error: neither test nor count\nhint: tools/arm.sh test, or tools/arm.sh count FILE.png…\n' >&2; exit 1 ;;
esac
