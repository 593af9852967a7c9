#!/usr/bin/env bash
# storm_test.sh HEARSAY SOURCE_DIR: a short storm. Jobs whose ranks are killed and stopped at random instants finish,
# those that survive and those that are begun again; nothing hangs and no checkpoint is damaged.
source "$(dirname "$0")/expect.sh"
storm=("$source_dir/scripts/storm" --program "$hearsay")

cat >storm.yaml <<'YAML'
seed: 3
model: {name: mlp, hidden: [128]}
data: {name: synthetic_digits, train_size: 1024, test_size: 64, batch_size: 16}
optimizer: {name: sgd, learning_rate: 0.05}
exchange: {name: eventgrad, schedule: asynchronous, mixing: {name: arrival}}
train: {epochs: 1000000, seconds: 6, evaluate_every_epochs: 0, on_failure: continue, failure_timeout_s: 1.5,
        checkpoint: {every_s: 0.5}}
report: {every_iterations: 20}
YAML

# logged FILE EVENT: how often.
logged() { grep -c "\"event\": \"$2\"" "$1" || true; }

well=("\| hangs \| 0 \|" "\| damaged checkpoints \| 0 \|" "\| jobs lost \| 0 \|")
expect 0 "ranks that survive" "\| kills \| 4 \|" "${well[@]}" "in the storm \| .* %\)" -- \
  "${storm[@]}" --ranks 3 --kills 4 --stops 0.3 --rate 5400 --seed 5 --folder continue storm.yaml
holds "every kill is in the log" test "$(logged continue/storm.jsonl kill)" = 4
holds "and every job" test "$(logged continue/storm.jsonl job)" -ge 2
holds "three ranks, of which one may die: jobs were begun again" test "$(logged continue/storm.jsonl kill_all)" -ge 1
expect 0 "ranks that do not" "\| kills \| 2 \|" "\| restarts from a checkpoint \| 2 \|" "${well[@]}" \
  -- "${storm[@]}" --ranks 2 --kills 2 --stops 0 --rate 7200 --folder abort --log log.jsonl \
  --set train.on_failure=abort --set exchange.schedule=lockstep --set train.seconds=4 storm.yaml
holds "a log of one's own" test "$(logged log.jsonl kill)" = 2
expect 2 "the folder is there" "is there already" -- "${storm[@]}" --folder abort storm.yaml
expect 2 "no checkpoints" "writes no checkpoints on its way" -- "${storm[@]}" --folder no storm.yaml \
  --set train.checkpoint.every_s=0
expect 2 "no configuration" "there is no configuration 'none.yaml'" -- "${storm[@]}" none.yaml
expect 2 "no program" "there is no program" -- "$source_dir/scripts/storm" --program ./none storm.yaml
expect 2 "one rank" "ranks at least 2" -- "${storm[@]}" --ranks 1 --folder no storm.yaml

printf '%d checks, %d failures\n' "$checks" "$failures"
[ "$failures" = 0 ] && [ "$checks" -ge 11 ]
