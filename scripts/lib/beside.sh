# Shared by the scripts of this folder: a preset is built while something else runs. To be sourced after setup.sh.
# shellcheck shell=bash

beside_preset='' beside_pid=''

# build_beside PRESET: begins to build it with what others leave of the processors. In a session of its own: Linux
# shares processors between sessions before it looks at what is idle or nice. What is said goes to build/PRESET.log.
build_beside() {
  local humbly=(nice -n 19)
  ! command -v chrt >/dev/null || humbly=(chrt --idle 0)
  mkdir -p "$root/build"
  # shellcheck disable=SC2016  # the other bash expands it
  setsid "${humbly[@]}" bash -c 'echo 19 2>/dev/null >/proc/self/autogroup; source "$1"; build "$2"' \
    build "$root/scripts/lib/setup.sh" "$1" >"$root/build/$1.log" 2>&1 &
  beside_preset=$1 beside_pid=$!
}

# finish_building PRESET: waits for what build_beside began, or builds it now.
finish_building() {
  local code=0
  if [[ $beside_preset != "$1" ]]; then
    build "$1"
    return
  fi
  wait "$beside_pid" || code=$?
  beside_preset='' beside_pid=''
  cat "$root/build/$1.log"
  return "$code"
}

# stop_building: what was begun and nobody has waited for.
stop_building() { [[ -z $beside_pid ]] || kill -- "-$beside_pid" 2>/dev/null || true; }
