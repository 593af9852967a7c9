#!/usr/bin/env bash
# What scripts/launch finds out before mpirun starts: slots, hosts, the program; and that it hands over to mpirun unspoilt.
# Hosts are played by a launch agent of the test's own.
#   launch_test.sh LAUNCH
set -euo pipefail
launch=$(realpath "$1")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
failed() { echo "FAILED: $*"; exit 1; }
passed() { echo "passed: $*"; }

# expect CODE TEXT COMMAND…: the command ends with this code within 30 s and says this.
expect() {
  local code=$1 text=$2 got=0
  shift 2
  timeout 30 "$@" >out 2>&1 || got=$?
  [[ $got -eq $code ]] || failed "$* ended with $got instead of $code: $(cat out)"
  grep -qF -- "$text" out || failed "$* does not say '$text': $(cat out)"
  passed "$code: $text"
}

# The agent: node1 and node2 are this machine, `silent` never answers, any other name is nobody's.
cat >agent <<'TEXT'
#!/usr/bin/env bash
case $1 in
  node1 | node2) shift; exec sh -c "$*" ;;
  silent) exec sleep 100 ;;
  *) echo "no route to $1"; exit 255 ;;
esac
TEXT
chmod +x agent
export OMPI_MCA_plm_rsh_agent=$folder/agent

expect 0 "hello" "$launch" -n 2 echo hello
[[ $(grep -c hello out) -eq 2 ]] || failed "two processes said: $(cat out)"
printf 'localhost slots = 3 # three here\n\n' >hosts
expect 0 "hello" "$launch" --hostfile hosts -n 3 echo hello
[[ $(grep -c hello out) -eq 3 ]] || failed "three processes said: $(cat out)"
expect 2 "has 3 slots (localhost 3), too few for 4 processes" "$launch" --hostfile hosts -n 4 echo hello
printf 'localhost\n%.0s' 1 2 3 >lines # once for each slot
expect 0 "hello" "$launch" --hostfile lines -n 3 echo hello
expect 2 "has 3 slots (localhost 3)" "$launch" --hostfile lines -n 4 echo hello
# An option of mpirun before -n is mpirun's, one behind the program is the program's.
expect 0 "one -n 9" "$launch" --hostfile hosts --tag-output -n 1 echo one -n 9
grep -qF "[1,0]<stdout>" out || failed "mpirun did not get --tag-output: $(cat out)"
expect 5 "" "$launch" -n 2 sh -c 'exit 5'

printf 'node1 slots=2\nnode2 slots=2\nnode9 slots=4\n' >hosts
expect 2 "8 slots (node1 2, node2 2, node9 4)" "$launch" --hostfile hosts -n 9 echo hello
expect 4 "the host 'node9' of 'hosts' cannot be reached (no route to node9)" "$launch" --hostfile hosts -n 8 echo hello
printf 'node1\nsilent\n' >hosts # without slots= only the hosts know
expect 4 "the host 'silent' of 'hosts' cannot be reached (no answer in 15 s)" "$launch" --hostfile hosts -n 800 echo hello
printf 'node1 slots=2\n' >hosts
expect 3 "the host 'node1' of 'hosts' has no program './nothing'" "$launch" --hostfile hosts -n 2 ./nothing
expect 3 "cannot be read" "$launch" --hostfile nowhere -n 2 echo hello
printf '# none\n' >hosts
expect 2 "names no host" "$launch" --hostfile hosts -n 2 echo hello
expect 2 "whole number" "$launch" -n two echo hello
expect 2 "which program" "$launch" -n 2
expect 2 "which program" "$launch" echo hello
