#!/usr/bin/env bash
# leaving_test.sh HEARSAY SOURCE_DIR: one of two ranks is killed in the middle of a run, with every exchange and
# schedule that there is: the job must end soon, say who has gone, and leave nobody behind.
source "$(dirname "$0")/expect.sh"

cat >small.yaml <<'YAML'
seed: 3
model: {name: mlp, hidden: [8]}
data: {name: synthetic_digits, train_size: 256, test_size: 64, batch_size: 16}
train: {epochs: 100000}
report: {every_iterations: 1} # records soon fill a buffer, and so reach the disk
YAML
exchanges=() jobs=()

# leaves EXCHANGE: starts a run, and kills one of its ranks when it trains. `ended` looks at what becomes of it: a
# launcher takes two seconds to end a job, in which the next one can start.
leaves() {
  local run=$work/run-${#jobs[@]} victim
  timeout 60 "${two_ranks[@]}" "$hearsay" train small.yaml --progress off --set "exchange=$1" --output "$run" \
    >"$run.log" 2>&1 </dev/null &
  exchanges+=("$1") jobs+=($!)
  for _ in $(seq 300); do
    [ -s "$run/metrics.rank0001.jsonl" ] && break
    sleep 0.1
  done
  victim=$(pgrep -f "^$hearsay .*--output $run\$" | tail -n 1)
  kill -KILL "$victim" || fail "$1: no rank to kill"
}

ended() { # ended NUMBER
  local exchange=${exchanges[$1]} run=$work/run-$1 code left
  checks=$((checks + 1))
  wait "${jobs[$1]}" 2>/dev/null
  code=$?
  cp "$run.log" output
  [ "$code" != 0 ] && [ "$code" -lt 129 ] || [ "$code" = 137 ] || fail "$exchange: a killed rank gives exit code $code"
  [ "$code" != 124 ] || fail "$exchange: the job goes on for a minute"
  grep -q "signal 9" output || fail "$exchange: nobody says that a rank was killed"
  mapfile -t left < <(pgrep -f -- "--output $run\$")
  [ "${#left[@]}" = 0 ] || fail "$exchange: a rank stays behind"
  [ "${#left[@]}" = 0 ] || kill -KILL "${left[@]}"
}

"$hearsay" list exchange | sed -nE 's/^  ([a-z_]+)  .*/\1/p' >names
while read -r name; do
  leaves "{name: $name}"
  if "$hearsay" describe "$name" | grep -q 'one of lockstep, asynchronous'; then
    leaves "{name: $name, schedule: asynchronous}"
  fi
done <names
for number in "${!jobs[@]}"; do ended "$number"; done

printf '%d checks, %d failures\n' "$checks" "$failures"
[ "$failures" = 0 ] && [ "$checks" -ge 12 ]
