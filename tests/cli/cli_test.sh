#!/usr/bin/env bash
# cli_test.sh HEARSAY SOURCE_DIR: the program as its users meet it: exit codes, messages, files.
source "$(dirname "$0")/expect.sh"

cat >small.yaml <<'YAML'
seed: 3
model: {name: mlp, hidden: [8]}
data: {name: synthetic_digits, train_size: 256, test_size: 64, batch_size: 16}
optimizer: {name: sgd, learning_rate: 0.05}
topology: {graph: {name: ring}, weights: {name: uniform}}
exchange: {name: eventgrad, schedule: lockstep, mixing: {name: arrival}}
trigger: {name: adaptive, horizon: 1.0, warmup_iterations: 2}
train: {epochs: 2}
report: {directory: runs/small, every_iterations: 4}
YAML
sed -e '/^trigger/d' -e 's/^exchange.*/exchange: {name: dpsgd}/' small.yaml >dpsgd.yaml
train=("$hearsay" train small.yaml --progress off)

# ---------------------------------------------------------------- help, version, usage
expect 0 "help" "topology" "Exit codes" -- "$hearsay" --help
for command in train list describe topology compare watch bench probe plan advise simulate; do
  expect 0 "help of $command" "Examples?:" "hearsay $command" -- "$hearsay" "$command" --help
done
expect 0 "version" "^hearsay +[0-9]+\.[0-9]+" "^MPI +." "^LibTorch +[0-9]" "^compiler +." "^build +." -- \
  "$hearsay" --version
printf '#!/bin/sh\necho simulator got "$@"\n' >simulator && chmod +x simulator
simulate=("$hearsay" simulate small.yaml --platform cluster.xml -n 4)
expect 0 "simulate hands its arguments on" "^simulator got small.yaml --platform cluster.xml -n 4 --compute-s 0.1" -- \
  "${simulate[@]}" --compute-s 0.1 --simulator ./simulator
mkdir alone && cp "$hearsay" alone/hearsay
expect 2 "no simulator at all" "not built yet" "apt-get install libsimgrid-dev" "^  cmake --preset simulator -D" \
  "^  cmake --build --preset simulator --target hearsay-simulator" -- alone/hearsay "${simulate[@]:1}"
expect 3 "plan before probe" "network.yaml: there is no such file; .mpirun -n P hearsay probe." -- \
  "$hearsay" plan small.yaml
expect 2 "no such simulator" "^hearsay: --simulator ./missing: cannot be started" -- \
  "${simulate[@]}" --simulator ./missing
expect 2 "simulate without a platform" "platform" "hearsay simulate --help" -- "$hearsay" simulate small.yaml -n 4
expect 2 "no command" "^hearsay: no command.*--help" -- "$hearsay"
expect 2 "unknown command" "^hearsay: .*(see hearsay --help)" -- "$hearsay" trian small.yaml
expect 2 "unknown option" "^hearsay: .*--fast.*hearsay train --help" -- "$hearsay" train small.yaml --fast
expect 2 "train without a configuration" "^hearsay: no CONFIG" -- "$hearsay" train
expect 2 "unknown progress mode" "^hearsay: .*--progress" -- "$hearsay" train small.yaml --progress loud
expect 2 "dry run and dump together" "^hearsay: " -- "$hearsay" train small.yaml --dry-run --dump-config

# ---------------------------------------------------------------- list, describe
expect 0 "list" "^model " "^dataset " "^partition " "^optimizer " "^graph " "^weights " "^exchange " "^mixing " \
  "^correction " \
  "^trigger " "^selector " "^codec " "^  adaptive  +." "^  ring  +." -- "$hearsay" list
expect 0 "list one kind" "^  adaptive_compounding  " "!ring" -- "$hearsay" list trigger
expect 0 "list in the plural" "^  mnist_cnn" -- "$hearsay" list models
expect 2 "unknown kind" "unknown kind 'trigegr'.*did you mean 'trigger'" -- "$hearsay" list trigegr
expect 0 "describe a trigger" "^adaptive \(trigger\)" "equation +.*slope" "citation +ghosh2021eventgrad" "cost +" \
  "in YAML +trigger: \{name: adaptive\}" "^    horizon: 1" "number in \(0, .* — " "^    warmup_iterations: 30" \
  "^    maximum_silence: 0" -- "$hearsay" describe adaptive
