#!/usr/bin/env bash
# recommended_test.sh HEARSAY SOURCE_DIR: the files of configs/recommended are what `hearsay advise` prints today, by
# the command that their first lines say, and four ranks train with them.
source "$(dirname "$0")/expect.sh"

four_ranks=("$mpiexec" "${mpiexec_args[@]}" -n 4)
small=(--set "data={name: synthetic_digits, train_size: 128, test_size: 16, batch_size: 8, partition: {name: shards}}"
  --set train.epochs=2 --set report.save_model=false)

for file in "$source_dir"/configs/recommended/*.yaml; do
  name=$(basename "$file" .yaml)
  command=$(sed -nE '1,/[^\\]$/ { s/^# (hearsay)?//; p }' "$file")
  holds "$name: its first lines are a command" test -n "$command"
  (cd "$source_dir" && eval "'$hearsay' $command") >advised.yaml 2>stderr
  holds "$name: what is advised today" diff "$file" advised.yaml
  expect 0 "$name: trains" "finished" -- \
    "${four_ranks[@]}" "$hearsay" train "$file" "${small[@]}" --output "runs/$name"
  holds "$name: corrected" grep -q 'name: drift' "$file"
done

printf '%d checks, %d failures\n' "$checks" "$failures"
[ "$failures" -eq 0 ] && [ "$checks" -ge 16 ]
