# For scripts that download, which source it.

# fetch COMMAND…: a command that takes the network, up to three times: what fails for a moment is there a little later. It prints nothing, unless
# all tries fail: then what the last one said.
fetch() {
  local said pause
  said=$(mktemp)
  for pause in 5 20 0; do
    if "$@" >"$said" 2>&1; then
      rm "$said"
      return
    fi
    if [ "$pause" != 0 ]; then
      printf 'note: `%s` failed, once more in %s seconds\n' "$*" "$pause" >&2
      sleep "$pause"
    fi
  done
  cat "$said" >&2
  rm "$said"
  return 1
}