expect 0 "describe a selector" "^    density: 0.1" "in \(0, 1\]" -- "$hearsay" describe topk
expect 0 "describe an exchange: its sections, and what else it uses" "^    residual: merger" \
  "^    feedback.momentum: 0" \
  "^  keys of other sections" "^    sparsify.selector.density: 0.1" "^    sparsify.selector.scope: global" \
  "^    sparsify.codec.name: plain" -- "$hearsay" describe gtopk
expect 0 "describe what has no keys" "no keys of its own" -- "$hearsay" describe ring
expect 0 "a name of two kinds" "^edge_list \(graph\)" "^edge_list \(weights\)" -- "$hearsay" describe edge_list
expect 2 "unknown name, near one" "nothing is called 'adaptiv'.*did you mean 'adaptive'" -- "$hearsay" describe adaptiv
expect 2 "unknown name, near none" "nothing is called 'xyzzy'; .hearsay list" -- "$hearsay" describe xyzzy
"$hearsay" list | sed -n 's/^  \([a-z0-9_]*\)  .*/\1/p' | sort -u >names
holds "list shows many names" test "$(wc -l <names)" -ge 30
mapfile -t names <names
expect 0 "describe everything" "${names[@]/%/ \\(}" -- "$hearsay" describe "${names[@]}"
holds "every entry says how YAML chooses it" test "$(grep -c '^  in YAML ' stdout)" -ge "${#names[@]}"

# ---------------------------------------------------------------- advise
expect 0 "advice says what it rests on" "^# hearsay advise small.yaml --bytes-fraction 0.05$" "docs/results/skew.md" \
  "taken for alike" "^exchange:" "name: drift" -- "$hearsay" advise small.yaml
expect 0 "advice for shares that differ" "^# Shares: dirichlet, alpha 0.1, unlike" -- \
  "$hearsay" advise small.yaml --set 'data.partition={name: dirichlet, alpha: 0.1}'
"$hearsay" advise small.yaml --bytes-fraction 0.3 --set data.partition.name=shards >advised.yaml 2>stderr
expect 0 "what is advised can be run" "parameters" -- "$hearsay" train advised.yaml --dry-run -n 4
"$hearsay" advise advised.yaml --bytes-fraction 0.3 >again.yaml 2>stderr
holds "advice on what was advised is the same" diff <(grep -v '^#' advised.yaml) <(grep -v '^#' again.yaml)
# What it says was measured is what the table says.
results=$source_dir/docs/results/tables/skew.md
for shares in shards iid; do
  for budget in 1 0.2 0.1 0.05 0.022 0.01; do
    "$hearsay" advise small.yaml --bytes-fraction "$budget" --set data.partition.name="$shares" >advised 2>stderr
    name=$(sed -nE 's/^# (.*), corrected, is the most.*/\1/p' advised)
    numbers=$(sed -nE 's/^#   this +([0-9.]+) +([0-9.]+) +[0-9.]+$/\1( ± [0-9.]+)? [|] \2/p' advised)
    holds "$shares, $budget: '$name' has '$numbers' in the table of results" \
      grep -qE "^[|] $name [|] $numbers( ± [0-9.]+)? [|]" "$results"
  done
  beside=$(sed -nE 's/^#   D-PSGD without correction +([0-9.]+) +([0-9.]+) +[0-9.]+$/\1( ± [0-9.]+)? [|] \2/p' advised)
  holds "$shares: D-PSGD has '$beside' in it" grep -qE "^[|] D-PSGD [|] $beside( ± [0-9.]+)? [|]" "$results"
  dense=$(sed -nE 's/^#   \(an all-reduce: ([0-9.]+) %\)$/\1/p' advised)
  holds "$shares: an all-reduce has '$dense' in it" grep -qE "^\| all-reduce \| $dense( |\$)" "$results"
done
expect 0 "no budget is too small for an answer" "None does: it is the cheapest" -- \
  "$hearsay" advise small.yaml --bytes-fraction 1e-6
expect 2 "a budget of nothing" "^hearsay: --bytes-fraction 0: .*in \(0, 1\]; 0.05 is a twentieth" -- \
  "$hearsay" advise small.yaml --bytes-fraction 0

