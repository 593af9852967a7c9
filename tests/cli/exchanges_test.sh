#!/usr/bin/env bash
# exchanges_test.sh HEARSAY SOURCE_DIR: every exchange that there is, in every schedule, trains the papers' two
# networks, a few iterations on two ranks, and reports them.
source "$(dirname "$0")/expect.sh"

# Black photographs of the first kind: what is learned is not the question here.
mkdir -p data/cifar10
for file in data_batch_1 test_batch; do head -c 30730000 /dev/zero >"data/cifar10/$file.bin"; done
export HEARSAY_DATA=$work/data
declare -A data=([mnist_cnn]="{name: synthetic_digits, train_size: 32, test_size: 8, batch_size: 8}"
  [resnet20]="{name: cifar10, batches: [1], train_limit: 32, test_limit: 8, batch_size: 8}")

trains() { # trains MODEL EXCHANGE
  local folder=runs/$checks
  cat >run.yaml <<YAML
model: {name: $1}
data: ${data[$1]}
exchange: $2
train: {epochs: 2}
report: {directory: $folder}
YAML
  expect 0 "$1 with $2" "finished" -- "${two_ranks[@]}" "$hearsay" train run.yaml
  holds "$1 with $2: four iterations, all bytes by edge" awk -F, '
    NR == 1 { for (i = 1; i <= NF; ++i) if ($i == "bytes_sent") column = i }
    NR > 1 { sum += $column }
    END { exit !(sum > 0) }' $folder/communication.csv
  holds "$1 with $2: reported" grep -qE '"iterations": ([4-9]|1[0-9]),' $folder/summary.json # asynchronous: or more
}

"$hearsay" list exchange | sed -nE 's/^  ([a-z_]+)  .*/\1/p' >names
while read -r name; do
  more=
  "$hearsay" describe "$name" | grep -q local_steps && more=', local_steps: 1' # there are four iterations
  for model in mnist_cnn resnet20; do
    trains $model "{name: $name$more}"
    if "$hearsay" describe "$name" | grep -q 'one of lockstep, asynchronous'; then
      trains $model "{name: $name$more, schedule: asynchronous}"
    fi
  done
done <names

printf '%d checks, %d failures\n' "$checks" "$failures"
[ "$failures" = 0 ] && [ "$checks" -ge 132 ] # twenty-two exchanges, two models, three checks
