"""Ranks of one host share its cores. Torch, and the BLAS under torch and numpy, start a thread a core in every rank:
steps of a small model then take ten times as long."""
from __future__ import annotations

import ctypes
import os
import sys


def share(speaks, ranks_here):
    """Gives every rank of this host its part of the cores, unless the user has chosen by OMP_NUM_THREADS. `speaks`:
    this one says so."""
    if ranks_here == 1 or "OMP_NUM_THREADS" in os.environ:
        return
    cores = mine = len(os.sched_getaffinity(0))
    if "OMPI_MCA_orte_bound_at_launch" in os.environ:  # mpirun has given every rank cores of its own, or its socket's
        cores = max(mine, os.cpu_count() or 1)
    threads = max(1, min(mine, cores // ranks_here))
    torch = sys.modules.get("torch")
    if torch is not None:
        threads = min(threads, torch.get_num_threads())
        torch.set_num_threads(threads)
    limited = torch is not None
    if "OPENBLAS_NUM_THREADS" not in os.environ:
        limited = _limit_blas(threads) or limited
    if speaks and limited:
        print(
            f"hearsay: {ranks_here} ranks share {cores} core{'s' if cores > 1 else ''} here, so each computes with "
            f"{threads} thread{'s' if threads > 1 else ''}; choose otherwise with OMP_NUM_THREADS, or with "
            f"torch.set_num_threads after hearsay.join",
            file=sys.stderr,
        )


def _limit_blas(threads):
    """OpenBLAS has threads of its own, which torch.set_num_threads does not reach."""
    found = False
    try:
        with open("/proc/self/maps", encoding="utf-8") as maps:
            paths = {line.split()[-1] for line in maps if "blas" in line and ".so" in line}
    except OSError:
        return False
    for path in sorted(paths):
        try:
            ctypes.CDLL(path, mode=getattr(os, "RTLD_NOLOAD", 4) | os.RTLD_LAZY).openblas_set_num_threads(threads)
            found = True
        except (OSError, AttributeError):  # another BLAS, which goes by OpenMP
            continue
    return found
