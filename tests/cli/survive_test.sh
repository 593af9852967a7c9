#!/usr/bin/env bash
# survive_test.sh HEARSAY SOURCE_DIR: train.on_failure: continue. Ranks are killed and stopped at random instants; the
# others finish, soon, and say who has died.
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
train: {epochs: 100, evaluate_every_epochs: 25, on_failure: continue, failure_timeout_s: 1.5}
report: {every_iterations: 7}
YAML

# ---------------------------------------------------------------- killed, rank 0 and another
for victim in 0 $((SRANDOM % 3 + 1)); do
  for exchange in "$(sed -n 's/^exchange: //p' base.yaml)" "{name: dpsgd, schedule: asynchronous}" \
    "{name: gossip_outer, schedule: asynchronous, local_steps: 5}"; do
    folder=runs/$victim-${exchange:7:5}
    set_exchange=(--set "exchange=$exchange")
    if [[ $exchange == *dpsgd* ]]; then
      sed -e '/^trigger/d' -e 's/rate: 0.05/rate: 0.2/' base.yaml >dpsgd.yaml
      config=dpsgd.yaml
    else
      config=base.yaml
    fi
    begin "$folder" "$launch" -n 4 "$hearsay" train $config --progress off "${set_exchange[@]}" --output "$folder"
    nap
    kill -KILL "${pids[$victim]}"
    ended "$folder"
    cp "$folder/summary.json" output 2>/dev/null
    holds "$folder: finished" says "$folder" "s['status'] == 'finished' and s['ranks'] == 4"
    holds "$folder: who died" says "$folder" "[r['rank'] for r in s['ranks_lost']] == [$victim]"
    holds "$folder: while it trained" says "$folder" "0 < s['ranks_lost'][0]['at_s'] < s['wall_time_s']"
    holds "$folder: its share is done by others" says "$folder" "s['rank_iterations_max'] > 100 * 32"
    holds "$folder: the job's budget is spent" says "$folder" \
      "s['iterations'] >= 100 * 32 - $(unbegun "$exchange")"
    holds "$folder: it has learnt" says "$folder" "s['accuracy_mean_model'] > 0.8 and s['accuracy_rank_min'] > 0.6"
    holds "$folder: three models" says "$folder" "len(s['replica_hash']) == 3"
    holds "$folder: the lines of the living" test "$(cut -d, -f1 "$folder/ranks.csv" | grep -c "^[0-3]\$")" = 3
    holds "$folder: and not of the dead" test "$(cut -d, -f1 "$folder/ranks.csv" | grep -c "^$victim\$")" = 0
    cp begun.log output
    rounds=
    [[ $exchange != *gossip_outer* ]] || rounds=".*round [0-9]+ of 5 local steps"
    holds "$folder: it says so" grep -qE "lost +rank $victim after$rounds" begun.log
    holds "$folder: and mpirun nothing: $(grep PMIX begun.log)" test "$(grep -c PMIX begun.log)" = 0
  done
done
# ---------------------------------------------------------------- over TCP, where nothing waits for an answer
tcp=(--mca pml ob1 --mca btl tcp,self --mca osc pt2pt)
last=$folder
for victim in 0 $((SRANDOM % 3 + 1)); do
  folder=runs/tcp-$victim
  begin "$folder" "$launch" "${tcp[@]}" -n 4 "$hearsay" train base.yaml --progress off --output "$folder"
  nap
  kill -KILL "${pids[$victim]}"
  ended "$folder"
  cp "$folder/summary.json" output 2>/dev/null
  holds "$folder: who died" says "$folder" "[r['rank'] for r in s['ranks_lost']] == [$victim]"
  holds "$folder: the others have done its share" says "$folder" "s['status'] == 'finished' and s['iterations'] >= 3200"
  holds "$folder: it has learnt" says "$folder" "s['accuracy_mean_model'] > 0.8 and s['accuracy_rank_min'] > 0.6"
  cp begun.log output
  holds "$folder: it says so" grep -qE "lost +rank $victim after" begun.log
  holds "$folder: and Open MPI nothing" test "$(grep -cE 'PMIX|disconnected|failed to TCP|btl-tcp' begun.log)" = 0
done
folder=$last
expect 0 "the model is there" "test examples" -- "$hearsay" evaluate "$folder"
expect 0 "and read" "finished" -- "$hearsay" watch "$folder" --once

