#!/usr/bin/env bash
# What is skipped is said, with its reason: by the tests of several hosts where they are not permitted, and by
# scripts/test at its end; what does not build, too.
#   skipped_test.sh SOURCE_DIR CTEST
set -euo pipefail
source_dir=$(realpath "$1") ctest=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed() { echo "FAILED: $*"; exit 1; }
passed() { echo "passed: $*"; }

# skips REASON COMMAND…: the command ends with 77, has said why, and has left nothing in its folder for temporary files.
skips() {
  local reason=$1 code=0
  shift
  mkdir -m 777 "$folder/tmp"
  TMPDIR=$folder/tmp timeout 30 "$@" >"$folder/out" 2>&1 </dev/null || code=$?
  [[ $code -eq 77 ]] || failed "$* ended with $code instead of 77: $(cat "$folder/out")"
  grep -qE "^skipped: .*$reason" "$folder/out" || failed "$* does not say '$reason': $(cat "$folder/out")"
  rmdir "$folder/tmp" || failed "$* leaves $(ls "$folder/tmp")"
}

# The scripts in a tree of their own: everybody may read it (this one perhaps lies in a home), and nothing is there to
# be built.
mkdir "$folder/bin" "$folder/tests"
cp -r "$source_dir/scripts" "$folder/scripts"
cp -r "$source_dir/tests/testbed" "$folder/tests/testbed"
chmod -R a+rX "$folder"

# ---------------------------------------------------------------- no permission for a testbed
nobody=() powerless=()
if [[ $EUID -eq 0 ]]; then
  nobody=(setpriv --reuid=65534 --clear-groups)
  lost='-net_admin,-sys_admin'
  powerless=(setpriv --bounding-set="$lost" --inh-caps="$lost")
  "${powerless[@]}" true 2>/dev/null || powerless=() # a container may be root without the right to give rights up
fi
tests=("$folder"/tests/testbed/*_test.sh)
[[ ${#tests[@]} -ge 3 ]] || failed "where are the tests of the testbed?"
for test in "${tests[@]}"; do
  arguments=("$folder/scripts/testbed" pt2pt program)
  skips "(network namespaces need root|ip or tc is missing)" "${nobody[@]}" "$test" "${arguments[@]}"
  [[ ${#powerless[@]} -eq 0 ]] ||
    skips "does not permit network namespaces.*: ." "${powerless[@]}" "$test" "${arguments[@]}"
  passed "$(basename "$test") is skipped without permission, and says why"
done

# ---------------------------------------------------------------- scripts/test
# Its CMake builds nothing, of some presets in vain, and CTest finds tests of this test's own.
cat >"$folder/bin/cmake" <<'TEXT'
#!/bin/sh
case " ${CANNOT_BUILD:-none} $* " in *" $3 "*" $3 "*) exit 1 ;; esac
TEXT
cat >"$folder/bin/ctest" <<TEXT
#!/usr/bin/env bash
shift 2 # --preset NAME
cd "$folder/tests" && mkdir -p ../build/{ci,asan,tsan,simulator-core,mpich-core} && exec "$ctest" "\$@"
TEXT
chmod +x "$folder"/bin/*

# suite CODE NAME COMMAND [NAME COMMAND]…: what scripts/test says of tests that are these shell lines, to the file out.
presets=(--fast)
suite() {
  local code=$1 got=0
  shift
  : >"$folder/tests/CTestTestfile.cmake"
  while [[ $# -gt 0 ]]; do
    printf 'add_test(%s sh -c [[%s]])\nset_tests_properties(%s PROPERTIES SKIP_RETURN_CODE 77)\n' "$1" "$2" "$1" \
      >>"$folder/tests/CTestTestfile.cmake"
    shift 2
  done
  PATH=$folder/bin:$PATH timeout 60 "$folder/scripts/test" ${presets[@]+"${presets[@]}"} --no-install \
    >"$folder/out" 2>&1 || got=$?
  [[ $got -eq $code ]] || failed "scripts/test ended with $got instead of $code: $(cat "$folder/out")"
}
# ends LINE…: these are the last lines.
ends() {
  diff <(printf '%s\n' "$@") <(tail -n $# "$folder/out") || failed "scripts/test ends with other lines"
}

suite 0 hosts 'echo up; echo "skipped: \"ip\" & <tc> are missing"; exit 77' \
  quiet 'exit 77' \
  data 'echo "x_test.cpp:19: MESSAGE: not checked: no folder"; echo "MESSAGE: skipped nothing"' \
  whole 'echo "nothing was skipped: all passed"'
ends 'skipped: ci, hosts: "ip" & <tc> are missing' 'skipped: ci, quiet: SKIP_RETURN_CODE=77' \
  'skipped: ci, data, in part: no folder' '2 passed, 0 failed, 2 skipped'
passed "scripts/test names what was skipped, with the reason"
suite 1 good 'exit 0' bad 'echo "skipped: not at all"; exit 3'
ends 'skipped: ci, bad, in part: not at all' 'FAILED: tests of ci' '1 passed, 1 failed, 0 skipped'
suite 1 all 'echo "skipped: everything"; exit 77'
ends 'skipped: ci, all: everything' '0 passed, 0 failed, 1 skipped'
suite 0 good 'exit 0'
ends '' '1 passed, 0 failed, 0 skipped'
passed "a failure, and a suite of which nothing was run, end it with 1"

suite 0 good 'exit 0' odd 'test -e second || { touch second; exit 1; }'
ends 'UNSTEADY: ci, odd failed beside others and passed alone' '2 passed, 0 failed, 0 skipped'
rm "$folder/tests/second"
suite 1 bad 'exit 1' odd 'test -e second || { touch second; exit 1; }'
ends 'FAILED: tests of ci' '0 passed, 2 failed, 0 skipped'
suite 1 good 'exit 0' a 'test -e a || { touch a; exit 1; }' b 'test -e b || { touch b; exit 1; }' \
  c 'test -e c || { touch c; exit 1; }' d 'test -e d || { touch d; exit 1; }'
ends 'FAILED: tests of ci' '1 passed, 4 failed, 0 skipped'
passed "a few tests that fail beside others are run again, and named where they pass alone"

presets=()
CANNOT_BUILD=asan suite 1 good 'exit 0'
grep -q '^FAILED: asan does not build$' "$folder/out" || failed "what does not build is not said: $(cat "$folder/out")"
grep -q '^==> Testing tsan$' "$folder/out" || failed "what comes after it is not tested: $(cat "$folder/out")"
passed "what is built beside the tests of another preset and fails is told, and the next one tested"
