#!/usr/bin/env bash
# network_test.sh HEARSAY SOURCE_DIR: what measures and predicts networks, and ranks that do not belong together.
source "$(dirname "$0")/expect.sh"

number='[0-9.e-]+ (µs|ms|s)'
bytes='[0-9.]+ (bytes|kB|MB|GB)'

# ---------------------------------------------------------------- probe
expect 2 "probe with one rank" "^hearsay: a network needs two ranks: mpirun" -- "$hearsay" probe
expect 3 "probe into no folder" "^hearsay: .*nowhere/network.yaml: cannot be written" -- \
  "${two_ranks[@]}" "$hearsay" probe -o nowhere/network.yaml
expect 0 "probe" "^2 ranks on 1 host" "^rank 0 and 1, same host +$number" "^memory +[0-9.]+ GB/s" \
  "^selection +$number" \
  "^4\.00 MB +[0-9.]+ +[0-9.]+" "^merge +$number" "^written to network.yaml" -- "${two_ranks[@]}" "$hearsay" probe
holds "the file says what was measured" grep -q "^between: {alpha_s: [0-9.e-]*, beta_s_per_word: [0-9.e-]*}" \
  network.yaml
holds "and how much longer messages take together" grep -q "^  bytes_4000000: {crossing: [0-9.]*, shifting: [0-9.]*}$" \
  network.yaml

# ---------------------------------------------------------------- plan
plan=("$hearsay" plan "$source_dir/configs/digits/dpsgd.yaml")
expect 0 "plan" "^[0-9,]+ parameters in [0-9]+ segments, 8 ranks on 1 host, graph ring, density 0.01" \
  "^dpsgd +8 +$bytes +$number +$number +$number" "^gtopk, tree +" "^among all ranks, fastest: " \
  "^with neighbours only, fastest: " -- "${plan[@]}" -n 8 --compute 0.01
holds "at most 100 columns" test "$(wc -L <stdout)" -le 100
for exchange in $("$hearsay" list exchange | awk 'NF > 1 && $1 != "exchange" && $1 ~ /^[a-z_]+$/ { print $1 }'); do
  holds "plan knows $exchange" grep -q "^$exchange" stdout
done
# A network without latency whose bytes cost much, and one that costs nothing but work in memory.
cat >slow.yaml <<'YAML'
ranks: 2
hosts: 2
inside: {alpha_s: 0, beta_s_per_word: 0}
between: {alpha_s: 0, beta_s_per_word: 1}
memory_s_per_byte: 0
selection_s_per_value: 0
merge_s_per_entry: 0
YAML
sed 's/beta_s_per_word: 1/beta_s_per_word: 0/; s/^\(sel\|mer\)\(.*\): 0/\1\2: 1/' slow.yaml >free.yaml
expect 0 "plan where bytes are dear" "among all ranks, fastest: +sparseloco" \
  -- "${plan[@]}" --network slow.yaml -n 16 --compute 0 --density 0.001
expect 0 "plan where they are free: dense" "among all ranks, fastest: +allreduce" \
  -- "${plan[@]}" --network free.yaml -n 16 --compute 0
expect 0 "plan with the probed ranks, computing measured" "2 ranks on 2 hosts" "^forward and backward pass $number" -- \
  "${plan[@]}" --network slow.yaml
expect 0 "plan on a graph that changes: one packet, and nothing with held copies" "^dpsgd +4 " "!^eventgrad" -- \
  "${plan[@]}" -n 8 --compute 0.01 --set topology.graph.name=one_peer_exponential
expect 3 "plan without a network" "none.yaml" -- "${plan[@]}" --network none.yaml
sed 's/^hosts: 2/host: 2/' slow.yaml >wrong.yaml
expect 2 "plan with a wrong network" "wrong.yaml:2:1: host: unknown key, did you mean 'hosts'" \
  -- "${plan[@]}" --network wrong.yaml
expect 2 "plan for no ranks" "^hearsay: -n 0: .*at least 1 rank" -- "${plan[@]}" -n 0
expect 2 "plan for no hosts" "^hearsay: --hosts 0: .*at least 1 host" -- "${plan[@]}" --hosts 0
expect 2 "plan for more hosts than ranks" "^hearsay: --hosts 5: 4 ranks" -- "${plan[@]}" -n 4 --hosts 5
expect 2 "plan at density 2" "^hearsay: --density 2: .*\(0, 1\]" -- "${plan[@]}" --density 2
expect 2 "plan for -1 events" "^hearsay: --events -1: " -- "${plan[@]}" --events -1
expect 2 "plan for less than no time" "^hearsay: --compute -1: " -- "${plan[@]}" --compute -1

