# Jobs whose processes are killed and stopped while they train. To be sourced behind expect.sh. `processes` says how
# many a job has, `trains` how many of them train at first.
# shellcheck shell=bash disable=SC2154
processes=4
trains=4

# says FOLDER EXPRESSION: Python's, of the summary s.
says() { python3 -c "import json, sys; s = json.load(open(sys.argv[1])); sys.exit(not ($2))" "$1/summary.json"; }

# begin FOLDER COMMAND…: starts a job in the background; goes on when its ranks train. `pids`: of the ranks, in order.
begin() {
  local folder=$1 rank
  shift
  timeout 150 "$@" >begun.log 2>&1 </dev/null &
  job=$!
  for _ in $(seq 600); do
    [ "$(find "$folder" -name 'metrics.rank*.jsonl' -size +0 2>/dev/null | wc -l)" = "$trains" ] && break
    sleep 0.05
  done
  pids=()
  for pid in $(pgrep -f "^$hearsay train .*--output $folder( |\$)"); do
    rank=$(tr '\0' '\n' <"/proc/$pid/environ" | sed -n 's/^OMPI_COMM_WORLD_RANK=//p')
    pids[rank]=$pid
  done
  cp begun.log output
  holds "$folder: $processes processes" test "${#pids[@]}" = "$processes"
}

# ended FOLDER: the job ends by itself, well, and leaves nobody behind.
ended() {
  local code=0 left
  wait "$job" || code=$?
  cp begun.log output
  checks=$((checks + 1))
  [ "$code" = 0 ] || fail "$1: the job ends with $code"
  mapfile -t left < <(pgrep -f "^$hearsay train .*--output $1( |\$)")
  holds "$1: nobody stays behind" test "${#left[@]}" = 0
  [ "${#left[@]}" = 0 ] || kill -KILL "${left[@]}"
}

# unbegun EXCHANGE: how many iterations of the budget may stay: ranks begin no round that is less than half paid for.
unbegun() {
  local steps=1
  [[ $1 != *local_steps:* ]] || steps=$(sed -E 's/.*local_steps: ([0-9]+).*/\1/' <<<"$1")
  echo $(((steps - 1) / 2))
}

nap() { sleep "$(printf '0.%03d' $((SRANDOM % 1000)))"; }
