# Shared by the scripts of this folder: presets are built while something else runs. To be sourced after setup.sh.
# shellcheck shell=bash

beside_presets=() beside_pid=''

# build_beside PRESET…: begins to build them, one after the other, with what others leave of the processors. In a
# session of its own: Linux shares processors between sessions before it looks at what is idle or nice. What is said of
# each goes to build/PRESET.log; when it is done, its exit code to build/PRESET.code.
build_beside() {
  local humbly=(nice -n 19) preset
  ! command -v chrt >/dev/null || humbly=(chrt --idle 0)
  mkdir -p "$root/build"
  for preset in "$@"; do rm -f "$root/build/$preset.code"; done
  # shellcheck disable=SC2016  # the other bash expands it
  setsid "${humbly[@]}" bash -c 'echo 19 2>/dev/null >/proc/self/autogroup; source "$1"; shift
    for preset in "$@"; do
      code=0
      build "$preset" >"$root/build/$preset.log" 2>&1 || code=$?
      echo "$code" >"$root/build/$preset.code"
    done' build "$root/scripts/lib/setup.sh" "$@" &
  beside_presets=("$@") beside_pid=$!
}

# built_beside PRESET: whether build_beside has begun, or will.
built_beside() { [[ " ${beside_presets[*]} " == *" $1 "* ]]; }

# finish_building PRESET: waits for what build_beside builds, or builds it now.
finish_building() {
  local code=$root/build/$1.code
  if ! built_beside "$1"; then
    build "$1"
    return
  fi
  while [[ ! -s $code ]] && kill -0 "$beside_pid" 2>/dev/null; do sleep 1; done
  cat "$root/build/$1.log"
  [[ -s $code ]] && return "$(<"$code")"
}

# stop_building: what was begun and nobody has waited for.
stop_building() { [[ -z $beside_pid ]] || kill -- "-$beside_pid" 2>/dev/null || true; }
