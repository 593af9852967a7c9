"""python3 -m hearsay launch -n P train.py: a job of P processes, by mpirun or without MPI."""
from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from typing import List, NoReturn, Tuple

from hearsay_analysis.text import shown

from . import _core
from ._process import JOB_TO_JOIN
from .errors import ConfigError, DataError, Error

MOST_RANKS = 1_000_000  # as base/ids.hpp
HOST = re.compile(r"([a-z0-9][a-z0-9._-]*@)?[a-z0-9][a-z0-9._:%-]*", re.IGNORECASE | re.ASCII)
RELATIVE_HOST = re.compile(r"[+](n[0-9]+|e)")  # of Open MPI
HOSTS = ("--host", "-host", "-H", "-hosts", "--hosts")
HOST_FILES = ("--hostfile", "-hostfile", "--machinefile", "-machinefile", "-machine", "-f", "--default-hostfile")
SLOTS = re.compile(r"[1-9][0-9]*|[*]|auto")
FIRST_WORD = re.compile(r"[ \t\f\v]*([^ \t\f\v\r\n#]*)")  # of a line of a host file

USAGE = """Usage: python3 -m hearsay launch [OPTIONS of mpirun] -n P PROGRAM [ARGUMENTS…]
       python3 -m hearsay launch --without-mpi [--recover] [--job JOB] -n P PROGRAM [ARGUMENTS…]
       python3 -m hearsay launch --join JOB PROGRAM [ARGUMENTS…]

Starts P processes of a program, as `mpirun -n P` of Open MPI does. It may run as root, there may be more processes than
cores, and they are not tied to cores and give them away while they wait. A PROGRAM that ends in .py is run by this
Python. Each computes with one thread unless OMP_NUM_THREADS says otherwise.

--without-mpi (and where there is no mpirun): the processes, all on this machine, are connected by shared memory. What
fails ends the others after five seconds; with --recover it ends no other, for train.on_failure: continue.
--job names the job, so that others may join it (train.joins). --join: one process that joins that job, which trains.

Exit codes: 2 wrong usage, 3 the host file is missing, else that of mpirun; without MPI that of the first process that
fails.
Example: python3 -m hearsay launch -n 4 train.py"""


def fail(code: int, text: str) -> int:
    print(f"hearsay launch: {shown(text)}", file=sys.stderr)
    return code


def parts(words: List[str]) -> Tuple[List[str], int, List[str]]:
    """Options, number of processes and the program's words. Raises ConfigError."""
    index = next((i for i, word in enumerate(words) if word in ("-n", "-np", "--n", "--np")), None)
    if index is None or len(words) < index + 3:
        raise ConfigError("which program, how many processes? launch -n P PROGRAM, see --help")
    ranks, program = words[index + 1], words[index + 2]
    digits = ranks.lstrip("0")
    if not ranks.isascii() or not digits.isdecimal():
        raise ConfigError(f"-n must be a whole number from 1 up, not '{ranks}'")
    if len(digits) > len(str(MOST_RANKS)) or int(digits) > MOST_RANKS:
        raise ConfigError(f"-n {ranks}: a job has at most {MOST_RANKS:,} ranks")
    if program.startswith("-"):
        raise ConfigError(f"'{program}' stands where the program should: options of mpirun come before -n")
    python = [sys.executable] if program.endswith(".py") else []
    return words[:index], int(ranks), [*python, *words[index + 2 :]]


def launch_here(options: List[str], ranks: int, program: List[str]) -> int:
    """Without MPI."""
    options, job = named(options)
    unknown = [option for option in options if option not in ("--without-mpi", "--recover")]
    if unknown:
        raise ConfigError(f"'{unknown[0]}' is an option of mpirun, which is not used here (--without-mpi)")
    return _core.launch_here(ranks, [os.fsencode(word) for word in program], "--recover" in options, job)