# ---------------------------------------------------------------- topology
expect 0 "ring of 4" "ring of 4 ranks" "directed edges +8$" "degree +2 at every rank" "spectral gap +0.666667" \
  "tenfold in 2.096 iterations" "rank 0: own 0.3333, 1: 0.3333, 3: 0.3333" -- "$hearsay" topology small.yaml -n 4
expect 0 "star of 5" "degree +1 to 4, mean 1.6" -- \
  "$hearsay" topology small.yaml -n 5 --set topology.graph.name=star --set topology.weights.name=metropolis
expect 0 "complete graph" "vanish in one mixing" -- \
  "$hearsay" topology small.yaml -n 6 --set topology.graph.name=complete
one_peer=(--set topology.graph.name=one_peer_exponential)
expect 0 "a graph that changes" "period +2 iterations, 4 directed edges in each" "own 0.5, the peer's 0.5" \
  "vanish in a period of 2 iterations" "rank 3: sends to 0, 1" -- \
  "$hearsay" topology "$source_dir/configs/digits/dpsgd.yaml" -n 4 "${one_peer[@]}"
expect 0 "a graph that changes, dry" "directed edges +2, of which an iteration uses 2" -- \
  "${two_ranks[@]}" "$hearsay" train "$source_dir/configs/digits/dpsgd.yaml" --dry-run "${one_peer[@]}"
expect 2 "a graph that changes under copies that are held" \
  "'one_peer_exponential' changes from iteration to iteration" -- \
  "$hearsay" topology "$source_dir/configs/digits/eventgrad.yaml" -n 4 "${one_peer[@]}"
push_sum=(--set 'exchange={name: push_sum}' --set topology.weights.name=uniform)
expect 0 "a directed graph" "directed edges +8$" "sends to +2 at every rank" "own 0.3333, 2: 0.3333, 3: 0.3333" \
  "spectral gap +0.666667" -- "$hearsay" topology "$source_dir/configs/digits/dpsgd.yaml" -n 4 "${push_sum[@]}" \
  --set topology.graph.name=directed_exponential
expect 2 "a directed graph under dpsgd" "'directed_ring' is directed, .*push_sum" -- \
  "$hearsay" topology "$source_dir/configs/digits/dpsgd.yaml" -n 4 --set topology.graph.name=directed_ring
expect 2 "trackers that do not wait" "schedule: .*no longer sum to the gradients" -- \
  "$hearsay" train "$source_dir/configs/digits/dpsgd.yaml" --dry-run \
  --set 'exchange={name: gradient_tracking, schedule: asynchronous}'
expect 0 "one rank" "1 rank" -- "$hearsay" topology small.yaml -n 1
expect 0 "DOT to stdout, alone" "^graph" "0 ?-- ?1" "!spectral" -- "$hearsay" topology small.yaml -n 4 --dot -
expect 0 "DOT without a file goes to stdout, too" "^graph" "!spectral" -- "$hearsay" topology small.yaml -n 4 --dot
expect 0 "W is shown where it is small" "^rows of W" -- "$hearsay" topology small.yaml -n 8
expect 0 "W is not shown where it is large" "!^rows of W" "--weights shows" -- "$hearsay" topology small.yaml -n 9
expect 0 "W is shown where it is asked for" "^  rank 8: own" -- "$hearsay" topology small.yaml -n 9 --weights
expect 0 "DOT to a file" "spectral gap" -- "$hearsay" topology small.yaml -n 4 --dot ring.dot
holds "the DOT file" grep -q -- "--" ring.dot
expect 3 "DOT to nowhere" "none/x.dot: cannot be written" -- "$hearsay" topology small.yaml -n 4 --dot none/x.dot
expect 2 "a torus of 7" "^hearsay: .*torus.*7" -- "$hearsay" topology small.yaml -n 7 --set topology.graph.name=torus
expect 2 "no ranks" "-n 0" -- "$hearsay" topology small.yaml -n 0
printf '0 1\n2 3\n' >two-pairs.txt
expect 2 "a disconnected edge list" "two-pairs.txt.*connected" -- "$hearsay" topology small.yaml -n 4 \
  --set 'topology.graph={name: edge_list, path: two-pairs.txt}'
