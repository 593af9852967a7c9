#!/usr/bin/env bash
# What scripts/launch finds out before mpirun starts: slots, hosts, the program; and that it hands over to mpirun unspoilt.
# Hosts are played by a launch agent of the test's own.
#   launch_test.sh LAUNCH
set -euo pipefail
launch=$(realpath "$1")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
source_dir=$(dirname "$(dirname "$launch")")
cd "$folder"
unset OMPI_MCA_rmaps_base_oversubscribe OMPI_MCA_hwloc_base_use_hwthreads_as_cpus
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

# The agent: node1 and node2 are this machine with 3 cores of 2 threads, `silent` never answers, any other name is
# nobody's.
mkdir bin
cat >bin/lscpu <<'TEXT'
#!/bin/sh
echo '# comment'
case $1 in
  -p=core,socket) printf '0,0\n0,0\n1,0\n1,0\n0,1\n0,1\n' ;;
  -p=cpu) seq 0 5 ;;
esac
TEXT
cat >agent <<'TEXT'
#!/usr/bin/env bash
case $1 in
  node1 | node2) shift; echo "a word of welcome" >&2; PATH=$(dirname "$0")/bin:$PATH exec sh -c "$*" ;;
  silent) exec sleep 100 ;;
  *) echo "no route to $1"; exit 255 ;;
esac
TEXT
chmod +x agent bin/lscpu
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
# Open MPI's other ways to say it, and its own count: of cores, whatever OMP_NUM_THREADS makes of nproc.
printf 'localhost slots=2\nlocalhost\n' >both
expect 0 "hello" "$launch" --hostfile both -n 3 echo hello
expect 2 "has 3 slots (localhost 3)" "$launch" --hostfile both -n 4 echo hello
printf 'localhost max_slots=%d\n' 40 >most
expect 0 "hello" "$launch" --hostfile most -n 3 echo hello
expect 2 "has 40 slots (localhost 40)" "$launch" --hostfile most -n 41 echo hello
echo localhost >cores
cores=$(lscpu -p=core,socket | grep -v '^#' | sort -u | wc -l)
usable=$(env -u OMP_NUM_THREADS nproc) # fewer in a container that has not all of them
expect 0 "hello" "$launch" --hostfile cores -n $((usable < cores ? usable : cores)) echo hello
expect 2 "has $cores slots (localhost $cores)" env OMP_NUM_THREADS=1 \
  "$launch" --hostfile cores -n $((cores + 1)) echo hello
expect 1 "not enough slots" mpirun --allow-run-as-root --hostfile cores -n $((cores + 1)) echo hello
for hosts in hosts cores; do
  expect 0 "hello" "$launch" --hostfile $hosts --oversubscribe -n $((cores + 3)) echo hello
done
# An option of mpirun before -n is mpirun's, one behind the program is the program's.
expect 0 "one -n 9" "$launch" --hostfile hosts --tag-output -n 1 echo one -n 9
grep -qF "[1,0]<stdout>" out || failed "mpirun did not get --tag-output: $(cat out)"
expect 5 "" "$launch" -n 2 sh -c 'exit 5'

printf 'node1 slots=2\nnode2 slots=2\nnode9 slots=4\n' >hosts
expect 2 "8 slots (node1 2, node2 2, node9 4)" "$launch" --hostfile hosts -n 9 echo hello
expect 4 "the host 'node9' of 'hosts' cannot be reached (no route to node9)" "$launch" --hostfile hosts -n 8 echo hello
# Without slots= only the hosts know.
printf 'node1\nnode2\n' >hosts
expect 2 "has 6 slots (node1 3, node2 3), too few for 7 processes" "$launch" --hostfile hosts -n 7 echo hello
expect 2 "has 12 slots (node1 6, node2 6)" "$launch" --hostfile hosts --use-hwthread-cpus -n 13 echo hello
printf 'node1\nnode2 slots=2\n' >hosts
expect 2 "has 5 slots (node1 3, node2 2)" "$launch" --hostfile hosts -n 6 echo hello
printf 'node1\nsilent\n' >hosts
expect 4 "the host 'silent' of 'hosts' cannot be reached (no answer in 15 s)" "$launch" --hostfile hosts -n 800 echo hello
printf 'node1 slots=2\n' >hosts
expect 3 "the host 'node1' of 'hosts' has no program './nothing'" "$launch" --hostfile hosts -n 2 ./nothing
expect 3 "cannot be read" "$launch" --hostfile nowhere -n 2 echo hello
printf '# none\n' >hosts
expect 2 "names no host" "$launch" --hostfile hosts -n 2 echo hello
expect 2 "whole number" "$launch" -n two echo hello
expect 2 "which program" "$launch" -n 2
expect 2 "which program" "$launch" echo hello

# ---------------------------------------------------------------- what lies in configs/launch/
[[ $(awk '!/^#/' "$source_dir/configs/launch/hosts") == node* ]] || failed "configs/launch/hosts names no host"
expect 4 "the host 'node01' of '$source_dir/configs/launch/hosts' cannot be reached" \
  "$launch" --hostfile "$source_dir/configs/launch/hosts" -n 8 echo hello
for script in "$source_dir"/configs/launch/*.sh; do
  bash -n "$script" || failed "$script is no shell script"
  if command -v shellcheck >/dev/null; then shellcheck "$script" || failed "shellcheck of $script"; fi
  passed "$(basename "$script") reads as a shell script"
done
# The Slurm script, with an srun that says what it was given.
slurm=$source_dir/configs/launch/slurm.sh
cat >bin/srun <<'TEXT'
#!/usr/bin/env bash
echo "srun $*; network ${OMPI_MCA_btl_tcp_if_include:-any}, osc $OMPI_MCA_osc, threads $OMP_NUM_THREADS"
TEXT
chmod +x bin/srun
submit=(env -u FABRIC -u NETWORK PATH="$folder/bin:$PATH" HEARSAY="$folder/agent")
expect 2 "which configuration" "${submit[@]}" "$slurm"
expect 3 "no program at ./nothing" "${submit[@]}" HEARSAY=./nothing "$slurm" run.yaml
expect 2 "FABRIC=tcp needs NETWORK" "${submit[@]}" "$slurm" run.yaml
expect 2 "FABRIC is tcp or ucx, not 'roce'" "${submit[@]}" FABRIC=roce "$slurm" run.yaml
expect 0 "srun --mpi=pmix $folder/agent train run.yaml --seed 3; network 10.0.0.0/16, osc ^ucx, threads 1" \
  "${submit[@]}" NETWORK=10.0.0.0/16 "$slurm" run.yaml --seed 3
expect 0 "train run.yaml; network any, osc ucx" "${submit[@]}" FABRIC=ucx "$slurm" run.yaml