# ---------------------------------------------------------------- bench exchanges
bench=("$hearsay" bench exchanges)
expect 2 "bench with one rank" "^hearsay: an exchange needs two ranks" -- "${bench[@]}"
expect 2 "bench of no values" "^hearsay: --values 0: a whole number" -- "${bench[@]}" --values 0
expect 2 "bench of no segments" "^hearsay: --segments 0: " -- "${bench[@]}" --segments 0
expect 2 "bench of no iterations" "^hearsay: --iterations 0: " -- "${bench[@]}" --iterations 0
expect 0 "bench of every exchange" "^2 ranks of 2,000 values in 4 segments, density 0.1" \
  "^dpsgd +8.10 kB +8.10 kB +$number" "^allreduce +8.00 kB +8.00 kB " "^topk +1.63 kB +1.63 kB " \
  "^gradient_dropping +" -- \
  "${two_ranks[@]}" "${bench[@]}" --values 2000 --segments 4 --density 0.1 --iterations 2 --network network.yaml

# ---------------------------------------------------------------- ranks that do not belong together
cat >tiny.yaml <<'YAML'
model: {name: mlp, hidden: [8]}
data: {name: synthetic_digits, train_size: 64, test_size: 16, batch_size: 16}
exchange: {name: dpsgd}
train: {epochs: 1}
report: {directory: runs/tiny}
YAML
cp "$hearsay" another && printf 'another build' >>another
train=(train tiny.yaml --progress off)
expect 2 "two builds" "program of rank 1 is another build than that of rank 0" -- \
  "$mpiexec" "${mpiexec_args[@]}" -n 1 "$hearsay" "${train[@]}" : -n 1 ./another "${train[@]}"
expect 2 "two configurations" "configuration of rank 1 differs from that of rank 0" -- \
  "$mpiexec" "${mpiexec_args[@]}" -n 1 "$hearsay" "${train[@]}" : -n 1 "$hearsay" "${train[@]}" --set seed=8
expect 0 "an earlier run" "finished" -- "${two_ranks[@]}" "$hearsay" "${train[@]}"
cp runs/tiny/summary.json earlier.json
expect 2 "two configurations over an earlier run" "configuration of rank 1 differs" -- "$mpiexec" "${mpiexec_args[@]}" \
  -n 1 "$hearsay" "${train[@]}" --overwrite : -n 1 "$hearsay" "${train[@]}" --overwrite --set seed=8
holds "the earlier run is still there" cmp runs/tiny/summary.json earlier.json
tiny_bench=(bench exchanges --values 2000 --segments 4 --iterations 2)
expect 2 "a bench of two builds" "program of rank 1 is another build than that of rank 0" -- \
  "$mpiexec" "${mpiexec_args[@]}" -n 1 "$hearsay" "${tiny_bench[@]}" : -n 1 ./another "${tiny_bench[@]}"
expect 2 "a bench with two densities" "options of rank 1 differ from those of rank 0" -- \
  "$mpiexec" "${mpiexec_args[@]}" -n 1 "$hearsay" "${tiny_bench[@]}" --density 0.1 : \
  -n 1 "$hearsay" "${tiny_bench[@]}" --density 0.2
expect 2 "a probe of two builds" "program of rank 1 is another build than that of rank 0" -- \
  "$mpiexec" "${mpiexec_args[@]}" -n 1 "$hearsay" probe : -n 1 ./another probe
cat >sparse.yaml <<'YAML'
model: {name: mlp, hidden: [8]}
data: {name: synthetic_digits, train_size: 64, test_size: 16, batch_size: 16}
exchange: {name: topk}
sparsify: {selector: {name: topk, density: 0.1}}
train: {epochs: 1}
report: {directory: runs/sparse}
YAML
expect 2 "two densities" "configuration of rank 1 differs from that of rank 0" -- "$mpiexec" "${mpiexec_args[@]}" \
  -n 1 "$hearsay" train sparse.yaml : -n 1 "$hearsay" train sparse.yaml --set sparsify.selector.density=0.2

# ---------------------------------------------------------------- launchers that MPI does not know
rm -rf runs/alone
alone=("$hearsay" "${train[@]}" --output runs/alone)
expect 2 "a pod" "^hearsay: an indexed job of Kubernetes has started several .*, but MPI .*" -- \
  env JOB_COMPLETION_INDEX=0 "${alone[@]}"