printf '0 1 0.9\n1 2 0.9\n0 0 0.5\n1 1 0.5\n2 2 0.5\n' >heavy.txt
expect 2 "weights that are not stochastic" "stochastic|sums? to|row" -- "$hearsay" topology small.yaml -n 3 \
  --set 'topology.graph={name: edge_list, path: heavy.txt}' --set 'topology.weights={name: edge_list, path: heavy.txt}'

# ---------------------------------------------------------------- configuration errors
expect 3 "no such configuration" "none.yaml" -- "$hearsay" train none.yaml
printf 'train: {epochs: [}\n' >broken.yaml
expect 2 "not YAML" "broken.yaml:1:" -- "$hearsay" train broken.yaml
expect 2 "horizon 0" "--set trigger.horizon=0: .*must be in \(0, .*got 0" -- "${train[@]}" --set trigger.horizon=0
expect 2 "horizon below 0" "must be in \(0, .*got -1" -- "${train[@]}" --set trigger.horizon=-1
expect 2 "a rate that is no float" "optimizer.learning_rate: must be in \(0, 1.0?e\+30\], got 1e40" -- \
  "${train[@]}" --set optimizer.learning_rate=1e40
expect 2 "density 0" "must be in \(0, 1\], got 0" -- "${train[@]}" --set 'sparsify.selector={name: topk, density: 0}'
expect 2 "density above 1" "must be in \(0, 1\], got 1.5" -- \
  "${train[@]}" --set 'sparsify.selector={name: topk, density: 1.5}'
sed '/^model/d' small.yaml >nameless.yaml
expect 2 "nothing is trained that nobody named" \
  "nameless.yaml:.* model.name: say what is trained; known: mnist_cnn" -- \
  "$hearsay" train nameless.yaml
sed 's/name: synthetic_digits, //' small.yaml >generated.yaml
expect 0 "data that need no file are the default, and named" "^note: .*synthetic_digits" -- \
  "$hearsay" train generated.yaml --dump-config
sed 's/name: mlp/name: net/' small.yaml >foreign.yaml
expect 2 "a run of another program" "model.name: unknown 'net'; .*manifest.json" -- "$hearsay" train foreign.yaml
expect 2 "unknown model" "model.name: unknown 'mnist_cmn'; known: .*did you mean 'mnist_cnn'" -- \
  "${train[@]}" --set 'model={name: mnist_cmn}'
expect 2 "model that does not fit the data" "resnet18 takes images .*32x32.*28x28" -- \
  "${train[@]}" --set 'model={name: resnet18}'
expect 2 "--set without a value" "--set train.epochs: expected key=value" -- "${train[@]}" --set train.epochs
sed 's/horizon/horizen/' small.yaml >typo.yaml
expect 2 "unknown key" "typo.yaml:7:27: trigger.horizen: unknown key, did you mean 'horizon'" -- \
  "$hearsay" train typo.yaml
sed -e 's/horizon: 1.0/horizen: 1.0/' -e 's/epochs: 2/epochs: two/' -e 's/0.05/-1/' small.yaml >three.yaml
expect 2 "three errors at once" "3 errors" "three.yaml:4:39:.*learning_rate" "three.yaml:7:27:.*horizen" \
  "three.yaml:8:17:.*epochs: expected an integer, got 'two'" -- "$hearsay" train three.yaml
expect 2 "errors say themselves once in a job" "1 error\)" "!rank 1" "!MPI_ABORT" -- \
  "${two_ranks[@]}" "${train[@]}" --set trigger.horizon=0
holds "one message, not two" test "$(grep -c 'invalid configuration' output)" = 1

expect 0 "another trigger: the keys of the file's are left out" \
  "^note: small.yaml:7:27: trigger.horizon is left out: " \
  "!trigger.warmup_iterations" "^  name: constant" -- "${train[@]}" --set trigger.name=constant --dump-config
expect 0 "another exchange: so are whole sections" "^note: small.yaml:7:1: trigger is left out: " \
  "^note: .*exchange.mixing" "^note: small.yaml:5:1: topology" -- \
  "${train[@]}" --set exchange.name=allreduce --dump-config
