#!/usr/bin/env bash
# optimizers_test.sh HEARSAY SOURCE_DIR: every exchange that there is trains under an optimizer that moves matrices and
# not values, or says why it does not.
source "$(dirname "$0")/expect.sh"

cat >base.yaml <<'YAML'
seed: 3
model: {name: mlp, hidden: [24, 24]}
data: {name: synthetic_digits, train_size: 512, test_size: 64, batch_size: 16}
optimizer: {name: muon, learning_rate: 0.01, schedule: {name: cosine}}
train: {epochs: 4}
report: {overwrite: true}
YAML

# learns NAME SECTION…: ends, and its mean model is far better than chance, whose loss is log 10 = 2.3.
learns() {
  local name=$1 section
  local -a settings=()
  shift
  for section in "$@"; do settings+=(--set "$section"); done
  expect 0 "$name" finished -- "${two_ranks[@]}" "$hearsay" train base.yaml --progress lines --output runs \
    "${settings[@]}"
  holds "$name: learns" python3 -c "assert $(value runs/summary.json loss_mean_model) < 1.5"
}

refused() { # refused NAME PATTERN SECTION…
  local name=$1 pattern=$2
  expect 2 "$name" "$pattern" -- "$hearsay" train base.yaml --progress off --output runs --set "$3"
}

"$hearsay" list exchange | sed -nE 's/^  ([a-z_]+)  .*/\1/p' >names
while read -r name; do
  more=
  "$hearsay" describe "$name" | grep -q local_steps && more=', local_steps: 4'
  [ "$name" = diloco ] && more="$more, outer: {learning_rate: 0.7, momentum: 0.6}" # MuLoCo's
  case $name in
    gradient_dropping)
      refused "$name" "moves a matrix by the gradient of all of it, and exchange.name: gradient_dropping" \
        "exchange={name: $name}"
      ;;
    # Its momentum is added to gradients of its own scale: it is for plain SGD.
    quasi_global_momentum) ;;
    *) learns "$name" "exchange={name: $name$more}" ;;
  esac
done <names
learns "a corrected exchange" "exchange={name: dpsgd, correction: {name: drift}}"
learns "corrected events" "exchange={name: eventgrad, mixing: {name: arrival}, correction: {name: drift}}"
learns "asynchronous events" "exchange={name: eventgrad, schedule: asynchronous, mixing: {name: arrival}}"
learns "a trigger that measures steps" "exchange={name: eventgrad}" "trigger={name: sparq}"

expect 0 "memory" "optimizer +315 kB" -- "$hearsay" train base.yaml --dry-run
expect 2 "a layer that is not there" "optimizer.others.layers: the model has no layer 'fc'" -- \
  "$hearsay" train base.yaml --progress off --output runs --set optimizer.others.layers=fc

printf '%d checks, %d failures\n' "$checks" "$failures"
[ "$failures" = 0 ] && [ "$checks" -ge 50 ]
