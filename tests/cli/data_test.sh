#!/usr/bin/env bash
# data_test.sh HEARSAY SOURCE_DIR: text, translations, tables, arrays, pictures and scripted modules as their users meet
# them: they train, are judged by their own metric, and say what is wrong with what they are given.
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

# ---------------------------------------------------------------- translation
for i in 1 2 3 4 5 6; do
  printf 'Das Tier %d läuft, schnell.\nEin Haus (%d) steht.\n' "$i" "$i" >&3
  printf 'The animal %d runs, fast.\nA house (%d) stands.\n' "$i" "$i" >&4
done 3>pairs.de 4>pairs.en
cat >pairs.yaml <<'YAML'
seed: 3
model: {name: seq2seq, embedding: 16, hidden: 16}
data: {name: parallel_text, path: ., train: pairs, test: pairs, vocabulary: 300, length: 40, batch_size: 3}
optimizer: {name: adamw, learning_rate: 0.02, clip_norm: 1}
exchange: {name: dpsgd}
train: {epochs: 60, evaluate_every_epochs: 0}
report: {directory: runs/pairs}
YAML
pairs=("$hearsay" train pairs.yaml --progress off)
expect 0 "a translator on two ranks" "^  BLEU of the averaged model +[0-9.]+$" "^  BLEU of the worst rank +[0-9.]+$" \
  "^  loss of the averaged model +[0-9.]+$" -- "${two_ranks[@]}" "${pairs[@]}"
expect 0 "a translating transformer" "^  BLEU of the averaged model +[0-9.]+$" -- "${two_ranks[@]}" "${pairs[@]}" \
  --output runs/pairs-transformer --set train.epochs=30 --set optimizer.learning_rate=0.01 \
  --set 'model={name: seq2seq_transformer, layers: 1, heads: 2, width: 16, inner: 16}'
holds "they learn the pairs" python3 -c "
import json
for run in 'pairs', 'pairs-transformer':
    assert json.load(open(f'runs/{run}/summary.json'))['metrics'][0]['mean_model'] > 10, run"
expect 0 "evaluated" "^  BLEU +[0-9.]+$" "^  loss +[0-9.]+$" -- "$hearsay" evaluate runs/pairs
holds "its loss is said once" test "$(grep -c '^  loss' output)" = 1
expect 0 "compared by BLEU" "^run +BLEU +worst" -- "$hearsay" compare runs/pairs runs/pairs-transformer
holds "a vocabulary in the run folder, a line a token" test "$(wc -l <runs/pairs/vocabulary.txt)" -gt 260
holds "that names its run" grep -q "^# $(grep -o 'hearsay-[0-9a-f]\{16\}' runs/pairs/manifest.json | head -n 1)$" \
  runs/pairs/vocabulary.txt
holds "a text has one, too" test -s runs/text/vocabulary.txt
for overwrite in '' --overwrite; do
  expect 0 "a new run replaces it" -- "${pairs[@]}" $overwrite --output runs/twice --set train.iterations=2
done

# ---------------------------------------------------------------- rows of numbers
{ echo "x,z,y"; for i in $(seq 200); do echo "$i,$((i * i % 7)),$((3 * i + 1))"; done; } >line.csv
expect 0 "a regression" "^  rmse of the averaged model +[0-9.e+-]+$" -- "$hearsay" train --progress off \
  text.yaml --set 'model={name: mlp, hidden: []}' --set 'data={name: csv, path: line.csv, batch_size: 20}' \
  --set train.label_smoothing=0 --set 'optimizer={name: sgd, learning_rate: 0.1}' --set train.epochs=60 \
  --output runs/line
# Four lines of unlike spread: what ranks learn alone is nobody's best, and the correction finds the best of all.
awk 'BEGIN { print "x,g,y"; for (i = 0; i < 400; ++i) { g = i % 4; x = (i * 37 % 101 / 50 - 1) * (0.3 + 0.6 * g)
  print x "," g "," (g - 1.5) * 2 * x + g * g } }' >skewed.csv
