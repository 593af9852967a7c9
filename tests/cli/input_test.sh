#!/usr/bin/env bash
# input_test.sh HEARSAY SOURCE_DIR: input that is not what it should be. Every command ends, with a sentence.
source "$(dirname "$0")/expect.sh"

cat >small.yaml <<'YAML'
seed: 3
model: {name: mlp, hidden: [8]}
data: {name: synthetic_digits, train_size: 64, test_size: 32, batch_size: 16}
exchange: {name: dpsgd}
train: {epochs: 1}
YAML

# What a parser may go on with for ever.
printf ',\n' >comma.yaml
expect 2 "a comma in front of everything" "comma.yaml:1:1: not YAML" -- "$hearsay" topology comma.yaml -n 2
expect 2 "a comma as a value" "--set seed=,: not YAML" -- "$hearsay" topology small.yaml -n 2 --set seed=,
head -c 2000000 /dev/zero | tr '\0' '[' >deep.yaml
expect 3 "more than a configuration has" "at most 1048576 are read" -- "$hearsay" topology deep.yaml -n 2
head -c 1000000 /dev/zero | tr '\0' '[' >deep.yaml
expect 2 "deeper than a configuration is" "64 levels" -- "$hearsay" topology deep.yaml -n 2

# What is no file. Opening a FIFO waits for its writer, and there is none.
mkfifo pipe
expect 3 "a FIFO as a configuration" "pipe: is a FIFO, a file was expected" -- "$hearsay" topology pipe -n 2
expect 3 "a FIFO as a configuration of a job" "pipe: is a FIFO" -- "${two_ranks[@]}" "$hearsay" train pipe
expect 3 "a device as a configuration" "/dev/zero: is a device" -- "$hearsay" topology /dev/zero -n 2
expect 3 "a folder as a configuration" "is a folder" -- "$hearsay" topology . -n 2
mkdir data
mkfifo data/train-images-idx3-ubyte data/test_batch.bin
expect 3 "a FIFO as a file of images" "train-images-idx3-ubyte: is a FIFO" -- \
  "$hearsay" train small.yaml --progress off --output runs/fifo --set "data={name: mnist, path: data}"
expect 3 "a FIFO as an edge list" "pipe: is a FIFO" -- \
  "$hearsay" topology small.yaml -n 2 --set "topology.graph={name: edge_list, path: $work/pipe}"
expect 3 "a FIFO as a model to start from" "pipe: is a FIFO, a file was expected; name the model.pt of a run" -- \
  "$hearsay" train small.yaml --progress off --output runs/fifo-model --set "train.initial_model=$work/pipe"
expect 3 "a FIFO as a scripted module" "pipe: is a FIFO, a file was expected; .*torch.jit.script" -- \
  "$hearsay" train small.yaml --progress off --output runs/fifo-module \
  --set "model={name: torchscript, path: $work/pipe}"
expect 3 "a FIFO as a network file" "pipe: is a FIFO" -- "$hearsay" plan small.yaml -n 2 --network pipe

# ---------------------------------------------------------------- files as other programs write them
# rows FORMAT: eight rows of it, of i and of i squared modulo 5.
rows() { awk -v format="$1\n" 'BEGIN { for (i = 0; i < 8; ++i) printf format, i, i * i % 5, i % 2 }'; }
sed 's/^data:.*/data: {name: csv, batch_size: 16}/' small.yaml >file.yaml
of_file=("$hearsay" train file.yaml --progress off --overwrite --output runs/file --set train.iterations=3)
csv=("${of_file[@]}" --set data.test_fraction=0.25 --set data.batch_size=4 --set data.name=csv --set data.path=rows.csv)
{ printf '\xef\xbb\xbfa,b,y\r\n' && rows '%d,%d,%d\r' && printf '\r\n\n'; } >rows.csv
expect 0 "a file of a spreadsheet" "finished" -- "${csv[@]}" --set data.target=a
{ printf '\xef\xbb\xbfa,b,y\n' && rows '%d,%d,%d'; } >rows.csv
expect 0 "a mark of the order of bytes, alone" "finished" -- "${csv[@]}" --set data.target=a
awk 'BEGIN { print "a,b,y"; for (i = 0; i < 40; ++i) print 1700000000 + 10 * i "," i * i % 5 "," i % 2 }' >rows.csv
expect 0 "seconds since 1970" "finished" -- "${csv[@]}" --set data.target=y --set train.iterations=40 \
  --set train.epochs=40
{ echo a,b,y && rows '1,%d,%d,%d'; } >rows.csv
expect 3 "names of rows" "rows.csv: the header has 3 names, line 2 has 4 fields" -- "${csv[@]}" --set data.target=y
{ echo a,b,y && rows '%d,%d,19999999%d'; } >rows.csv
expect 3 "a class of which there are too many" "rows.csv: line 2: the class 199999990 is no whole number from 0 to" -- \
  "${csv[@]}" --set data.task=classes
{ printf 'a,y\n1\033[2J,2\n' && rows '%d,%d'; } >rows.csv
expect 3 "what is shown of a file" "line 2, column 'a': '1.x1b.2J' is no finite number" -- "${csv[@]}"
python3 - <<'PY'
import struct
def save(name, shape, numbers):
    head = "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }" % shape
    head += " " * (-(len(head) + 11) % 64) + "\n"
    with open(name, "wb") as file:
        file.write(b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head.encode())
        file.write(struct.pack("<%df" % len(numbers), *numbers))
