#!/usr/bin/env bash
# The tests with TensorFlow: it reads the shards that are written here, and what it writes is read here. `make test` skips them where there is no
# TensorFlow: it takes 300 MB to download and some GB on disk. Here it goes into an environment of its own, target/tensorflow, since it asks for
# versions of NumPy and protobuf that the other tests must not get.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/fetch.sh

fail() { printf 'error: %s\nhint: %s\n' "$1" "$2" >&2; exit 1; }

environment=$PWD/target/tensorflow
packages='tensorflow-cpu>=2.16,<3'
if [ "$(cat "$environment/forebay-packages" 2>/dev/null)" != "$packages" ]; then
  rm -rf "$environment"
  .venv/bin/python -m venv "$environment" || fail 'cannot make a Python environment' 'run make setup first'
  fetch "$environment/bin/pip" install --quiet --disable-pip-version-check "$packages" ||
    fail 'cannot install TensorFlow' 'check the network and the package registry, and that there is TensorFlow for this version of Python'
  printf '%s\n' "$packages" >"$environment/forebay-packages"
fi

# Its messages are of graphics cards that nobody asked for.
export TF_CPP_MIN_LOG_LEVEL=3 CUDA_VISIBLE_DEVICES=
FOREBAY_TENSORFLOW=$environment/bin/python
export FOREBAY_TENSORFLOW
"$FOREBAY_TENSORFLOW" -c 'import tensorflow; print("TensorFlow", tensorflow.__version__)' ||
  fail 'TensorFlow cannot be imported' 'remove target/tensorflow and try again'
cargo test -p forebay-record --test it -- interop