cat >skewed.yaml <<'YAML'
seed: 3
model: {name: mlp, hidden: []}
data: {name: csv, path: skewed.csv, group: g, batch_size: 100, partition: {name: shards}, test_fraction: 0.05}
optimizer: {name: sgd, learning_rate: 0.1, clip_norm: 1}
train: {epochs: 400, evaluate_every_epochs: 0}
YAML
trained() {
  local run=$1
  shift
  "$mpiexec" "${mpiexec_args[@]}" -n 4 "$hearsay" train skewed.yaml --progress off --output "runs/$run" "$@"
}
events=(--set 'trigger={name: periodic, period: 5, warmup_iterations: 0}')
holds "skewed rows, the best of all" trained all --set 'exchange={name: allreduce}'
holds "without correction" trained biased "${events[@]}" --set 'exchange={name: eventgrad, mixing: {name: arrival}}'
holds "with it" trained corrected "${events[@]}" \
  --set 'exchange={name: eventgrad, mixing: {name: arrival}, correction: {name: drift}}'
holds "clipped gradients do not keep the correction from the best of all" python3 -c "
import json
loss = {run: json.load(open(f'runs/{run}/summary.json'))['loss_mean_model'] for run in ('all', 'biased', 'corrected')}
print(loss)
assert loss['biased'] > 1.05 * loss['all'] and abs(loss['corrected'] / loss['all'] - 1) < 1e-4"
holds "the line is found" python3 -c "
import json
assert json.load(open('runs/line/summary.json'))['metrics'][0]['mean_model'] < 3"

# ---------------------------------------------------------------- arrays and pictures, which Python writes
cat >make.py <<'PYTHON'
import os, struct, zlib
import numpy

rows = numpy.arange(600, dtype="<f4").reshape(200, 3)
numpy.save("x.npy", rows)
numpy.save("y.npy", rows.sum(1))
numpy.save("few.npy", rows[:7])
numpy.save("labels.npy", numpy.arange(200) % 4)


def png(name, colour, side=24):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    line = b"\0" + bytes(colour) * side
    os.makedirs(os.path.dirname(name), exist_ok=True)
    with open(name, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)))
        file.write(chunk(b"IDAT", zlib.compress(line * side)) + chunk(b"IEND", b""))


for i in range(20):
    png(f"pictures/red/{i}.png", (200 + i, i, i))
    png(f"pictures/blue/{i}.png", (i, i, 200 + i))
    png(f"broken/{'red' if i % 2 else 'blue'}/{i}.png", (i, i, i))
