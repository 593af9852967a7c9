#!/usr/bin/env bash
# return_test.sh HEARSAY SOURCE_DIR: train.spares. Ranks are killed; spares take their places, with a neighbour's model,
# and train and mix there.
source "$(dirname "$0")/expect.sh"
source "$(dirname "$0")/jobs.sh"
launch=$source_dir/scripts/launch

cat >base.yaml <<'YAML'
seed: 3
model: {name: mlp, hidden: [256, 128]}
data: {name: synthetic_digits, train_size: 2048, test_size: 256, batch_size: 16}
optimizer: {name: sgd, learning_rate: 0.05}
topology: {graph: {name: ring}, weights: {name: uniform}}
exchange: {name: eventgrad, schedule: asynchronous, mixing: {name: arrival}, correction: {name: drift}}
trigger: {name: adaptive, horizon: 1.0, maximum_silence: 10}
train: {epochs: 300, evaluate_every_epochs: 50, on_failure: continue, failure_timeout_s: 1.5, spares: 1}
report: {every_iterations: 7}
YAML
processes=5

# mixed FOLDER RANK: whether copies of neighbours were mixed on the edges of this rank.
mixed() {
  python3 - "$1/staleness.csv" "$2" <<'PY'
import csv, sys
rows = [row for row in csv.DictReader(open(sys.argv[1])) if row["rank"] == sys.argv[2]]
sys.exit(not (len(rows) == 2 and all(int(row["samples"]) > 0 for row in rows)))
PY
}

# returned FOLDER VICTIM PROCESS ITERATIONS: the job has finished with everybody; the victim's place is the process's;
# the job has made that many iterations or more.
returned() {
  local folder=$1 victim=$2 process=$3 iterations=$4
  cp "$folder/summary.json" output 2>/dev/null
  holds "$folder: finished" says "$folder" "s['status'] == 'finished' and s['ranks'] == 4"
  holds "$folder: who died" says "$folder" \
    "[(r['rank'], r['process']) for r in s['ranks_lost']] == [($victim, $victim)]"
  holds "$folder: who came" says "$folder" \
    "[(r['rank'], r['process']) for r in s['ranks_joined']] == [($victim, $process)]"
  holds "$folder: after that" says "$folder" \
    "s['ranks_lost'][0]['at_s'] <= s['ranks_joined'][0]['at_s'] < s['wall_time_s']"
  holds "$folder: and trained" says "$folder" "s['ranks_joined'][0]['iterations'] > 20"
  holds "$folder: and mixed" mixed "$folder" "$victim"
  holds "$folder: the job's budget is spent" says "$folder" "s['iterations'] >= $iterations"
  holds "$folder: it has learnt" says "$folder" "s['accuracy_mean_model'] > 0.8 and s['accuracy_rank_min'] > 0.6"
  holds "$folder: four models" says "$folder" "len(s['replica_hash']) == 4"
  holds "$folder: four lines" test "$(cut -d, -f1 "$folder/ranks.csv" | tail -n +2 | sort | tr '\n' ' ')" = "0 1 2 3 "
  holds "$folder: a file of its own" grep -q '"loss"' "$folder/metrics.rank000$process.jsonl"
  cp begun.log output
  holds "$folder: it says so" grep -qE "joined +process $process in the place of rank $victim after" begun.log
  holds "$folder: and said so" \
    grep -qE "\[rank $process\] takes the place of rank $victim, after .* it mixes since" begun.log
}

# ---------------------------------------------------------------- killed, rank 0 and another
for victim in 0 $((SRANDOM % 3 + 1)); do
  for exchange in "$(sed -n 's/^exchange: //p' base.yaml)" "{name: dpsgd, schedule: asynchronous}" \
    "{name: gossip_outer, schedule: asynchronous, local_steps: 5}"; do
    folder=runs/$victim-${exchange:7:5}
    config=base.yaml
    if [[ $exchange == *dpsgd* ]]; then
      sed -e '/^trigger/d' -e 's/rate: 0.05/rate: 0.2/' base.yaml >dpsgd.yaml
      config=dpsgd.yaml
    fi
    begin "$folder" "$launch" -n 5 "$hearsay" train $config --progress off --set "exchange=$exchange" --output "$folder"
    nap
    kill -KILL "${pids[$victim]}"
    ended "$folder"
    returned "$folder" "$victim" 4 $((300 * 32 - $(unbegun "$exchange")))
  done
done

# ---------------------------------------------------------------- nobody dies; refused; said
begin runs/nobody "$launch" -n 5 "$hearsay" train base.yaml --progress off --set train.epochs=8 --output runs/nobody
ended runs/nobody
holds "nobody is needed" says runs/nobody "s['ranks_joined'] == [] and len(s['replica_hash']) == 4"
holds "a spare that is not needed writes nothing" test ! -e runs/nobody/metrics.rank0004.jsonl
expect 0 "watched" finished -- "$hearsay" watch runs/nobody --once
expect 0 "how many train" "ring of 4 ranks" "spares +1 more" -- "$hearsay" train base.yaml --dry-run -n 5
expect 2 "nobody would train" "train.spares: 5 of 5 processes would wait" -- "$hearsay" train base.yaml --dry-run -n 5 \
  --set train.spares=5
expect 2 "without on_failure" "they need on_failure: continue" -- "$hearsay" train base.yaml \
  --set train.on_failure=abort
expect 2 "in lockstep" "continue needs ranks that wait for nobody" -- "$hearsay" train base.yaml \
  --set exchange.schedule=lockstep
begin runs/stop "$launch" -n 5 "$hearsay" train base.yaml --progress off --output runs/stop
kill -TERM "$job"
code=0
wait "$job" || code=$?
cp begun.log output
holds "a signal: $code" test "$code" = 143
holds "and the summary" says runs/stop "s['status'] == 'stopped'"

printf '%d checks, %d failures\n' "$checks" "$failures"
[ "$failures" = 0 ] && [ "$checks" -ge 90 ]