expect 0 "said once in a job" -- "${two_ranks[@]}" "${train[@]}" --set trigger.name=constant --dump-config
holds "one note, not two" test "$(grep -c '^note: ' output)" = 1
expect 2 "a key that is set itself stays an error" "--set trigger.horizon=2: trigger.horizon: unknown key" -- \
  "${train[@]}" --set trigger.name=constant --set trigger.horizon=2
expect 2 "a slip in the file stays an error" "typo.yaml:7:27: trigger.horizen: unknown key" -- \
  "$hearsay" train typo.yaml --set trigger.name=constant

# ---------------------------------------------------------------- data
mkdir -p fake/mnist fake/cifar10
images() { # images MAGIC COUNT: an IDX file of black images of 28 x 28
  printf "\\x00\\x00\\x08\\x$1\\x00\\x00\\x00\\x$2\\x00\\x00\\x00\\x1c\\x00\\x00\\x00\\x1c"
  head -c $((16#$2 * 784)) /dev/zero
}
labels() { # labels COUNT VALUE: an IDX file of equal labels
  printf "\\x00\\x00\\x08\\x01\\x00\\x00\\x00\\x$1"
  head -c $((16#$1)) /dev/zero | tr '\0' "\\$2"
}
for set in train t10k; do
  images 03 40 >"fake/mnist/$set-images-idx3-ubyte"
  labels 40 003 >"fake/mnist/$set-labels-idx1-ubyte"
done
for batch in data_batch_1 data_batch_2 data_batch_3 data_batch_4 data_batch_5 test_batch; do
  truncate -s 30730000 "fake/cifar10/$batch.bin"
done
mnist=("$hearsay" train small.yaml --dry-run --set 'data={name: mnist, path: fake/mnist}')
expect 0 "well-formed files" "parameters +6,370 in 4 segments" -- "${mnist[@]}"
expect 3 "no data" "none.*(not found|missing|no such|get-data)" -- "${train[@]}" --set 'data={name: mnist, path: none}'
cp -r fake good
head -c 20000 good/mnist/train-images-idx3-ubyte >fake/mnist/train-images-idx3-ubyte
expect 3 "a truncated file" "train-images-idx3-ubyte.*truncated" -- "${mnist[@]}"
images 04 40 >fake/mnist/train-images-idx3-ubyte
expect 3 "a wrong magic number" "train-images-idx3-ubyte.*magic number.*0x00000804" -- "${mnist[@]}"
cp good/mnist/train-images-idx3-ubyte fake/mnist/
labels 40 012 >fake/mnist/train-labels-idx1-ubyte
expect 3 "a label out of range" "train-labels-idx1-ubyte.*label.*10.*0 to 9" -- "${mnist[@]}"
expect 3 "said once in a job" "!rank 1" -- "${two_ranks[@]}" "${mnist[@]}"
holds "one message, not two" test "$(grep -c '^hearsay: ' output)" = 1

# ---------------------------------------------------------------- every configuration that comes with the program
configurations=0
for file in "$source_dir"/configs/*/*.yaml; do
  [[ $file == */configs/sweeps/* ]] && continue   # lists of runs, for scripts/sweep
  [[ $file == */configs/simulate/* ]] && continue # for `hearsay simulate`
  configurations=$((configurations + 1))
  expect 0 "dry run of $file" "directed edges +0$" "parameters +[0-9,]+ in [0-9]+ segments" "iterations +[0-9]" \
    "spectral gap +1" "window" "bytes per iteration" -- env HEARSAY_DATA=good "$hearsay" train "$file" --dry-run
done
holds "there are configurations" test "$configurations" -ge 9
holds "dry runs write nothing" test ! -e runs
expect 2 "a device that does not exist" "train.device: unknown 'tpu'; known: cpu, cuda" -- \
  "$hearsay" train small.yaml --dry-run --set train.device=tpu
expect 0 "a dry run needs no GPU" "ring of" -- "$hearsay" train small.yaml --dry-run --set train.device=cuda
if ! ls /dev/nvidia[0-9]* >/dev/null 2>&1; then
  expect 4 "no GPU" "train.device is cuda.*finds no GPU.*train.device: cpu" -- "${train[@]}" --set train.device=cuda
fi
expect 0 "dry run of ranks that nobody started" "ring of 16 ranks" "directed edges +32$" -- \
  "$hearsay" train small.yaml --dry-run -n 16
expect 2 "dry run of no ranks" "-n 0: a job has at least 1 rank" -- "$hearsay" train small.yaml --dry-run -n 0
expect 2 "mpirun says how many train" "^hearsay: .*--dry-run" -- "${train[@]}" -n 2
expect 0 "dry run of two ranks" "ring of 2 ranks" "directed edges +2$" -- \
  "${two_ranks[@]}" "$hearsay" train small.yaml --dry-run

# ---------------------------------------------------------------- the complete configuration
expect 0 "dump" "^  horizon: 1$" "^  maximum_silence: 0$" -- "$hearsay" train small.yaml --dump-config
cp stdout dumped.yaml
expect 0 "dump of the dump" -- "$hearsay" train dumped.yaml --dump-config
holds "the dump reads back equal" cmp stdout dumped.yaml
expect 0 "--set, --output and --overwrite are in the dump" "horizon: 0.5" "directory: .else where." \
  "overwrite: true" -- \
  "$hearsay" train small.yaml --set trigger.horizon=0.5 --output "else where" --overwrite --dump-config

# ---------------------------------------------------------------- training
expect 0 "train alone" "1 rank, 32 iterations: finished" "accuracy of the averaged model +[0-9.]+ %" \
  "run folder +runs/small" "averaged model +runs/small/model.pt" -- "${train[@]}"
for file in manifest.json config.yaml metrics.rank0000.jsonl summary.json communication.csv segments.csv staleness.csv \
  model.pt; do
  holds "the run wrote $file" test -s "runs/small/$file"
done
holds "progress off is silent" test ! -s stderr
expect 2 "an existing run" "runs/small already holds a run.*--overwrite" "!MPI_ABORT" -- "${train[@]}"
cp -r runs/small before
expect 0 "the run's own configuration, again" "finished" -- \
  "$hearsay" train runs/small/config.yaml --progress off --overwrite
grep replica_hash -A1 runs/small/summary.json >hash-after
grep replica_hash -A1 before/summary.json >hash-before
holds "equal configuration, equal replica" cmp hash-before hash-after
expect 3 "a folder that cannot be made" "/proc/hearsay.*--output" -- "${train[@]}" --output /proc/hearsay
expect 0 "progress in lines" "iter 32/32 · epoch 2/2 · loss [0-9.]+ · sent .* it/s · left " "evaluation at iter" -- \
  "$hearsay" train small.yaml --progress lines --output runs/lines
expect 5 "diverged" "^hearsay: .*diverged at iteration [0-9]+" "last finite loss|no finite loss" "learning_rate" -- \
  "${train[@]}" --set optimizer.learning_rate=1e20 --output runs/diverged
holds "its summary says so" grep -q '"status": "diverged"' runs/diverged/summary.json
expect 5 "diverged in a job" "^hearsay: \[rank [01]\] .*diverged at iteration" -- \
  "${two_ranks[@]}" "${train[@]}" --set optimizer.learning_rate=1e20 --output runs/diverged-2

expect 0 "no model is saved that is not wanted" "!averaged model +runs" -- \
  "${train[@]}" --set report.save_model=false --output runs/unsaved
holds "none is there" test ! -e runs/unsaved/model.pt
expect 0 "asynchronous, evaluated on the way" "evaluation at iter 16 · epoch 1 " "evaluation at iter 3[2-9] " -- \
  "$hearsay" train small.yaml --set exchange.schedule=asynchronous --output runs/asynchronous
holds "models that were left on the way are gone" test ! -e runs/asynchronous/snapshots.rank0000.bin
expect 0 "asynchronous, evaluated at its end only" "!evaluation at iter 16 " -- "$hearsay" train small.yaml \
  --output runs/asynchronous-2 --set exchange.schedule=asynchronous --set train.evaluate_every_epochs=0
expect 0 "seconds end a run" "finished" "!32 iterations" -- "$hearsay" train small.yaml --output runs/seconds \
  --set train.epochs=100000 --set train.seconds=1
expect 2 "a budget of the job needs ranks that do not wait" "schedule: asynchronous" -- \
  "$hearsay" train small.yaml --set train.budget=job
expect 0 "train on two ranks" "age of mixed copies, iterations +mean [0-9.]+, at most [0-9]+" \
  "2 ranks, 16 iterations: finished" "messages +[0-9,]+ \([0-9.]+ % of D-PSGD's\)" -- \
  "${two_ranks[@]}" "${train[@]}" --output runs/event
expect 0 "the baseline on two ranks" "messages +128 \(100.0 % of D-PSGD's\)" -- \
  "${two_ranks[@]}" "$hearsay" train dpsgd.yaml --progress off --output runs/dpsgd
for rank in 0000 0001; do holds "rank $rank wrote its metrics" test -s "runs/dpsgd/metrics.rank$rank.jsonl"; done

# ---------------------------------------------------------------- the global path
three_ranks=("$mpiexec" "${mpiexec_args[@]}" -n 3)
sed -e '/^trigger/d; /^topology/d' -e 's/^exchange.*/exchange: {name: allreduce}/' small.yaml >sum.yaml
sum=("$hearsay" train sum.yaml --progress off --set)
expect 2 "nodes of unequal size" "^hearsay: exchange.node_size: nodes of 2 ranks cannot be made of 3 ranks" \
  "!MPI_ABORT" -- \
  "${three_ranks[@]}" "${sum[@]}" 'exchange={name: hitopk, node_size: 2}' --output runs/unequal
holds "no run was begun" test ! -e runs/unequal

# ---------------------------------------------------------------- signals
long=("${train[@]}" --set train.epochs=100000 --output)
stops() { # stops SIGNAL CODE FOLDER COMMAND…
  local signal=$1 code=$2 folder=$3 actual pid
  shift 3
  checks=$((checks + 1))
  "$@" >stopped.log 2>&1 </dev/null &
  pid=$!
  for _ in $(seq 300); do
    [ -s "$folder/metrics.rank0000.jsonl" ] && break
    sleep 0.1
  done
  kill -s "$signal" "$pid"
  (sleep 60 && kill -KILL "$pid") 2>/dev/null &
  local guard=$!
  wait "$pid" 2>/dev/null
  actual=$?
  kill "$guard" 2>/dev/null
  [ "$actual" = "$code" ] || fail "SIG$signal: exit code $actual, expected $code"
  grep -q '"status": "stopped"' "$folder/summary.json" || fail "SIG$signal: the summary does not say that it stopped"
}
stops TERM 143 runs/stopped "${long[@]}" runs/stopped
holds "the message names the signal" grep -q "hearsay: stopped by signal 15" stopped.log

# ---------------------------------------------------------------- compare
expect 0 "compare" "^run +accuracy +worst +consensus +messages +% of +bytes +% of +time per" \
  "^dpsgd +[0-9.]+ % +[0-9.]+ % +[0-9.e-]+ +128 +100.0 +[0-9.]+ .B +100.0 +[0-9.]+ (µs|ms|s)" "^event +" "!note" -- \
  "$hearsay" compare runs/dpsgd runs/event/
holds "at most 100 columns" test "$(wc -L <stdout)" -le 100
expect 0 "compare what should not be" "^note: small is another experiment.*ranks 1 \(baseline: 2\)" \
  "^note: diverged diverged after 0 iterations|^note: diverged diverged after [0-9]+ iteration" \
  "^note: stopped stopped" \
  "^diverged +– +– +–" -- "$hearsay" compare runs/dpsgd runs/small runs/diverged runs/stopped
expect 0 "compare as JSON" '"baseline": "dpsgd"' '"messages_of_baseline": 1.0' '"status": "finished"' \
  '"notes": \[\]' -- \
  "$hearsay" compare runs/dpsgd runs/event --json
expect 3 "compare with no run" "two-pairs.txt|none: no summary.json: not a run folder" -- \
  "$hearsay" compare runs/dpsgd none
rm before/summary.json
expect 3 "compare with a run that goes on" "before: no summary.json: the run is still going on" -- \
  "$hearsay" compare before
expect 2 "compare nothing" "^hearsay: RUN" -- "$hearsay" compare

# ---------------------------------------------------------------- watch
expect 0 "watch a finished run" "^event: eventgrad, mlp on synthetic_digits, 2 ranks, finished, accuracy [0-9.]+ %" \
  "^rank +iteration +epoch +it/s +loss +messages +sent +stale +heard" "heard: " "^1 +16/16 +2.00 " \
  "^loss of rank 0 .*▁.* [0-9.]+$" \
  "^edges .*0→1 [0-9.]+ .?B/s" -- "$hearsay" watch runs/event
expect 3 "watch nothing" "none: no manifest.json: not a run folder" -- "$hearsay" watch none
expect 2 "watch too often" "--every 0: must be 0.1" -- "$hearsay" watch runs/event --every 0
expect 0 "watch a run that goes on" "running|diverged" -- "$hearsay" watch --once before
touch -d "10 minutes ago" before/*
expect 0 "watch a run that was killed" "no news for 10 min .*probably dead" -- "$hearsay" watch --once before

# ---------------------------------------------------------------- bench
expect 0 "bench alone lists what there is" "^collectives  ." "hearsay bench NAME --help" -- "$hearsay" bench
expect 0 "help of a bench" "--density .*0.001,0.01" "Examples:" -- "$hearsay" bench collectives --help
expect 2 "unknown bench" \
  "^hearsay: unknown bench 'colectives'; known: collectives, exchanges, training" "did you mean 'collectives'" -- \
  "$hearsay" bench colectives
bench=("$hearsay" bench collectives)
expect 2 "bench with one rank" "^hearsay: bench collectives .*at least two.*mpirun" -- "${bench[@]}"
expect 2 "bench at density 0" "^hearsay: --density 0: .*\(0, 1\]" -- "${bench[@]}" --density 0.1,0
expect 2 "bench above density 1" "^hearsay: --density 1.5: .*\(0, 1\]" -- "${bench[@]}" --density 1.5
expect 2 "bench of no values" "^hearsay: --values 0: .*whole number" -- "${bench[@]}" --values 0
expect 2 "bench of half a value" "^hearsay: --values 1.5: .*whole number" -- "${bench[@]}" --values 1e3,1.5
expect 2 "bench with no calls" "^hearsay: --calls 0: at least 1" -- "${bench[@]}" --calls 0
expect 2 "bench for less than no time" "^hearsay: --seconds -1: .*0 or more" -- "${bench[@]}" --seconds -1
expect 2 "bench with an unknown option" "^hearsay: .*--fast.*hearsay bench" -- "${bench[@]}" --fast
expect 2 "said once in a job" "^hearsay: --density 0" -- "${two_ranks[@]}" "${bench[@]}" --density 0
holds "one message, not two" test "$(grep -c '^hearsay: ' output)" = 1
tiny=("${two_ranks[@]}" "${bench[@]}" --values 1000,7 --density 0.01,1 --calls 3)
number='[0-9.]+ (µs|ms|s)'
expect 0 "bench of two ranks" "^bench collectives: 20 steps, at most about 40.0 s" \
  "^2 ranks on 1 machine" "^α  $number a message, β  .* ns a word" "^1,000 values$" "^7 values$" \
  "^library +dense +3 +$number +$number +$number +[0-9.]+ +4.00 kB$" \
  "^ring +dense +3 +$number +$number +$number +[0-9.]+ +4.00 kB$" \
  "^topk +0.01 +10 +3 +$number .* 112 B$" "^gtopk_naive +0.01 +10 +3 .* 112 B$" "^gtopk_tree +0.01 +10 +3 .* 88 B$" \
  "^gtopk_butterfly +1 +1,000 +3 " "^merge .* $number \(target: at most 1.00 ms\)" "times r \+= g alone" -- "${tiny[@]}"
holds "at most 100 columns" test "$(wc -L <stdout)" -le 100
expect 0 "bench as JSON" '"algorithm": "gtopk_butterfly"' '"alpha_s": [0-9]' '"target_ratio": 1.5' -- \
  "${tiny[@]}" --json
holds "it is JSON" python3 -c 'import json, sys; assert len(json.load(open("stdout"))["collectives"]) == 20'
expect 0 "bench of three ranks" "^3 ranks" "^gtopk_butterfly +0.3 +15 +2 " -- \
  "$mpiexec" "${mpiexec_args[@]}" -n 3 "${bench[@]}" --values 50 --density 0.3 --calls 2

printf '%d checks, %d failures\n' "$checks" "$failures"
[ "$failures" = 0 ] && [ "$checks" -ge 145 ]
