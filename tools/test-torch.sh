#!/usr/bin/env bash
# The tests with PyTorch, by Debian's CPU packages and the system's Python: the registry's wheel is many times as large. The
# packages (about 150 MB) are unpacked into .tools/torch, and Lightning into .tools/lightning; nothing is installed. Where Lightning cannot be had, that is
# said, and its test is skipped. Wants the wheel in target/wheels-dev (`make python-dev`).
set -euo pipefail
cd "$(dirname "$0")/.."

fail() { printf 'error: %s\nhint: %s\n' "$1" "$2" >&2; exit 1; }

root=$PWD/.tools/torch
# The last two are for Lightning.
packages='python3-torch python3-numpy python3-pytest python3-pil python3-yaml python3-setuptools'
if [ "$(cat "$root/complete" 2>/dev/null)" != "$packages" ]; then
  command -v apt-get >/dev/null || fail 'no apt-get to get PyTorch with' 'install PyTorch into .venv, and run make python-test'
  rm -rf "$root"
  mkdir -p "$root/packages"
  (
    cd "$root/packages"
    # shellcheck disable=SC2086
    wanted=$(apt-get install --simulate --no-install-recommends $packages | awk '/^Inst/ { print $2 }')
    # What is not in the list is on the system already.
    # shellcheck disable=SC2086
    apt-get download -o APT::Sandbox::User=root $wanted >/dev/null
    for package in *.deb; do dpkg -x "$package" "$root"; done
  ) || fail 'cannot get the packages of PyTorch' 'run sudo apt-get update, and try again'
  rm -rf "$root/packages"
  printf '%s\n' "$packages" >"$root/complete"
fi

# Lightning is no package of Debian's. The last versions that take a PyTorch of 2022, without their own one.
lightning=$PWD/.tools/lightning
wanted='lightning==2.2.5 lightning-utilities==0.11.9 torchmetrics==1.3.2 fsspec==2024.6.1 tqdm==4.66.6 packaging==24.1 typing_extensions==4.12.2'
if [ "$(cat "$lightning/complete" 2>/dev/null)" != "$wanted" ]; then
  rm -rf "$lightning"
  # shellcheck disable=SC2086
  if .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: --target "$lightning" $wanted; then
    printf '%s\n' "$wanted" >"$lightning/complete"
  else
    printf 'note: Lightning cannot be installed, so its test is skipped\n' >&2
  fi
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
export LD_LIBRARY_PATH PYTHONPATH=$site:$libraries/python3/dist-packages:$lightning
python=/usr/bin/python3
"$python" -c 'import torch; print("PyTorch", torch.__version__)' ||
  fail 'PyTorch cannot be imported' 'remove .tools/torch and try again, or install PyTorch into .venv'
# Debian's packages are old enough to warn of themselves.
"$python" -m pytest -p no:cacheprovider -W default python/tests/test_torch.py
# The marks of pytest-xdist, which is not there, are nothing to it.
"$python" -m pytest -p no:cacheprovider -W default -o addopts='-q -rs' python/tests/test_clusters.py -k 'torchrun or lightning'
