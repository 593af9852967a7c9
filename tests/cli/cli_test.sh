#!/usr/bin/env bash
# cli_test.sh HEARSAY SOURCE_DIR: the program as its users meet it, without training: exit codes, messages, files.
source "$(dirname "$0")/expect.sh"
source "$(dirname "$0")/small.sh"

# ---------------------------------------------------------------- help, version, usage
expect 0 "help" "topology" "Exit codes" -- "$hearsay" --help
for command in train list describe topology compare watch bench probe plan simulate; do
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
expect 2 "a job by -n" "^hearsay: -n 4: .*hearsay launch -n 4 hearsay train" -- "$hearsay" train small.yaml -n 4
expect 2 "unknown progress mode" "^hearsay: --progress: 'loud' is none of auto, bar, lines and off" -- \
  "$hearsay" train small.yaml --progress loud
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
  "^    maximum_silence: 0" "a frozen layer saves nothing" -- "$hearsay" describe adaptive
expect 0 "describe a section" "^train \(section\)" "^    epochs: 10" "^    checkpoint.every_s: " \
  "all ranks drop the same units" -- "$hearsay" describe train
expect 0 "describe what all data have" "^    shuffle: true" "^    batch_size: 64" -- "$hearsay" describe data
expect 0 "describe the learning rate and the report" "^    learning_rate: " "^    overwrite: false" \
  "^    directory: runs/EXCHANGE-MODEL$" "save the model yourself" -- \
  "$hearsay" describe optimizer report
expect 0 "describe a selector" "^    density: 0.1" "in \(0, 1\]" -- "$hearsay" describe topk
expect 0 "describe an exchange: its sections, and what else it uses" "^    residual: merger" \
  "^    feedback.momentum: 0" \
  "^  keys of other sections" "^    sparsify.selector.density: 0.1" "^    sparsify.selector.scope: global" \
  "^    sparsify.codec.name: plain" -- "$hearsay" describe gtopk
expect 0 "describe a rule: in which order it is the cited algorithm" "Algorithm 1, whose order is" -- \
  "$hearsay" describe difference
expect 2 "nothing is advised that was measured long ago" "not expected: advise" -- "$hearsay" advise
expect 0 "describe what has no keys" "no keys of its own" -- "$hearsay" describe ring
expect 0 "a name of two kinds" "^edge_list \(graph\)" "^edge_list \(weights\)" -- "$hearsay" describe edge_list
expect 2 "unknown name, near one" "nothing is called 'adaptiv'.*did you mean 'adaptive'" -- "$hearsay" describe adaptiv
expect 2 "unknown name, near none" "nothing is called 'xyzzy'; .hearsay list" -- "$hearsay" describe xyzzy
"$hearsay" list | sed -n 's/^  \([a-z0-9_]*\)  .*/\1/p' | sort -u >names
holds "list shows many names" test "$(wc -l <names)" -ge 30
mapfile -t names <names
expect 0 "describe everything" "${names[@]/%/ \\(}" -- "$hearsay" describe "${names[@]}"
holds "every entry says how YAML chooses it" test "$(grep -c '^  in YAML ' stdout)" -ge "${#names[@]}"

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
expect 2 "more edges than can be held" "'complete': 100000 ranks have 4999950000 edges, .*fewer ranks" -- \
  "$hearsay" topology small.yaml -n 100000 --set topology.graph.name=complete
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
expect 2 "more images than can be held" "data.train_size: must be in \[1, .*got 4000000000" -- \
  "${train[@]}" --set 'data={name: synthetic_images, train_size: 4000000000}'
expect 2 "a layer of more than a million" "model.hidden\[0\]: must be in .*got 9000000000000000000" -- \
  "${train[@]}" --set 'model.hidden=[9000000000000000000]'
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

sed 's/^exchange.*/exchange: {name: allreduce}/' small.yaml >idle.yaml
expect 2 "sections that the exchange does not use" \
  "idle.yaml:7:1: trigger: exchange 'allreduce' does not use this section: .*eventgrad" \
  "idle.yaml:5:1: topology: exchange 'allreduce'" "!unknown key" -- "$hearsay" train idle.yaml
expect 2 "a file of hearsay simulate" "simulate: is for .hearsay simulate" -- \
  "${train[@]}" --set simulate.compute_s=1
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
  [[ $file == */gpt2.yaml ]] && continue          # a model of its size takes two minutes
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
expect 2 "dry run of too many ranks" "-n 100000000: a job has at most 1,000,000 ranks" -- \
  "$hearsay" train small.yaml --dry-run -n 100000000
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

printf '%d checks, %d failures\n' "$checks" "$failures"
[ "$failures" = 0 ] && [ "$checks" -ge 130 ]
