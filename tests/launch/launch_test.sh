#!/usr/bin/env bash
# What scripts/launch finds out before mpirun starts: slots, hosts, the program; and that it hands over to mpirun
# unspoilt. Hosts are played by a launch agent of the test's own.
#   launch_test.sh LAUNCH
set -euo pipefail
launch=$(realpath "$1")
folder=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || :; rm -rf "$folder"' EXIT
source_dir=$(dirname "$(dirname "$launch")")
cd "$folder"
unset OMPI_MCA_rmaps_base_oversubscribe OMPI_MCA_hwloc_base_use_hwthreads_as_cpus OMPI_MCA_btl_tcp_if_include
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

# until_said WORD: it is in the file out within 10 s.
until_said() {
  local tries
  for ((tries = 0; tries < 100; ++tries)); do ! grep -qF "$1" out || return 0; sleep 0.1; done
  failed "never said '$1': $(cat out)"
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
printf '\xef\xbb\xbflocalhost slots=3\n' >marked
printf 'localhost slots=3\r\n' >windows
for hosts in marked windows; do
  expect 3 "'$hosts' has a byte order mark or line ends of Windows" "$launch" --hostfile $hosts -n 3 echo hello
  bash -c "$(sed -n 's/.*\(sed -i.*\)/\1/p' out)"
  expect 0 "hello" "$launch" --hostfile $hosts -n 3 echo hello
done
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
# An option of mpirun before -n is mpirun's, one after the program is the program's.
expect 0 "one -n 9" "$launch" --hostfile hosts --tag-output -n 1 echo one -n 9
grep -qF "[1,0]<stdout>" out || failed "mpirun did not get --tag-output: $(cat out)"
expect 5 "" "$launch" -n 2 sh -c 'exit 5'

printf 'node1 slots=2\nnode2 slots=2\nnode9 slots=4\n' >hosts
expect 2 "8 slots (node1 2, node2 2, node9 4)" "$launch" --hostfile hosts -n 9 echo hello
expect 4 "the host 'node9' of the host file 'hosts' cannot be reached (no route to node9)" "$launch" --hostfile hosts \
  -n 8 echo hello
# Without slots= only the hosts know.
printf 'node1\nnode2\n' >hosts
expect 2 "has 6 slots (node1 3, node2 3), too few for 7 processes" "$launch" --hostfile hosts -n 7 echo hello
expect 2 "has 12 slots (node1 6, node2 6)" "$launch" --hostfile hosts --use-hwthread-cpus -n 13 echo hello
printf 'node1\nnode2 slots=2\n' >hosts
expect 2 "has 5 slots (node1 3, node2 2)" "$launch" --hostfile hosts -n 6 echo hello
printf 'node1\nsilent\n' >hosts
expect 4 "the host 'silent' of the host file 'hosts' cannot be reached (no answer in 15 s)" "$launch" --hostfile hosts \
  -n 800 echo hello
printf 'node1 slots=2\n' >hosts
expect 3 "the host 'node1' of the host file 'hosts' has no program './nothing'" "$launch" --hostfile hosts -n 2 \
  ./nothing
expect 3 "cannot be read" "$launch" --hostfile nowhere -n 2 echo hello
printf '# none\n' >hosts
expect 2 "names no host" "$launch" --hostfile hosts -n 2 echo hello
# What stands there comes before a command on ssh's command line: it is a name, and no option of ssh.
for name in -oProxyCommand=touch '-F/tmp/x' '$(touch pwned)' ';touch' 'me@-x' '../node1'; do
  printf 'node1 slots=2\n  %s' "$name" >hosts # no line end
  expect 2 "the host file 'hosts': '${name%% *}' is no name of a host" "$launch" --hostfile hosts -n 2 echo hello
  expect 2 "is none of NAME, NAME:SLOTS and NAME:*" "$launch" --host "node1:2,$name" -n 2 echo hello
done
[[ ! -e pwned ]] || failed "a host's name was a command"
printf 'me@node9 slots=2 # a login of its own\n#node8\n' >hosts
expect 4 "the host 'me@node9' of the host file 'hosts' cannot be reached" "$launch" --hostfile hosts -n 2 echo hello
expect 2 "whole number" "$launch" -n two echo hello
expect 2 "which program" "$launch" -n 2
expect 2 "which program" "$launch" echo hello
expect 2 "'--tag-output' stands where the program should" "$launch" -n 2 --tag-output echo hello

# ---------------------------------------------------------------- --host: the same of a list
expect 0 "hello" "$launch" --host localhost:2,localhost -n 3 echo hello
[[ $(grep -c hello out) -eq 3 ]] || failed "three processes said: $(cat out)"
expect 2 "--host localhost:2,localhost has 3 slots (localhost 3), too few for 4" \
  "$launch" --host localhost:2,localhost -n 4 echo hello
expect 1 "not enough slots" mpirun --allow-run-as-root --host localhost:2,localhost -n 4 echo hello # as mpirun counts
expect 0 "hello" "$launch" -H localhost -H localhost -n 2 echo hello
expect 0 "hello" "$launch" --host localhost --oversubscribe -n 3 echo hello
expect 2 "--host node1:2,node2 has 3 slots (node1 2, node2 1)" "$launch" -host node1:2,node2 -n 4 echo hello
expect 2 "has 8 slots (node1 3, node2 5)" "$launch" --host 'node1:*,node2:5' -n 9 echo hello
expect 2 "has 3 slots (node1 3)" "$launch" --host node1:auto,node1:2 -n 4 echo hello
expect 4 "the host 'node9' of --host node1,node9 cannot be reached" "$launch" --host node1,node9 -n 2 echo hello
expect 3 "the host 'node1' of --host node1 has no program './nothing'" "$launch" --host node1 -n 1 ./nothing
for wrong in node1:x node1:0 node1: :3 +n0 node1,,node2 'node1 slots=2'; do
  expect 2 "is none of NAME, NAME:SLOTS and NAME:*" "$launch" --host "$wrong" -n 1 echo hello
done
expect 2 "not both" "$launch" --host node1 --hostfile hosts -n 1 echo hello

# ---------------------------------------------------------------- limits of this shell
expect 3 "may open 40 files, 2 processes take up to 84" bash -c 'ulimit -n 40; exec "$@"' _ "$launch" -n 2 echo hello
expect 0 "hello" bash -c 'ulimit -Sn 40; exec "$@"' _ "$launch" -n 2 echo hello
expect 3 "is not there or cannot be written; set TMPDIR" env TMPDIR="$folder/nowhere" "$launch" -n 2 echo hello

# ---------------------------------------------------------------- which program
expect 3 "there is no program './nothing'" "$launch" -n 2 ./nothing
expect 3 "no program 'nothing-of-this-name' on the PATH or in build/release/apps; build it" \
  "$launch" -n 2 nothing-of-this-name
# A copy of the scripts, with a program where a build would put it.
mkdir -p copy/build/release/apps
cp -r "$source_dir/scripts" copy
printf '#!/bin/sh\necho "built $*"\n' >copy/build/release/apps/hearsay
chmod +x copy/build/release/apps/hearsay
expect 0 "built train x" env PATH=/usr/bin:/bin copy/scripts/launch -n 2 hearsay train x
expect 2 "has 1 slots" env PATH=/usr/bin:/bin copy/scripts/launch --host localhost -n 2 hearsay train x
mkdir first hearsay # a folder of that name is no program
printf '#!/bin/sh\necho "from the PATH"\n' >first/hearsay
chmod +x first/hearsay
expect 0 "from the PATH" env PATH="$folder/first:/usr/bin:/bin" copy/scripts/launch -n 1 hearsay

# ---------------------------------------------------------------- whose words are shown
# says CODE TEXT COMMAND…: what two processes of COMMAND say on stderr is TEXT, to the letter.
says() {
  local code=$1 text=$2 got=0
  shift 2
  timeout 30 "$launch" -n 1 "$@" 2>err >out || got=$?
  [[ $got -eq $code ]] || failed "$* ended with $got instead of $code: $(cat err)"
  diff <(printf '%s' "$text") err || failed "other words of: $*"
  passed "$code: ${text%%$'\n'*}"
}
cat >fails <<'TEXT'
#!/usr/bin/env bash
printf '%b' "$1" >&2
exit "$2"
TEXT
chmod +x fails
rule=$(printf -- '-%.0s' {1..74})
abort="$rule\\nMPI_ABORT was invoked on rank 0 in communicator MPI_COMM_WORLD\\nwith errorcode 3.\\n\\n"
abort+="NOTE: so it is.\\n$rule\\n"
aggregated='[vm:12] 1 more process has sent help message help-mpi-api.txt / mpi-abort\n'
aggregated+='[vm:12] Set MCA parameter "orte_base_help_aggregate" to 0 to see all help / error messages\n'
sentence="hearsay: [rank 1] no file 'x'; name one"
says 3 "$sentence"$'\n' ./fails "$sentence\\n" 3
says 3 "before"$'\n'"$sentence"$'\n'"after"$'\n' ./fails "before\\n$sentence\\n$abort${aggregated}after\\n" 3
# Nothing else is left out: other blocks, rules of a program's own, words that look alike, a last line without an end.
other="$rule\\nWARNING: no network card was found\\n$rule\\n"
says 3 "$(printf '%b' "$other$sentence\\n$rule\\nx\\n$rule\\n.")"$'\n' ./fails \
  "$other$sentence\\n$abort$rule\\nx\\n$rule\\n.\\n" 3
says 0 "$(printf '%b' "about MPI_ABORT was invoked on rank 0\\n$rule\\nend")" \
  ./fails "about MPI_ABORT was invoked on rank 0\\n$rule\\nend" 0
# Without a sentence of ours mpirun's words are all there is.
expect 5 "Primary job  terminated normally" "$launch" -n 2 ./fails 'a word\n' 5
expect 5 "Primary job  terminated normally" "$launch" -n 2 ./fails 'hearsay: note: a remark only\n' 5
grep -qF "remark only" out || failed "the remark is lost: $(cat out)"
expect 3 "MPI_ABORT was invoked on rank 0" "$launch" -n 1 ./fails "$abort$aggregated" 3
[[ $(grep -cF -e 'with errorcode 3' -e 'NOTE: so it is' -e '1 more process' -e 'Set MCA' out) -eq 4 ]] ||
  failed "mpirun's words are not whole: $(cat out)"
# A line that is not finished is shown while the program goes on.
cat >slow <<'TEXT'
#!/usr/bin/env bash
printf "half a line" >&2
while [[ ! -e go ]]; do sleep 0.1; done
echo "hearsay: done" >&2
exit 3
TEXT
chmod +x slow
timeout 30 "$launch" -n 1 ./slow 2>out &
pid=$!
until_said "half a line"
touch go
code=0
wait $pid || code=$?
[[ $code -eq 3 && $(head -n 1 out) == "half a linehearsay: done" ]] || failed "ended with $code: $(cat out)"
passed "unfinished lines are shown at once"

# What Open MPI says of a dead process is left out also where the rest of the line is late.
cat >late <<'TEXT'
#!/usr/bin/env bash
printf "[ho" >&2
sleep 0.6
printf "st:12] PMIX ERROR: BAD-PARAM in file event/pmix_event" >&2
sleep 0.6
printf "_notification.c at line 923\nhearsay: done\n" >&2
exit 3
TEXT
chmod +x late
code=0
timeout 30 "$launch" -n 1 ./late 2>out || code=$?
[[ $code -eq 3 && $(head -n 1 out) == "hearsay: done" ]] || failed "ended with $code: $(cat out)"
passed "unfinished lines of Open MPI are not"

# ---------------------------------------------------------------- signals reach the job, once
cat >waits <<'TEXT'
#!/usr/bin/env bash
trap 'echo usr1' USR1
trap 'echo "hearsay: stopped by signal 15" >&2; exit 143' TERM
echo ready
while :; do sleep 0.1; done
TEXT
chmod +x waits
"$launch" -n 1 "$folder/waits" >out 2>err &
pid=$!
until_said ready
kill -USR1 $pid
until_said usr1
sleep 1
kill -TERM $pid
code=0
wait $pid || code=$?
[[ $code -ne 0 && -z $(pgrep -f "bash $folder/waits" || :) ]] || failed "SIGTERM: code $code, or processes are left"
passed "SIGUSR1 and SIGTERM reach the processes; $code"

# ---------------------------------------------------------------- what lies in configs/launch/
[[ $(awk '!/^#/' "$source_dir/configs/launch/hosts") == node* ]] || failed "configs/launch/hosts names no host"
expect 4 "the host 'node01' of the host file '$source_dir/configs/launch/hosts' cannot be reached" \
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
started="srun --mpi=pmix --kill-on-bad-exit=1 $folder/agent train run.yaml --seed 3 --continue"
expect 0 "$started; network 10.0.0.0/16, osc ^ucx, threads 1" \
  "${submit[@]}" NETWORK=10.0.0.0/16 "$slurm" run.yaml --seed 3
expect 0 "train run.yaml --continue; network any, osc ucx" "${submit[@]}" FABRIC=ucx "$slurm" run.yaml
# It goes back into the queue when another attempt may end better.
printf '#!/usr/bin/env bash\necho srun\nexit "$CODE"\n' >bin/srun
printf '#!/usr/bin/env bash\necho "scontrol $*"\n' >bin/scontrol
chmod +x bin/scontrol
submit+=(FABRIC=ucx SLURM_JOB_ID=7)
expect 0 "scontrol requeue 7" "${submit[@]}" CODE=143 "$slurm" run.yaml
expect 0 "scontrol requeue 7" "${submit[@]}" CODE=137 SLURM_RESTART_COUNT=9 "$slurm" run.yaml
expect 137 "srun" "${submit[@]}" CODE=137 SLURM_RESTART_COUNT=10 "$slurm" run.yaml
expect 2 "srun" "${submit[@]}" CODE=2 "$slurm" run.yaml
rm bin/scontrol bin/srun
