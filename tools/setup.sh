#!/usr/bin/env bash
# Puts what the build needs beyond Rust, a C compiler and Python into the checkout: a Python environment (.venv), and cmake
# and nasm (.tools/bin), which libjpeg-turbo is built with. What the machine has is used; nothing outside is changed.
#
# tools/setup.sh [build]: for everything, or only to build the program, which takes seconds.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/fetch.sh

fail() { printf 'error: %s\nhint: %s\n' "$1" "$2" >&2; exit 1; }

command -v cargo >/dev/null || fail 'no cargo' 'install the Rust toolchain (rustup)'
command -v cc >/dev/null || fail 'no C compiler' 'install one, for instance: sudo apt-get install -y gcc'
python=$(command -v python3.11 || command -v python3) || fail 'no Python' 'install one, for instance: sudo apt-get install -y python3'
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || fail "$python is older than Python 3.11" 'install Python 3.11 or later'

if [ ! -x .venv/bin/python ]; then
  "$python" -m venv .venv || fail 'cannot make a Python environment' 'sudo apt-get install -y python3-venv'
fi
install() {
  fetch .venv/bin/python -m pip install --quiet --disable-pip-version-check "$@" ||
    fail 'cannot install the Python packages of the build' 'check the network and the package registry'
}
cmake='cmake>=3.28'
# Pillow and NumPy judge the decoders in the tests, WebDataset the tars, pyarrow the Parquet files, ml_dtypes has bfloat16; the rest builds the Python package and tests it, on several cores.
packages="$cmake pillow>=11 numpy>=2 maturin>=1.9,<2 pytest>=8 pytest-xdist>=3.6 mypy>=1.15 pandas>=2 matplotlib>=3.8 webdataset>=1 ml_dtypes>=0.4 pyarrow>=17 typos>=1.40 ruff>=0.14"
if [ "${1:-}" = build ]; then
  command -v cmake >/dev/null || [ -x .venv/bin/cmake ] || install "$cmake"
elif [ "$(cat .venv/forebay-tools 2>/dev/null)" != "$packages" ]; then
  read -ra wanted <<<"$packages"
  install "${wanted[@]}"
  printf '%s\n' "$packages" >.venv/forebay-tools
fi

mkdir -p .tools/bin
if [ ! -x .tools/bin/cmake ]; then
  ln -sf "$(command -v cmake || echo ../../.venv/bin/cmake)" .tools/bin/cmake
fi
if [ "$(uname -m)" = x86_64 ] && [ ! -x .tools/bin/nasm ]; then
  if command -v nasm >/dev/null; then
    ln -sf "$(command -v nasm)" .tools/bin/nasm
  else
    # Debian's package, unpacked here instead of installed: that needs no rights, and changes nothing outside.
    unpack=$(mktemp -d)
    download_nasm() (cd "$unpack" && { apt-get download nasm || { apt-get update && apt-get download nasm; }; })
    { command -v apt-get >/dev/null && fetch download_nasm && dpkg -x "$unpack"/nasm_*.deb "$unpack"; } ||
      fail 'no nasm, which the fast JPEG decoder is assembled with' 'sudo apt-get install -y nasm'
    cp "$unpack/usr/bin/nasm" .tools/bin/nasm
    rm -rf "$unpack"
  fi
fi