# ---------------------------------------------------------------- what rank 0 alone does is handed on
# lock_names PID: run.lock does, soon.
lock_names() {
  for _ in $(seq 400); do
    grep -qx "process $1" "$folder/run.lock" 2>/dev/null && return 0
    sleep 0.05
  done
  return 1
}
folder=runs/duties
begin $folder "$launch" -n 4 "$hearsay" train base.yaml --progress lines --output $folder --set train.epochs=100000 \
  --set train.seconds=20 --set train.evaluate_every_epochs=50 --set train.checkpoint.every_s=0.5
holds "rank 0 owns the folder" lock_names "${pids[0]}"
kill -KILL "${pids[0]}"
cp begun.log before.log
busy="$folder is being written by the run hearsay-[0-9a-f]{16} \\(process [0-9]+ on .*\\)"
expect 2 "the others write there" "$busy" -- "$hearsay" train base.yaml --output $folder --overwrite --progress off
holds "the next rank owns it" lock_names "${pids[1]}"
busy="$folder is being written by the run hearsay-[0-9a-f]{16} \\(process ${pids[1]} on .*\\)"
expect 2 "it is named, also to one that goes on" "$busy" -- "$hearsay" train --resume $folder --progress off
ended $folder
cp begun.log output
holds "progress goes on" test "$(grep -c '^iter ' begun.log)" -gt "$(($(grep -c '^iter ' before.log) + 2))"
holds "models are evaluated" grep -q '"record":"evaluation"' $folder/metrics.rank0001.jsonl
holds "the summary is there" says $folder "s['status'] == 'finished' and [r['rank'] for r in s['ranks_lost']] == [0]"
holds "and has all fields" says $folder "0 < s['spectral_gap'] < 1 and s['not_written'] == []"
holds "the folder is free" test ! -e $folder/run.lock
holds "the dead rank's old checkpoints go, too" test -z "$(find $folder/checkpoints -name 'rank0000.*')"
holds "and its models" test -z "$(find $folder -name 'snapshots.*')"
expect 0 "compare finds the evaluations" "finished|duties" -- "$hearsay" compare $folder

# ---------------------------------------------------------------- two of them: the ring falls into two parts
folder=runs/two
begin $folder "$launch" -n 4 "$hearsay" train base.yaml --progress off --output $folder
kill -KILL "${pids[0]}"
nap
kill -KILL "${pids[2]}"
ended $folder
cp $folder/summary.json output
holds "two have died" says $folder "sorted(r['rank'] for r in s['ranks_lost']) == [0, 2]"
holds "two parts go on" says $folder "s['status'] == 'finished' and 'in 2 parts' in s['message']"

# ---------------------------------------------------------------- stopped: below the time-out slow, above it dead
folder=runs/slow
begin $folder "$launch" -n 4 "$hearsay" train base.yaml --progress off --set train.failure_timeout_s=10 --output $folder
kill -STOP "${pids[1]}"
sleep 3
kill -CONT "${pids[1]}"
ended $folder
holds "a slow rank is not lost" says $folder "s['status'] == 'finished' and s['ranks_lost'] == []"
folder=runs/late
begin $folder "$launch" -n 4 "$hearsay" train base.yaml --progress off --set train.epochs=200 --output $folder
kill -STOP "${pids[1]}"
sleep 4
kill -CONT "${pids[1]}"
ended $folder
holds "a rank that was stopped for too long is lost" says $folder "[r['rank'] for r in s['ranks_lost']] == [1]"
holds "and finds out" grep -q "rank 1 was not heard of for train.failure_timeout_s and was taken for dead" begun.log
holds "its late writes harm nobody" says $folder "s['status'] == 'finished' and s['accuracy_mean_model'] > 0.8"

