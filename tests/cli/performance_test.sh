#!/usr/bin/env bash
# performance_test.sh HEARSAY SOURCE_DIR MAILBOX [KERNELS]: the programs that time kernels, packets and training steps
# run and say what they measured. Nothing here depends on how long something takes.
mailbox=$(realpath "$3")
kernels=${4:+$(realpath "$4")}
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

# ---------------------------------------------------------------- the mailbox
packets=("${two_ranks[@]}" "$mailbox" --blocks 2 --packets 5 --rounds 20)
expect 0 "mailbox" "^mailbox/1MB +p50 .* copy .* ratio [0-9.]+, target ≤ 1.43: (met|missed)" \
  "^mailbox/64B .* put \+ flush " -- \
  "${packets[@]}"
expect 0 "mailbox as JSON" '^\{"kernel":"mailbox/1MB","repetitions":2,.*"ratio":[0-9.]+' -- "${packets[@]}" --json
expect 1 "mailbox with one rank" "^mailbox: needs two ranks: mpirun -n 2 mailbox" -- "$mailbox"

# ---------------------------------------------------------------- kernels
if [ -n "$kernels" ]; then
  few=("$kernels" --most-values 1e6 --repetitions 3 --seconds 0.001)
  expect 0 "kernels" "^kernel +median " "^select/1e6/1e-3 +$number .* add/1e6 +[0-9.]+ +≤ 1.5 +(met|missed)" "!^mix" \
    -- \
    "${few[@]}" --filter select --json kernels.jsonl
  holds "a floor is measured beside what is divided by it" grep -q '^{"kernel":"add/1e6"' kernels.jsonl
  expect 0 "codecs, merging, norms and mixing" "^decode/bitmap" "^encode/plain.two_bit" -- "${few[@]}" --filter code/
  expect 0 "the neighbour path" "^mix/1e6/4 .* 1.2 × copy/2.5e6" -- "${few[@]}" --filter mix
  expect 2 "no such kernel" "^kernels: no kernel's name contains 'selct'" -- "${few[@]}" --filter selct
  expect 3 "an unwritable file" "^kernels: cannot write nowhere/k.jsonl" \
    -- "${few[@]}" --filter merge/ --json nowhere/k.jsonl
fi

printf '%d checks, %d failures\n' "$checks" "$failures"
[ "$failures" = 0 ] && [ "$checks" -ge 9 ]
