"""python3 -m hearsay launch -n P train.py: a job of P processes, by mpirun or without MPI."""
from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import List, Tuple

from . import _core
from .errors import ConfigError

USAGE = """Usage: python3 -m hearsay launch [OPTIONS of mpirun] -n P PROGRAM [ARGUMENTS…]
       python3 -m hearsay launch --without-mpi [--recover] -n P PROGRAM [ARGUMENTS…]

Starts P processes of a program, as `mpirun -n P` of Open MPI does. It may run as root, there may be more processes than
cores, and they are not tied to cores and give them away while they wait. A PROGRAM that ends in .py is run by this
Python. Each computes with one thread unless OMP_NUM_THREADS says otherwise.

--without-mpi (and where there is no mpirun): the processes, all on this machine, are connected by shared memory. What
fails ends the others after five seconds; with --recover it ends no other, for train.on_failure: continue.

Exit codes: 2 wrong usage, else that of mpirun; without MPI that of the first process that fails.
Example: python3 -m hearsay launch -n 4 train.py"""


def fail(code: int, text: str) -> int:
    print(f"hearsay launch: {text}", file=sys.stderr)
    return code


def parts(words: List[str]) -> Tuple[List[str], int, List[str]]:
    """Options, number of processes and the program's words. Raises ValueError."""
    index = next((i for i, word in enumerate(words) if word in ("-n", "-np", "--n", "--np")), None)
    if index is None or len(words) < index + 3:
        raise ValueError("which program, how many processes? launch -n P PROGRAM, see --help")
    ranks, program = words[index + 1], words[index + 2]
    if not ranks.isdecimal() or int(ranks) < 1:
        raise ValueError(f"-n must be a whole number from 1 up, not '{ranks}'")
    if program.startswith("-"):
        raise ValueError(f"'{program}' stands where the program should: options of mpirun come before -n")
    python = [sys.executable] if program.endswith(".py") else []
    return words[:index], int(ranks), [*python, *words[index + 2 :]]


def launch_here(options: List[str], ranks: int, program: List[str]) -> int:
    """Without MPI."""
    unknown = [option for option in options if option not in ("--without-mpi", "--recover")]
    if unknown:
        raise ValueError(f"'{unknown[0]}' is an option of mpirun, which is not used here (--without-mpi)")
    return _core.launch_here(ranks, program, "--recover" in options)


def main(words: List[str]) -> int:
    """Never returns where a job is started: mpirun replaces this process."""
    if not words or words[0] in ("-h", "--help"):
        print(USAGE)
        return 0 if words else 2
    beside = os.path.join(os.path.dirname(sys.executable), "mpirun")  # of the MPI that pip has installed
    mpirun = beside if os.access(beside, os.X_OK) else shutil.which("mpirun")
    try:
        options, ranks, program = parts(words)
        if mpirun is None or "--without-mpi" in options:
            return launch_here(options, ranks, program)
    except (ValueError, ConfigError) as error:
        return fail(2, str(error))
    version = subprocess.run([mpirun, "--version"], capture_output=True, text=True, check=False).stdout
    open_mpi = "Open MPI" in version or "OpenRTE" in version
    crowded = ["--oversubscribe", "--bind-to", "none"] if open_mpi else []
    ours = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_mpi_yield_when_idle": "1"}
    line = ["mpirun", *crowded, *options, "-n", str(ranks), *program]
    os.environ.pop(_core.rank_process_variable, None)  # what a rank launches is a job of its own
    os.execve(mpirun, line, {"OMP_NUM_THREADS": "1", **os.environ, **ours})
