#!/usr/bin/env bash
# data_test.sh HEARSAY SOURCE_DIR: text, words, tables and scripted modules as their users meet them: they train, are
# judged by their own metric, and say what is wrong with what they are given.
source "$(dirname "$0")/expect.sh"
cat >text.yaml <<'YAML'
seed: 3
model: {name: transformer, layers: 1, heads: 2, width: 16}
data: {name: text, generated_size: 12000, block: 16, batch_size: 8, partition: {name: shards}}
optimizer: {name: adamw, learning_rate: 0.01, clip_norm: 1, warmup_epochs: 0.2, decay_matrices_only: true,
            schedule: {name: cosine, floor: 0.1}}
exchange: {name: eventgrad, mixing: {name: arrival}}
trigger: {name: adaptive, warmup_iterations: 2}
train: {epochs: 1, label_smoothing: 0.1}
report: {directory: runs/text, every_iterations: 4}
YAML
text=("$hearsay" train text.yaml --progress off)

# ---------------------------------------------------------------- text
expect 0 "text on two ranks" "^  loss of the averaged model +[0-9.]+$" "^  loss of the worst rank +[0-9.]+$" \
  "^  bits per character of the averaged model +[0-9.]+$" "^  accuracy of the averaged model +[0-9.]+ %$" -- \
  "${two_ranks[@]}" "${text[@]}"
expect 0 "compared by loss" "^run +loss +worst" "^text +[0-9.]+ +[0-9.]+" -- "$hearsay" compare runs/text
expect 0 "watched by loss" "^text: eventgrad, transformer on text, 2 ranks, finished, loss [0-9.]+" -- \
  "$hearsay" watch runs/text --once
expect 0 "an evaluation in the progress" \
  "evaluation at iter [0-9]+ · epoch 1 · bits per character [0-9.]+ · accuracy" -- \
  "$hearsay" train text.yaml --progress lines --output runs/lines
expect 0 "the same run again" -- \
  "${two_ranks[@]}" "$hearsay" train runs/text/config.yaml --progress off --output runs/again
holds "with the same replicas" diff <(grep -A 3 replica_hash runs/text/summary.json) \
  <(grep -A 3 replica_hash runs/again/summary.json)
expect 0 "an lstm on words" "^  perplexity of the averaged model +[0-9.]+$" -- "${text[@]}" --output runs/words \
  --set model.name=lstm --set data='{name: words, generated_size: 12000, block: 8}'
for exchange in dpsgd quasi_global_momentum gradient_tracking momentum_tracking allreduce topk gtopk lkgs \
  gradient_dropping; do
  sed -e '/^trigger/d' -e "s/^exchange.*/exchange: {name: $exchange}/" text.yaml >"$exchange.yaml"
  expect 0 "a transformer under $exchange" "2 iterations: finished" -- "${two_ranks[@]}" "$hearsay" train \
    "$exchange.yaml" --progress off --set train.iterations=2 --output "runs/$exchange"
done

# ---------------------------------------------------------------- rows of numbers
{ echo "x,z,y"; for i in $(seq 200); do echo "$i,$((i * i % 7)),$((3 * i + 1))"; done; } >line.csv
expect 0 "a regression" "^  rmse of the averaged model +[0-9.e+-]+$" -- "$hearsay" train --progress off \
  text.yaml --set 'model={name: mlp, hidden: []}' --set 'data={name: csv, path: line.csv, batch_size: 20}' \
  --set train.label_smoothing=0 --set 'optimizer={name: sgd, learning_rate: 0.1}' --set train.epochs=60 \
  --output runs/line
holds "the line is found" python3 -c "
import json
assert json.load(open('runs/line/summary.json'))['metrics'][0]['mean_model'] < 3"

# ---------------------------------------------------------------- what is wrong is said
: >empty.txt
printf 'Stra\337e und noch mehr Text, damit es reicht, und noch mehr' >latin1.txt
printf 'short' >short.txt
printf 'a b c\n' >train.txt
printf 'a b d\n' >valid.txt
printf 'x,y\n1,2\n3,z\n' >bad.csv
echo "no module" >net.pt
data=("${text[@]}" --output runs/none --set)
expect 3 "an empty text" "^hearsay: .*empty.txt: is empty" -- "${data[@]}" data.path=empty.txt
expect 3 "no text" "^hearsay: .*nowhere.txt: cannot be opened: No such file" -- "${data[@]}" data.path=nowhere.txt
expect 3 "invalid UTF-8" "latin1.txt: at byte 4: is not UTF-8.*iconv.*bytes" -- "${data[@]}" data.path=latin1.txt
expect 3 "a sequence longer than the data" "short.txt: too short: the training part has not the 17 tokens" -- \
  "${data[@]}" data.path=short.txt