save("x.npy", "(16,)", range(16))
save("y.npy", "(16,)", [i % 3 for i in range(16)])
save("y2.npy", "(16, 2, 1)", range(32))
PY
npy=("${of_file[@]}" --set "data={name: npy, inputs: x.npy, targets: y.npy, batch_size: 4}")
expect 0 "a column of inputs" "finished" -- "${npy[@]}"
expect 0 "a column of inputs, and classes" "finished" -- "${npy[@]}" --set data.task=classes
expect 0 "targets of a shape" "finished" -- "${npy[@]}" --set data.targets=y2.npy
mkdir -p pictures/a pictures/b
ln -s self pictures/a/self
expect 3 "a link to itself" "pictures/a/self: is a link that leads nowhere: Too many levels" -- "${of_file[@]}" \
  --set "data={name: image_folder, path: pictures}"
printf '1 2\n2 3\n' >edges
expect 2 "edges from 1, of a simple file" "edges: vertices 1 to 3, and none is 0: are they numbered from 1?" -- \
  "$hearsay" topology small.yaml -n 3 --set "topology.graph={name: edge_list, path: $work/edges}"
printf '\xef\xbb\xbf1 2\r\n2 3\r\n' >edges
expect 2 "edges from 1" "edges: vertices 1 to 3, and none is 0: are they numbered from 1?" "!at least" -- \
  "$hearsay" topology small.yaml -n 3 --set "topology.graph={name: edge_list, path: $work/edges}"
# 47 MB say the header's 60,000 pictures; the file unpacks to 1 GiB, and to no end as far as its reader can know.
mkdir bomb
{ printf '\0\0\10\3\0\0\352\140\0\0\0\34\0\0\0\34' && head -c 1073741824 /dev/zero; } | gzip -1 \
  >bomb/train-images-idx3-ubyte.gz
{ printf '\0\0\10\1\0\0\352\140' && head -c 60000 /dev/zero; } >bomb/train-labels-idx1-ubyte
expect 3 "more than a header says" "train-images-idx3-ubyte.gz: at byte 47040016: .*found more than 47040000" -- \
  bash -c 'ulimit -d 600000; exec "$@"' limited "${of_file[@]}" --set "data={name: mnist, path: bomb}"
rm -r bomb
mkdir lost
expect 3 "a working directory that is gone" "the working directory cannot be found" -- \
  bash -c 'cd lost && rmdir ../lost && exec "$@"' gone "$hearsay" list

# ---------------------------------------------------------------- what cannot be printed
"$hearsay" train small.yaml --progress off --output runs/printed >output 2>&1
for words in "list" "--version" "--help" "list --help" "describe ring" "train small.yaml --dump-config" \
  "train small.yaml --dry-run" "topology small.yaml -n 3" "topology small.yaml -n 3 --dot" "compare runs/printed" \
  "compare runs/printed --json" "watch runs/printed --once" "evaluate runs/printed" "bench" "close runs/printed" \
  "train small.yaml --progress off --overwrite --output runs/printed"; do
  # shellcheck disable=SC2086  # words
  expect 3 "$words on a full disk" "standard output cannot be written" -- \
    bash -c '"$@" >/dev/full' full "$hearsay" $words
done

# What a run folder says, on a terminal.
python3 - <<'PY'
import json
file = "runs/printed/summary.json"
summary = json.load(open(file))
summary.update({key: "\x1b]0;X\x07\x1b[2J\nhearsay: fine" for key in ("status", "message", "model")})
json.dump(summary, open(file, "w"))
PY
for words in "compare runs/printed runs/file" "compare --json runs/printed" "watch --once runs/printed" \
  "close runs/printed"; do
  # shellcheck disable=SC2086  # words
  expect 0 "$words of a folder that would command" '.(x1b|u001b)\]0;X.(x07|u0007).(x1b|u001b)\[2J.nhearsay: fine' \
    "!^hearsay: fine" -- "$hearsay" $words
  holds "$words commands nothing" test -z "$(LC_ALL=C tr -d '\n[:print:]\200-\377' <stdout)"
done
expect 3 "a name that would command" 'hearsay: /no.x1b.2J.nhearsay: fine: ' "!^hearsay: fine" -- \
  "$hearsay" compare $'/no\e[2J\nhearsay: fine'
holds "nothing is obeyed" test -z "$(LC_ALL=C tr -d '\n[:print:]\200-\377' <stderr)"

# ---------------------------------------------------------------- one run a folder
train=("$hearsay" train small.yaml --progress off)
expect 0 "a run" "finished" -- "${train[@]}" --output runs/one
id=$(grep -oE 'hearsay-[0-9a-f]{16}' runs/one/manifest.json | head -n 1)
for file in runs/one/*; do
  [ "$(wc -l <"$file")" = 1 ] && [[ $file == *.csv ]] && continue # one rank sends nothing: a heading
  [[ $file == */state_dict.pt ]] && continue # tensors by their names and nothing else; it goes by model.pt
  holds "$file has the run's name" grep -q "$id" "$file"
