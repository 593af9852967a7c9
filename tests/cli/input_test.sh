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
expect 3 "a FIFO as a network file" "pipe: is a FIFO" -- "$hearsay" plan small.yaml -n 2 --network pipe

printf '%d checks, %d failures\n' "$checks" "$failures"
[ "$failures" = 0 ] && [ "$checks" -ge 11 ]