# ---------------------------------------------------------------- checkpoints of ranks that meet nobody
# complete FOLDER: a line for every checkpoint that has a part of every rank that lived: how many, who died, settled.
complete() {
  python3 - "$1/checkpoints" <<'PY'
import glob, json, sys
for folder in sorted(glob.glob(sys.argv[1] + "/checkpoint-*")):
    parts = [json.load(open(f)) for f in glob.glob(folder + "/rank*.json")]
    lost = {r for p in parts for r in p["lost"]}
    if parts and {p["rank"] for p in parts} | lost == set(range(4)):
        print(len(parts), sorted(lost), *{p["settled"] for p in parts})
PY
}
for due in every_s=0.4 every_iterations=150; do
  folder=runs/checkpoints-${due%=*}
  begin "$folder" "$launch" --restarts 1 -n 4 "$hearsay" train base.yaml --progress lines --output "$folder" \
    --set train.epochs=250 --set "train.checkpoint.$due"
  kill -KILL "${pids[2]}"
  sleep 3.5
  complete "$folder" >complete.txt
  kill -KILL "${pids[0]}" "${pids[1]}" "${pids[3]}"
  ended "$folder"
  cp complete.txt output
  holds "$folder: complete without the dead" grep -qx '3 \[2\] False' complete.txt
  cp begun.log output
  holds "$folder: it goes on" grep -q "0 restarts are left" begun.log
  holds "$folder: from the mean of the living" \
    grep -qE "is of 3 ranks that wrote each for itself: all ranks start from the mean .* at iteration [1-9]" begun.log
  cp "$folder/summary.json" output
  holds "$folder: to the end" says "$folder" "s['status'] == 'finished' and s['iterations'] >= 250 * 32"
  holds "$folder: with all ranks" says "$folder" "s['ranks_lost'] == [] and len(s['replica_hash']) == 4"
  holds "$folder: it has learnt" says "$folder" "s['accuracy_mean_model'] > 0.8"
done

# ---------------------------------------------------------------- nobody dies; refused
expect 0 "nobody dies" finished "!lost +rank" -- "$launch" -n 4 "$hearsay" train base.yaml --progress off \
  --set train.epochs=4 --output runs/nobody
holds "nobody is lost" says runs/nobody "s['ranks_lost'] == [] and len(s['replica_hash']) == 4"
expect 0 "alone" finished -- "$launch" -n 1 "$hearsay" train base.yaml --progress off --set train.epochs=1 \
  --output runs/one
expect 0 "without recovery" "needs mpirun --enable-recovery" finished -- "${two_ranks[@]}" "$hearsay" train base.yaml \
  --progress lines --set train.epochs=1 --output runs/without
# mpirun itself says 0 to all of these.
expect 5 "divergence is an error" "diverged" -- "$launch" -n 3 "$hearsay" train base.yaml --progress off \
  --set optimizer.learning_rate=1e30 --output runs/diverged
expect 2 "a run is there" "already holds a run" -- "$launch" -n 3 "$hearsay" train base.yaml --progress off \
  --output runs/nobody
begin runs/all "$launch" -n 4 "$hearsay" train base.yaml --progress off --output runs/all
kill -KILL "${pids[@]}"
code=0
wait "$job" || code=$?
cp begun.log output
holds "nobody survives: $code" test "$code" = 137
holds "and the summary says so" says runs/all "s['status'] == 'killed'"
begin runs/twice "$launch" --restarts 1 -n 4 "$hearsay" train base.yaml --progress off --output runs/twice
kill -KILL "${pids[@]}"
again=()
for _ in $(seq 600); do
  mapfile -t again < <(pgrep -f "^$hearsay train .*--output runs/twice( |\$)")
  [ "${#again[@]}" = 4 ] && [[ " ${again[*]} " != *" ${pids[0]} "* ]] && break
  sleep 0.05
done
kill -KILL "${again[@]}"
code=0
wait "$job" || code=$?
cp begun.log output
holds "nobody survives the second attempt, either: $code" test "$code" = 137
begin runs/stop "$launch" -n 4 "$hearsay" train base.yaml --progress off --output runs/stop
kill -TERM "$job"
code=0
wait "$job" || code=$?
cp begun.log output
holds "a signal: $code" test "$code" = 143
holds "and the summary" says runs/stop "s['status'] == 'stopped'"
expect 2 "in lockstep" "continue needs ranks that wait for nobody" -- "$hearsay" train base.yaml \
  --set exchange.schedule=lockstep --output runs/no
expect 2 "everyone for himself" "continue needs budget: job" -- "$hearsay" train base.yaml --set train.budget=rank
expect 2 "no time at all" "failure_timeout_s: must be" -- "$hearsay" train base.yaml --set train.failure_timeout_s=0

printf '%d checks, %d failures\n' "$checks" "$failures"
[ "$failures" = 0 ] && [ "$checks" -ge 114 ]
