#!/usr/bin/env bash
# Runs every fuzz target for so many seconds: tools/fuzz.sh [SECONDS] [TARGET...]
# libFuzzer's coverage is switched on by plain compiler flags, so the stable toolchain does. Finds are kept in fuzz/artifacts.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-5}
shift || true
targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
  for file in fuzz/fuzz_targets/*.rs; do targets+=("$(basename "$file" .rs)"); done
fi

triple=$(rustc -vV | sed -n 's/^host: //p')
export RUSTFLAGS='-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing'
cargo build --release --quiet --manifest-path fuzz/Cargo.toml --target "$triple" --target-dir target/fuzz --bins

# Real files, broken ones among them, are the best seeds; where they are absent, fuzzing starts from nothing.
data=${FOREBAY_TEST_DATA:-../shared/data}
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
# Of tars there are none: those that the system's own program makes have all the ways in which names are kept.
for format in v7 ustar gnu pax; do
  tar --create --format="$format" --file="$made/$format.tar" pipelines 2>/dev/null || rm -f "$made/$format.tar"
done
seeds() {
  case $1 in
    arrays) echo "$data/golden $data/malformed/pngsuite $data/codec/pngsuite" ;;
    article) echo "$data/text-html/readability" ;;
    audio) echo "$data/malformed/flac-fuzz-seeds $data/malformed/flac-faulty $data/audio-mp3/conformance $data/malformed/mp3" ;;
    signal) echo "crates/codec/tests/golden $data/electrical/comtrade $data/electrical/lab-1hz" ;;
    tar) echo "$made" ;;
    tfrecord) echo "$data/golden" ;;
    tokeniser) echo crates/codec/tests/golden/tokenisers ;;
    image) echo "$data/malformed/pngsuite $data/malformed/go-fuzz-jpeg $data/malformed/go-fuzz-webp" ;;
    l3_decode) echo crates/l3/tests/golden ;;
    pipeline) echo pipelines ;;
  esac
}
for target in "${targets[@]}"; do
  mkdir -p "fuzz/corpus/$target" "fuzz/artifacts/$target"
  folders=("fuzz/corpus/$target")
  for folder in $(seeds "$target"); do [ -d "$folder" ] && folders+=("$folder"); done
  printf 'fuzz %s for %s s: ' "$target" "$seconds"
  log=$(mktemp)
  if "target/fuzz/$triple/release/$target" -max_total_time="$seconds" -max_len=65536 -rss_limit_mb=1024 -timeout=20 \
    -artifact_prefix="fuzz/artifacts/$target/" "${folders[@]}" >"$log" 2>&1; then
    sed -n 's/^Done \([0-9]*\) runs.*/\1 runs, nothing found/p' "$log"
  else
    echo; tail -n 40 "$log"; exit 1
  fi
  rm -f "$log"
done
