# For tests on several hosts: a testbed of their own that is gone when they end. To be sourced with TESTBED set.
# shellcheck shell=bash

export HEARSAY_TESTBED=99 # a user's own testbed, number 0, is left alone
skipped=77                # CTest's word for it: SKIP_RETURN_CODE

skip() { echo "skipped: $*"; exit $skipped; }
failed() { echo "FAILED: $*"; exit 1; }
passed() { echo "passed: $*"; }

folder=$(mktemp -d)
reason=$("$TESTBED" check 2>&1) || { rm -rf "$folder"; skip "$reason"; }
trap '"$TESTBED" down; rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM
"$TESTBED" down

# refused CODE TEXT COMMAND…: the command ends with this code and says this.
refused() {
  local code=$1 text=$2 got=0
  shift 2
  timeout 60 "$@" >"$folder/out" 2>&1 || got=$?
  [[ $got -eq $code ]] || failed "$* ended with $got instead of $code: $(cat "$folder/out")"
  grep -q -- "$text" "$folder/out" || failed "$* does not say '$text': $(cat "$folder/out")"
  passed "$* is refused with $code: $text"
}
