#!/usr/bin/env bash
# performance_test.sh HEARSAY SOURCE_DIR: `hearsay bench training` runs and says what it measured. Nothing here depends
# on how long something takes.
source "$(dirname "$0")/expect.sh"

number='[0-9.e-]+ (ns|µs|ms|s)'

# ---------------------------------------------------------------- a training step
training=("${two_ranks[@]}" "$hearsay" bench training --model mlp --batch 8 --iterations 2 --blocks 2)
expect 0 "bench training" "^mlp, batch 8 a rank, 2 ranks, " \
  "^exchange +bare +hearsay +ratio .* compute +trigger +select" \
  "^eventgrad:asynchronous +$number +$number +[0-9.]+ " "^gradient_dropping +$number" -- "${training[@]}"
expect 0 "bench training of some exchanges as JSON" \
  '^\{"kernel":"training/mlp/p2/lkgs",.*"ratio":[0-9.]+.*"compute_s":[0-9.]+' \
  '!gtopk' -- "${training[@]}" --exchange topk,lkgs --set sparsify.selector.density=0.1 --json
expect 0 "bench training with one rank" "^dpsgd +$number" \
  -- "$hearsay" bench training --model mlp --iterations 1 --blocks 1 --exchange dpsgd
expect 2 "an unknown model" "unknown 'mpl'; .*did you mean 'mlp'" -- "$hearsay" bench training --model mpl
expect 2 "an unknown exchange" "did you mean 'dpsgd'" -- "$hearsay" bench training --model mlp --exchange dpsdg
if ! ls /dev/nvidia[0-9]* >/dev/null 2>&1; then
  expect 4 "bench training without a GPU" "finds no GPU" \
    -- "$hearsay" bench training --model mlp --device cuda --exchange dpsgd
fi
expect 2 "no iterations" "^hearsay: --iterations 0: at least 1" -- "$hearsay" bench training --iterations 0

printf '%d checks, %d failures\n' "$checks" "$failures"
[ "$failures" = 0 ] && [ "$checks" -ge 6 ]
