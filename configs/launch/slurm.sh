#!/usr/bin/env bash
#SBATCH --job-name=hearsay
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=8
#SBATCH --cpus-per-task=2
#SBATCH --time=02:00:00
#SBATCH --signal=TERM@120
#SBATCH --requeue
#SBATCH --open-mode=append
# Trains on a Slurm cluster: sbatch configs/launch/slurm.sh CONFIG [OPTIONS of hearsay train …]
#
# One rank a task, two cores each: one computes, one communicates. Two minutes before the time is up Slurm sends
# SIGTERM, at which the ranks write a checkpoint and stop; the job is then put into the queue again and goes on from
# there. So it does after a node has failed or a rank was killed, RESTARTS times at most (10), from the newest
# checkpoint of train.checkpoint. FABRIC=tcp or ucx in the environment; NETWORK=10.0.0.0/16 for tcp.
set -euo pipefail
[[ $# -ge 1 ]] || { echo "slurm.sh: which configuration? sbatch configs/launch/slurm.sh CONFIG" >&2; exit 2; }
program=${HEARSAY:-build/release/apps/hearsay}
[[ -x $program ]] || { echo "slurm.sh: no program at $program; build it, or set HEARSAY" >&2; exit 3; }

case ${FABRIC:-tcp} in
  tcp)
    [[ -n ${NETWORK:-} ]] || { echo "slurm.sh: FABRIC=tcp needs NETWORK, as in NETWORK=10.0.0.0/16" >&2; exit 2; }
    export OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,vader,self OMPI_MCA_osc=^ucx # vader: between ranks of a host
    export OMPI_MCA_btl_tcp_if_include=$NETWORK OMPI_MCA_oob_tcp_if_include=$NETWORK
    ;;
  ucx) export OMPI_MCA_pml=ucx OMPI_MCA_osc=ucx ;;
  *) echo "slurm.sh: FABRIC is tcp or ucx, not '$FABRIC'" >&2; exit 2 ;;
esac
export OMP_NUM_THREADS=1
export SRUN_CPUS_PER_TASK=${SLURM_CPUS_PER_TASK:-2} # since Slurm 22.05 srun does not take --cpus-per-task from sbatch
# srun needs a Slurm with PMIx; without it: mpirun "$program" train "$@" --continue
code=0
srun --mpi=pmix --kill-on-bad-exit=1 "$program" train "$@" --continue || code=$?
case $code in 0 | 2 | 3 | 5) exit "$code" ;; esac # done, or another attempt would end alike
[[ ${SLURM_RESTART_COUNT:-0} -lt ${RESTARTS:-10} ]] || exit "$code"
exec scontrol requeue "$SLURM_JOB_ID"