def named(options: List[str]) -> Tuple[List[str], str]:
    """Options without --job, and the job's name."""
    if "--job" not in options:
        return options, ""
    at = options.index("--job")
    if at + 1 == len(options):
        raise ConfigError("--job: by which name may others join?")
    return options[:at] + options[at + 2 :], options[at + 1]


def join(words: List[str]) -> NoReturn:
    """One process that joins a job. It replaces this one."""
    if len(words) < 2 or words[1].startswith("-"):
        raise ConfigError("which job is to be joined, and by which program? launch --join JOB PROGRAM, see --help")
    job, program = words[0], words[1:]
    line = [*([sys.executable] if program[0].endswith(".py") else []), *program]
    os.environ.pop(_core.rank_process_variable, None)
    try:
        os.execvpe(line[0], line, {"OMP_NUM_THREADS": "1", **os.environ, JOB_TO_JOIN: job})
    except OSError as error:
        raise ConfigError(f"'{program[0]}' cannot be started: {error.strerror}") from None


def require_hosts(options: List[str]) -> None:
    """What mpirun gives to ssh is the name of a host, after the rule of scripts/launch: no option such as
    -oProxyCommand=…, no word of a shell. Raises ConfigError, DataError."""
    for given, following in zip(options, [*options[1:], ""]):
        option, is_whole, value = given.partition("=")
        value = value if is_whole else following
        if option in HOST_FILES:
            require_names(value)
        if option in HOSTS:
            for item in value.split(","):
                host, counts, slots = item.partition(":")
                is_name = HOST.fullmatch(host) or RELATIVE_HOST.fullmatch(host)
                if not is_name or (counts and not SLOTS.fullmatch(slots)):
                    raise ConfigError(
                        f"{option} {value}: '{item}' is none of NAME, NAME:SLOTS and NAME:*; a comma between hosts: "
                        f"--host node01:4,node02:4"
                    )


def require_names(hostfile: str) -> None:
    """In a file: the first word of each line."""
    if os.path.exists(hostfile) and not os.path.isfile(hostfile):  # a pipe can be read once, and mpirun is to read it
        raise DataError(f"the host file '{hostfile}' is no plain file, so that its names cannot be looked at")
    try:
        with open(hostfile, encoding="utf-8", errors="surrogateescape") as lines:
            names = [name for name in (FIRST_WORD.match(line)[1] for line in lines) if name]
    except OSError as error:
        raise DataError(f"the host file '{hostfile}' cannot be read: {error.strerror}") from None
    for name in names:
        if not HOST.fullmatch(name):
            raise ConfigError(
                f"the host file '{hostfile}': '{name}' is no name of a host: letters, digits, '.' and '-'"
            )


def main(words: List[str]) -> int:
    """Never returns where mpirun starts a job: it replaces this process."""
    if not words or words[0] in ("-h", "--help"):
        print(USAGE)
        return 0 if words else 2
    beside = os.path.join(os.path.dirname(sys.executable), "mpirun")  # of the MPI that pip has installed
    mpirun = beside if os.access(beside, os.X_OK) else shutil.which("mpirun")
    try:
        if words[0] == "--join":
            join(words[1:])
        options, ranks, program = parts(words)
        if mpirun is None or "--without-mpi" in options:
            return launch_here(options, ranks, program)
        if "--job" in options:
            raise ConfigError("--job: a job of MPI cannot be joined; start it --without-mpi")
        require_hosts(options)
    except Error as error:
        return fail(error.code, str(error))
    version = subprocess.run([mpirun, "--version"], capture_output=True, text=True, check=False).stdout
    open_mpi = "Open MPI" in version or "OpenRTE" in version
    crowded = ["--oversubscribe", "--bind-to", "none"] if open_mpi else []
    ours = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_mpi_yield_when_idle": "1"}
    line = ["mpirun", *crowded, *options, "-n", str(ranks), *program]
    os.environ.pop(_core.rank_process_variable, None)  # what a rank launches is a job of its own
    os.execve(mpirun, line, {"OMP_NUM_THREADS": "1", **os.environ, **ours})