another_mpi=(PMI_SIZE=2 PMI_RANK=0)
if [[ $("$hearsay" --version) == *MPICH* ]]; then another_mpi=(OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=0); fi
expect 2 "the launcher of another MPI" "has started 2 processes that may be on several hosts.*mpi(run|exec) -n 2" -- \
  env "${another_mpi[@]}" "${alone[@]}"
expect 2 "a benchmark" "^hearsay: srun has started 2 processes" -- env SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=0 \
  "$hearsay" probe --output runs/alone
holds "nothing is written" test ! -e runs/alone
expect 0 "one process on purpose" finished -- env RANK=1 WORLD_SIZE=2 "$mpiexec" "${mpiexec_args[@]}" -n 1 "${alone[@]}"
expect 0 "a shell of salloc" finished -- env SLURM_NTASKS=4 SLURM_JOB_ID=7 SLURM_PROCID=0 WORLD_SIZE=1 RANK=0 \
  "${alone[@]}" --overwrite

# ---------------------------------------------------------------- a container's shared memory
# 77 MB of windows, and 64 MB of shared memory, as containers have it.
cat >wide.yaml <<'YAML'
model: {name: mlp, hidden: [4000]}
data: {name: synthetic_digits, train_size: 64, test_size: 16, batch_size: 16}
exchange: {name: dpsgd}
train: {iterations: 2}
report: {directory: runs/wide, overwrite: true, save_model: false}
YAML
wide=("${two_ranks[@]}" "$hearsay" train wide.yaml --progress off)
# small_memory TMPDIR COMMAND…: TMPDIR gets 64 MB as well unless it is empty.
# shellcheck disable=SC2016  # for the inner shell
small_memory=(unshare --mount bash -c 'mount -t tmpfs -o size=64m tmpfs /dev/shm
  [[ -z $0 ]] || { mount -t tmpfs -o size=64m tmpfs "$0"; export TMPDIR=$0; }
  "$@"; code=$?; shopt -s nullglob; left=(/dev/shm/*osc* ${0:+"$0"/*osc*})
  echo "${#left[@]} windows are left"; exit $code')
mkdir small
if "${small_memory[@]}" "" true >/dev/null 2>&1; then
  if [[ $("$hearsay" --version) != *MPICH* ]]; then
    expect 0 "windows in the folder for temporary files" finished '^0 windows are left' -- \
      "${small_memory[@]}" "" "${wide[@]}"
  fi
  expect 4 "no room for windows" '^0 windows are left' '--shm-size=2[0-9]+m' \
    "^hearsay: .*the windows of 2 ranks take 77 MB of [^,]+, which has 68 MB, 6[0-9] MB of them free\\. " -- \
    "${small_memory[@]}" "$PWD/small" "${wide[@]}"
else
  echo "skipped: /dev/shm of 64 MB: this machine does not permit mount namespaces"
fi

# ---------------------------------------------------------------- components that make no windows
# osc/rdma cannot work over btl/tcp. Every rank finds that out by itself; what they advise must work.
if "$mpiexec" --version 2>&1 | grep -qE 'Open MPI|OpenRTE'; then
  export OMPI_MCA_btl_tcp_if_include=lo # one host: Open MPI 5 finds no other way between its processes
  expect 4 "a component that makes no windows" \
    "^hearsay: \[rank [01]\] MPI cannot make a window .*\(MPI_ERR_WIN: .*\)\. Start with one of: .*over TCP" -- \
    "$mpiexec" "${mpiexec_args[@]}" --mca pml ob1 --mca btl tcp,self --mca osc rdma -n 2 \
    "$hearsay" "${train[@]}" --overwrite
  # shellcheck disable=SC2016  # backquotes of the message
  mapfile -t remedies < <(grep -oE '`mpirun [^`]*`' stderr | sort -u | tr -d '`')
  holds "three ways are named" test "${#remedies[@]}" = 3
  for remedy in "${remedies[@]}"; do
    read -r -a words <<<"${remedy% -n P}"
    expect 0 "advice: $remedy" "2 ranks, .*finished" -- env UCX_TLS=tcp,self \
      "$mpiexec" "${mpiexec_args[@]}" "${words[@]:1}" -n 2 "$hearsay" "${train[@]}" --overwrite
  done
else
  echo "skipped: components that make no windows: they are chosen by options of Open MPI"
fi

printf '%d checks, %d failures\n' "$checks" "$failures"
[ "$failures" = 0 ] && [ "$checks" -ge 42 ]