expect 3 "an unknown word" "valid.txt: line 1: the word 'd' is not in the training text" -- \
  "${data[@]}" 'data={name: words, path: ., block: 1}'
expect 3 "no number" "bad.csv: line 3, column 'y': 'z' is no finite number" -- \
  "${data[@]}" 'data={name: csv, path: bad.csv, test_fraction: 0.5}' --set model.name=mlp
expect 2 "no file of rows" "data.path is empty" -- "${data[@]}" 'data={name: csv}' --set model.name=mlp
expect 2 "no documents to deal" "data.partition: .*use iid or contiguous" -- \
  "${data[@]}" 'data={name: words, generated_size: 12000, partition: {name: shards}}'
expect 2 "a network for images" "mnist_cnn takes images.*has sequences of 16 tokens out of [0-9]+" -- \
  "${data[@]}" model.name=mnist_cnn
expect 2 "a network for text" "transformer takes sequences of tokens.*1 channel of 28x28" -- \
  "${data[@]}" data.name=synthetic_digits
expect 2 "heads that do not share the width" "model.width: 16 is not a multiple of model.heads = 3" -- \
  "${data[@]}" model.heads=3
expect 2 "mirrored text" "data.augmentation: .*are no images" -- "${data[@]}" data.augmentation=pad_crop_flip
expect 2 "smoothed numbers" "train.label_smoothing: the targets of 'csv' are numbers" -- "${data[@]}" \
  'data={name: csv, path: line.csv}' --set 'model={name: mlp}'
expect 3 "no scripted module" "net.pt: is no scripted module.*torch.jit.script" -- \
  "${data[@]}" 'model={name: torchscript, path: net.pt}'
expect 2 "no file of a module" "model.path is empty.*export_model.py" -- "${data[@]}" 'model={name: torchscript}'

# ---------------------------------------------------------------- beside PyTorch, where there is one
if /usr/bin/python3 -c 'import torch' 2>/dev/null; then
  seq 3000 | sed 's/7/sieben/g; s/3/drüben/g' >seq.txt
  expect 0 "a transformer on a file" "finished" -- "${two_ranks[@]}" "${text[@]}" --output runs/seq \
    --set data.path=seq.txt --set data.partition.name=contiguous
  expect 0 "PyTorch computes the same loss" "^loss" -- \
    /usr/bin/python3 "$source_dir/tests/cli/check_transformer.py" runs/seq seq.txt 2
  export_model=(/usr/bin/python3 "$source_dir/analysis/export_model.py")
  expect 0 "an example is exported" "^net.pt: [0-9,]+ parameters" -- "${export_model[@]}" images net.pt
  expect 0 "it trains" "accuracy of the averaged model" -- "${two_ranks[@]}" "${text[@]}" --output runs/scripted \
    --set 'model={name: torchscript, path: net.pt}' \
    --set 'data={name: synthetic_digits, train_size: 128, test_size: 32, batch_size: 16}'
  expect 0 "Python loads what has been learnt" "^ok" -- /usr/bin/python3 -c "
import torch
net, before = torch.jit.load('runs/scripted/model.pt').eval(), torch.jit.load('net.pt')
assert net(torch.zeros(2, 1, 28, 28)).shape == (2, 10)
assert [n for n, _ in net.named_parameters()] == [n for n, _ in before.named_parameters()]
assert any(not torch.equal(a, b) for a, b in zip(net.parameters(), before.parameters()))
print('ok')"
  expect 2 "a module for other data" "net.pt: its forward cannot take" -- "${text[@]}" --output runs/other \
    --set 'model={name: torchscript, path: net.pt}'
  expect 0 "one for text" "parameters" -- "${export_model[@]}" text text.pt --vocabulary 256
  expect 0 "it trains" "loss of the averaged model" -- "${text[@]}" --output runs/scripted-text \
    --set 'model={name: torchscript, path: text.pt}' --set data.unit=bytes
  expect 0 "one for numbers" "parameters" -- "${export_model[@]}" numbers numbers.pt --inputs 2
  expect 0 "it trains" "rmse of the averaged model" -- "${text[@]}" --output runs/scripted-numbers \
    --set 'model={name: torchscript, path: numbers.pt}' --set train.label_smoothing=0 \
    --set 'data={name: csv, path: line.csv}'
fi

printf '%d checks, %d failures\n' "$checks" "$failures"
[ "$failures" = 0 ] && [ "$checks" -ge 35 ]