done
holds "the lock is gone" test ! -e runs/one/run.lock
expect 0 "another run" "finished" -- "${train[@]}" --output runs/two
cp -r runs/one runs/mixed
cp runs/two/metrics.rank0000.jsonl runs/mixed/
expect 3 "files of two runs" "runs/mixed: files of two runs are mixed: .*hearsay-.*hearsay-" -- \
  "$hearsay" compare runs/one runs/mixed
mkdir own
cp small.yaml own/config.yaml
expect 2 "a configuration of one's own" "own/config.yaml: no run has written this" -- \
  "$hearsay" train own/config.yaml --progress off --output own --overwrite
holds "it is still there" cmp small.yaml own/config.yaml

# Many at the same instant: one trains, the others are told so. Each alone would end well.
same=("${train[@]}" --set train.epochs=30 --output runs/same)
jobs=()
for i in 1 2 3 4; do
  timeout 100 "${same[@]}" >"same.$i" 2>&1 </dev/null &
  jobs+=($!)
done
codes=()
for job in "${jobs[@]}"; do
  wait "$job"
  codes+=($?)
done
checks=$((checks + 1))
cat same.? >output
[ "$(printf '%s\n' "${codes[@]}" | sort | tr '\n' ' ')" = "0 2 2 2 " ] ||
  fail "four runs in one folder at the same instant end with ${codes[*]}, not with one 0 and three 2"
holds "they say why" test "$(grep -cE 'runs/same (is being written by|already holds a run)' output)" = 3
expect 0 "what is there is of one run" "" -- "$hearsay" compare runs/same

# --overwrite on a live run, which goes on; then it is killed, and its lock is nobody's.
timeout 100 "${train[@]}" --set train.epochs=100000 --set report.every_iterations=1 --output runs/live >live.log 2>&1 &
guard=$!
for _ in $(seq 300); do
  [ -s runs/live/manifest.json ] && break
  sleep 0.1
done
live=$(sed -n 's/^process //p' runs/live/run.lock)
expect 2 "a live run is not overwritten" "runs/live is being written by the run hearsay-.*process $live on" -- \
  "${train[@]}" --output runs/live --overwrite
holds "it goes on" kill -0 "$live"
kill -KILL "$live"
wait "$guard" 2>/dev/null
holds "its lock is left" test -e runs/live/run.lock
expect 2 "its files are not overwritten unasked" "runs/live already holds a run" -- "${train[@]}" --output runs/live
expect 0 "a dead one is" "finished" -- "${train[@]}" --output runs/live --overwrite

# Links out of the folder.
echo mine >treasure
mkdir linked
ln -s ../treasure linked/metrics.rank0000.jsonl
expect 2 "a link in the way" "no run has written this" -- "${train[@]}" --output linked --overwrite
holds "nothing was written through it" grep -qx mine treasure

# ---------------------------------------------------------------- a full disk, a folder that is gone
# begins FOLDER: a long run in the background, whose files grow no more once it trains if there is a limit.
begins() {
  (trap '' XFSZ && exec timeout 100 "${train[@]}" --set train.epochs=2000 --set report.every_iterations=1 \
    --output "$1") >"$1.log" 2>&1 </dev/null &
  guard=$!
  for _ in $(seq 300); do
    [ -s "$1/manifest.json" ] && break
    sleep 0.05
  done
}
begins runs/full
prlimit --pid "$(sed -n 's/^process //p' runs/full/run.lock)" --fsize=5000
wait "$guard"
code=$?
cp runs/full.log output
holds "a full disk: the job ends with 3, not $code" test "$code" = 3
cp runs/full.log output
holds "it has trained to its end" grep -q "8,000 iterations: finished" runs/full.log
holds "it says so while it trains" grep -q "warning: .*metrics.rank0000.jsonl .*training goes on" runs/full.log
for file in model.pt metrics.rank0000.jsonl; do
  holds "the end names $file" grep -qE "^  .*$file" runs/full.log
  holds "the summary names $file" grep -q "$file" runs/full/summary.json
done
holds "nobody aborts" test -z "$(grep -E 'terminate|Aborted|internal error' runs/full.log)"
holds "no half of the model is there" test ! -e runs/full/model.pt
holds "nor anything unfinished" test -z "$(find runs/full -name '*.tmp')"
holds "metrics are whole lines" python3 -c \
  'import json; [json.loads(line) for line in open("runs/full/metrics.rank0000.jsonl")]'

begins runs/gone
rm -rf runs/gone
wait "$guard"
code=$?
cp runs/gone.log output
holds "a folder that is removed" test "$code" = 3
holds "is said to be so, and training went on" grep -q "8,000 iterations: finished" runs/gone.log

printf '%d checks, %d failures\n' "$checks" "$failures"
[ "$failures" = 0 ] && [ "$checks" -ge 40 ]
