#!/usr/bin/env bash
# The tests with PyTorch, by Debian's CPU packages and the system's Python: the registry's wheel is many times as large. The
# packages (about 150 MB) are unpacked into .tools/torch; nothing is installed. Wants the wheel in target/wheels-dev (`make python-dev`).
set -euo pipefail
cd "$(dirname "$0")/.."

fail() { printf 'error: %s\nhint: %s\n' "$1" "$2" >&2; exit 1; }

root=$PWD/.tools/torch
if [ ! -e "$root/complete" ]; then
  command -v apt-get >/dev/null || fail 'no apt-get to get PyTorch with' 'install PyTorch into .venv, and run make python-test'
  rm -rf "$root"
  mkdir -p "$root/packages"
  (
    cd "$root/packages"
    wanted=$(apt-get install --simulate --no-install-recommends python3-torch python3-numpy python3-pytest python3-pil |
      awk '/^Inst/ { print $2 }')
    # What is not in the list is on the system already.
    # shellcheck disable=SC2086
    apt-get download -o APT::Sandbox::User=root $wanted >/dev/null
    for package in *.deb; do dpkg -x "$package" "$root"; done
  ) || fail 'cannot get the packages of PyTorch' 'run sudo apt-get update, and try again'
  rm -rf "$root/packages"
  touch "$root/complete"
fi

site=$root/site
rm -rf "$site"
.venv/bin/python -m zipfile --extract target/wheels-dev/*.whl "$site"

libraries=$root/usr/lib
machine=$(uname -m)-linux-gnu
for folder in "$root/lib/$machine" "$libraries" "$libraries/$machine" "$libraries/$machine/openblas-pthread" \
  "$libraries/$machine/blas" "$libraries/$machine/lapack"; do
  LD_LIBRARY_PATH=$folder:${LD_LIBRARY_PATH:-}
done
export LD_LIBRARY_PATH PYTHONPATH=$site:$libraries/python3/dist-packages
python=/usr/bin/python3
"$python" -c 'import torch; print("PyTorch", torch.__version__)' ||
  fail 'PyTorch cannot be imported' 'remove .tools/torch and try again, or install PyTorch into .venv'
# Debian's packages are old enough to warn of themselves.
"$python" -m pytest -p no:cacheprovider -W default python/tests/test_torch.py