PYTHON
if /usr/bin/python3 make.py 2>make.log; then
  expect 0 "a regression on arrays" "^  rmse of the averaged model +[0-9.e+-]+$" -- "${two_ranks[@]}" "${text[@]}" \
    --output runs/npy --set 'model={name: mlp, hidden: []}' --set train.label_smoothing=0 --set train.epochs=3 \
    --set 'data={name: npy, inputs: x.npy, targets: y.npy, batch_size: 10}'
  expect 0 "classes in arrays" "^  accuracy of the averaged model" -- "${two_ranks[@]}" "${text[@]}" \
    --output runs/npy-classes --set 'model={name: mlp, hidden: []}' \
    --set 'data={name: npy, inputs: x.npy, targets: labels.npy, task: classes, partition: {name: shards}}'
  expect 0 "pictures in folders" "^  accuracy of the averaged model" -- "${two_ranks[@]}" "${text[@]}" \
    --output runs/pictures --set 'model={name: resnet20}' --set train.epochs=2 \
    --set 'data={name: image_folder, path: pictures, side: 32, batch_size: 6, augmentation: pad_crop_flip}'
  expect 3 "arrays of unequal length" "few.npy has 7 rows, and .*y.npy 200" -- "${text[@]}" --output runs/none \
    --set 'model={name: mlp}' --set 'data={name: npy, inputs: few.npy, targets: y.npy}'
  head -c 900 x.npy >cut.npy
  expect 3 "an array cut off" "cut.npy: is truncated or damaged: its header says 200 rows of 12 bytes" -- "${text[@]}" \
    --output runs/none --set 'model={name: mlp}' --set 'data={name: npy, inputs: cut.npy, targets: y.npy}'
  for file in broken/*/*.png; do printf '\377\330\377\340 no picture' >"$file"; done
  expect 3 "a corrupt JPEG" "broken/(blue|red)/[0-9]+.png: cannot be read as a picture: .*; mend it or take" -- \
    "${text[@]}" --output runs/broken --set 'model={name: resnet20}' \
    --set 'data={name: image_folder, path: broken, side: 32}'
fi
expect 3 "no folders of pictures" "has 0 folders, and there must be one for each" -- "${text[@]}" --output runs/none \
  --set 'model={name: resnet20}' --set 'data={name: image_folder, path: runs/pairs}'
expect 2 "no file of arrays" "data.inputs is empty" -- "${text[@]}" --output runs/none --set 'model={name: mlp}' \
  --set 'data={name: npy}'

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
cp pairs.de three.de && head -n 3 pairs.en >three.en
printf 'Stra\337e\n' >latin1.de && printf 'street\n' >latin1.en
printf 'Haus\n\nHof\n' >gap.de && printf 'house\nyard\ncourt\n' >gap.en
: >none.de && : >none.en
bad_pairs=("${pairs[@]}" --output runs/none --set)
expect 3 "unequal line counts" "three.de has 12 lines, and .*three.en 3: each line" -- \
  "${bad_pairs[@]}" data.train=three
expect 3 "invalid UTF-8 in one of two files" "latin1.de: at byte 4: is not UTF-8" -- "${bad_pairs[@]}" data.test=latin1
expect 3 "an empty line" "gap.de: line 2 is empty" -- "${bad_pairs[@]}" data.test=gap
expect 3 "an empty file of two" "none.de: is empty" -- "${bad_pairs[@]}" data.train=none
expect 3 "no such files" "missing in .*; tried x.de, x.de.gz, x.de.xz" -- "${bad_pairs[@]}" data.train=x
expect 3 "a line longer than the data allow" "a line to test on has [0-9]+ tokens; set data.length" -- \
  "${bad_pairs[@]}" data.length=22 --set data.vocabulary=259
expect 2 "a vocabulary without room for bytes" "data.vocabulary" -- "${bad_pairs[@]}" data.vocabulary=100
expect 2 "a translator without pairs" "seq2seq takes a sequence of tokens and another one so far.*sequences of 16" -- \
  "${text[@]}" --output runs/none --set model.name=seq2seq
expect 2 "pairs without a translator" "transformer takes sequences of tokens and foretells" -- \
  "${bad_pairs[@]}" 'model={name: transformer}'
expect 3 "no number" "bad.csv: line 3, column 'y': 'z' is no finite number" -- \
  "${data[@]}" 'data={name: csv, path: bad.csv, test_fraction: 0.5}' --set model.name=mlp
printf 'x,y\n1,2\n3,1e300\n' >huge.csv
expect 3 "a target that no float holds" "huge.csv: line 3, column 'y': 1.0e.300 is too large for a target" -- \
  "${data[@]}" 'data={name: csv, path: huge.csv, test_fraction: 0.5}' --set model.name=mlp
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
  for run in pairs pairs-transformer; do
    expect 0 "PyTorch computes the same loss and BLEU" "^loss .*bleu [1-9]" -- \
      /usr/bin/python3 "$source_dir/tests/cli/check_translation.py" "runs/$run" pairs.de pairs.en 40 2
  done
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
  expect 0 "a module that takes fewer tokens" "parameters" -- "${export_model[@]}" text few.pt --vocabulary 20
  expect 2 "a vocabulary that does not fit" "few.pt: .*" -- "${text[@]}" --output runs/none \
    --set 'model={name: torchscript, path: few.pt}'
  expect 0 "a scripted run can be replaced" -- "${text[@]}" --output runs/scripted-text --overwrite \
    --set 'model={name: torchscript, path: text.pt}' --set data.unit=bytes --set train.iterations=2
  expect 0 "one for numbers" "parameters" -- "${export_model[@]}" numbers numbers.pt --inputs 2
  expect 0 "it trains" "rmse of the averaged model" -- "${text[@]}" --output runs/scripted-numbers \
    --set 'model={name: torchscript, path: numbers.pt}' --set train.label_smoothing=0 \
    --set 'data={name: csv, path: line.csv}'
fi

printf '%d checks, %d failures\n' "$checks" "$failures"
[ "$failures" = 0 ] && [ "$checks" -ge 52 ]
