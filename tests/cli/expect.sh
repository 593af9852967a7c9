# The program as its users meet it: exit codes, messages, files. To be sourced with HEARSAY SOURCE_DIR; then in a folder
# of its own. MPIEXEC (default mpirun) starts the few jobs of more than one rank; MPIEXEC_ARGS go to it.
# shellcheck shell=bash
set -u
export LC_ALL=C.UTF-8 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_hwloc_base_binding_policy=none
# The same for Open MPI 5.
export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe PRTE_MCA_hwloc_default_binding_policy=none
hearsay=$(realpath "$1")
source_dir=$(realpath "$2")
mpiexec=${MPIEXEC:-mpirun}
read -r -a mpiexec_args <<<"${MPIEXEC_ARGS:-}"
work=$(mktemp -d "${TMPDIR:-/tmp}/hearsay-cli-XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

checks=0
failures=0
fail() {
  failures=$((failures + 1))
  printf 'FAILED: %s\n' "$1"
  sed 's/^/    | /' output | head -n 25
}

# expect CODE DESCRIPTION PATTERN… -- COMMAND…: runs the command; its exit code must be CODE, and each extended regular
# expression must match a line of what it writes to stdout or stderr; one that begins with ! must not.
expect() {
  local code=$1 description=$2 pattern actual
  local -a patterns=()
  shift 2
  while [ "$1" != -- ]; do
    patterns+=("$1")
    shift
  done
  shift
  checks=$((checks + 1))
  timeout --kill-after=5 120 "$@" >stdout 2>stderr </dev/null
  actual=$?
  cat stdout stderr >output
  if [ "$actual" != "$code" ]; then
    fail "$description: exit code $actual, expected $code"
    return
  fi
  for pattern in "${patterns[@]}"; do
    if [ "${pattern#!}" != "$pattern" ]; then
      if grep -qE -- "${pattern#!}" output; then fail "$description: '${pattern#!}' must not be there"; fi
    elif ! grep -qE -- "$pattern" output; then
      fail "$description: nothing matches '$pattern'"
    fi
  done
}

# value FILE KEY: of summary.json.
value() { python3 -c "import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])" "$1" "$2"; }

# holds DESCRIPTION COMMAND…: the command must succeed.
holds() {
  local description=$1
  shift
  checks=$((checks + 1))
  "$@" >output 2>&1 || fail "$description"
}

two_ranks=("$mpiexec" "${mpiexec_args[@]}" -n 2)
