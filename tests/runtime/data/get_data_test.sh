#!/usr/bin/env bash
# scripts/get-data without a network: mirrors are folders (file URLs). Usage: get_data_test.sh SCRIPT
set -euo pipefail

script=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
checks=0

# Runs the command; expects exit code $1 and text $2 (a fixed string) in what it prints.
expect() {
  local code=$1 text=$2 got=0
  shift 2
  "$@" >"$work/output" 2>&1 || got=$?
  checks=$((checks + 1))
  if [[ $got -ne $code ]] || ! grep -qF -- "$text" "$work/output"; then
    printf 'FAILED: %s\n  exit code %s, expected %s; expected text: %s\n' "$*" "$got" "$code" "$text"
    sed 's/^/  | /' "$work/output"
    exit 1
  fi
}

mirrored() { HEARSAY_DATA_MIRRORS=$1 "$script" "${@:2}"; }

expect 0 "Usage: scripts/get-data NAME DIR" "$script" --help
expect 2 "needs two arguments" "$script"
expect 2 "no data set 'imagenet'; known: mnist, cifar10, shakespeare, multi30k" "$script" imagenet "$work/data"
touch "$work/file"
expect 3 "cannot be created or written" "$script" mnist "$work/file/below"

expect 3 "no network, or the mirrors are gone" mirrored "file://$work/nowhere" mnist "$work/data"
expect 3 "no network, or the mirrors are gone" mirrored "file://$work/nowhere" cifar10 "$work/data"

# A damaged copy is refused and leaves nothing behind under the file's name.
mkdir "$work/damaged"
printf 'not the data' | gzip >"$work/damaged/train-images-idx3-ubyte.gz"
expect 3 "wrong checksum" mirrored "file://$work/damaged" mnist "$work/data"
[[ -z $(ls -A "$work/data/mnist") ]]

# CIFAR-10's archive is stood in for by a small one, whose checksum is put into a copy of the script.
mkdir -p "$work/cifar/cifar-10-batches-bin" "$work/scripts"
for file in data_batch_{1..5}.bin test_batch.bin batches.meta.txt; do
  head -c 30730000 /dev/zero >"$work/cifar/cifar-10-batches-bin/$file"
done
tar -czf "$work/cifar/cifar-10-binary.tar.gz" -C "$work/cifar" cifar-10-batches-bin
sum=$(md5sum <"$work/cifar/cifar-10-binary.tar.gz" | cut -d ' ' -f 1)
sed "s/c32a1d4ab5d03f1284b67883e8d87530/$sum/" "$script" >"$work/scripts/get-data"
chmod +x "$work/scripts/get-data"
expect 3 "wrong checksum" mirrored "file://$work/cifar" cifar10 "$work/data"
script=$work/scripts/get-data
expect 0 "done:" mirrored "file://$work/nowhere file://$work/cifar" cifar10 "$work/data"
[[ $(find "$work/data/cifar10" -type f | wc -l) -eq 7 ]]
expect 0 "already there" mirrored "file://$work/nowhere" cifar10 "$work/data"
truncate -s 1000 "$work/data/cifar10/data_batch_3.bin"
expect 3 "no network" mirrored "file://$work/nowhere" cifar10 "$work/data"

# The real files, where they are: fetched once, then found intact, then repaired.
if [[ -f ${HEARSAY_DATA:-}/mnist/train-images-idx3-ubyte.gz ]]; then
  source=file://$(realpath "$HEARSAY_DATA/mnist")
  expect 0 "done:" mirrored "$source" mnist "$work/data"
  expect 0 "already there" mirrored "file://$work/nowhere" mnist "$work/data"
  printf 'broken' >"$work/data/mnist/t10k-labels-idx1-ubyte.gz"
  expect 0 "fetching" mirrored "$source" mnist "$work/data"
  cmp "$work/data/mnist/t10k-labels-idx1-ubyte.gz" "$HEARSAY_DATA/mnist/t10k-labels-idx1-ubyte.gz"
fi
if [[ -n ${HEARSAY_DATA:-} && -d $HEARSAY_DATA/shakespeare ]]; then
  expect 0 "done:" mirrored "file://$HEARSAY_DATA/shakespeare" shakespeare "$work/data"
  cmp "$work/data/shakespeare/input.txt" "$HEARSAY_DATA/shakespeare/input.txt"
fi
printf '%d checks passed\n' "$checks"
