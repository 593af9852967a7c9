"""What the tests of the Python package share: jobs of several ranks, each a program of a few lines."""
import atexit
import contextlib
import functools
import gzip
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest
from pathlib import Path

import numpy as np

ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "LC_ALL": "C.UTF-8",
}
MPIRUN = [os.environ.get("MPIEXEC", "mpirun"), "-q", "--oversubscribe", "--bind-to", "none"]
LONGEST_S = 120  # a job that takes longer hangs


def have(module):
    return subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True, check=False).returncode == 0


HAVE_TORCH, HAVE_MPI4PY = have("torch"), have("mpi4py")
needs_torch = unittest.skipUnless(HAVE_TORCH, "torch is not installed (Debian: python3-torch)")
needs_mpi4py = unittest.skipUnless(HAVE_MPI4PY, "mpi4py is not installed (Debian: python3-mpi4py)")
needs_fully_shard = unittest.skipUnless(
    HAVE_TORCH and have("torch.distributed.fsdp._fully_shard"), "this torch has no fully_shard (2.6)"
)
needs_program = unittest.skipUnless(os.environ.get("HEARSAY"), "the program hearsay was not built")
needs_same_loop = unittest.skipUnless(os.environ.get("SAME_LOOP") and HAVE_TORCH, "LibTorch or torch is missing")

needs_mnist = unittest.skipUnless(
    any(Path(os.environ.get("HEARSAY_DATA", "none"), "mnist").glob("train-images*")), "HEARSAY_DATA has no mnist"
)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def idx(folder, name):
    """The bytes of an IDX file, packed or not, as one row an example."""
    packed = folder / f"{name}.gz"
    data = gzip.decompress(packed.read_bytes()) if packed.exists() else (folder / name).read_bytes()
    dimensions = data[3]
    shape = np.frombuffer(data, ">u4", dimensions, offset=4)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * dimensions).reshape(shape[0], -1).squeeze()


class ForkServer:
    """The process in which torch is imported once for all programs of a file of tests (fork_server.py)."""

    FILE = Path(__file__).with_name("fork_server.py")

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="hearsay-fork-")
        self.socket = Path(self.folder.name, "socket")
        self.process = subprocess.Popen(
            [sys.executable, self.FILE, "serve", self.socket], env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )
        assert self.process.stdout.readline() == b"serving\n"
        atexit.register(self.end)

    def command(self, file, *arguments):
        return [sys.executable, "-I", "-S", self.FILE, "run", self.socket, file, *arguments]

    def end(self):
        self.process.communicate()
        self.folder.cleanup()


fork_server = functools.cache(ForkServer)


def has_children(pid):
    """Whether a process that this one has started lives."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has just ended
            state, parent = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[:2]
            if parent == str(pid) and state != "Z":
                return True
    return False


class LauncherFails(Exception):
    """All ranks have ended, and their launcher stands still or crashes: where processors are busy, that of Open MPI 4.1
    can do so then, in PMIx_server_finalize."""


def ended(line, launches, **options):
    """A command's end. Raises TimeoutExpired; where it `launches` ranks, LauncherFails, if none of them has lived for 5
    seconds."""
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options) as process:
        end, started, alone_s = time.monotonic() + LONGEST_S, False, 0
        try:
            while True:
                try:
                    said = process.communicate(timeout=1)
                    if launches and process.returncode < 0 and "PMIx_server_finalize" in said[1]:
                        raise LauncherFails(line)
                    return subprocess.CompletedProcess(line, process.returncode, *said)
                except subprocess.TimeoutExpired:
                    lives = not launches or has_children(process.pid)
                started, alone_s = started or lives, 0 if lives else alone_s + 1
                if started and alone_s >= 5:
                    raise LauncherFails(line)
                if time.monotonic() > end:
                    raise subprocess.TimeoutExpired(line, LONGEST_S)
        except BaseException:
            process.kill()
            raise


class Job:
    """What a job has left behind, and how long it took."""

    def __init__(self, done, outputs, seconds=None):
        self.seconds = seconds
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr
        self.outputs = outputs  # a text a rank; mpirun mixes them up

    @property
    def said(self):
        """The JSON objects that the ranks have printed, by rank."""
        return [json.loads(line) for text in self.outputs for line in text.splitlines() if line.startswith("{")]

    def __str__(self):
        return f"exit code {self.code}\n{self.out}\n{self.err}"


class JobCase(unittest.TestCase):
    """Tests in a folder of their own."""

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="hearsay-python-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def command(self, *command, ranks=None, environment=None, cwd=None):
        outputs = Path(tempfile.mkdtemp(dir=self.folder, prefix=".output-"))
        mpirun = [*MPIRUN, "--output-filename", str(outputs), "-n", str(ranks)] if ranks else []
        line = [*mpirun, *map(str, command)]
        variables = {**os.environ, "OMP_NUM_THREADS": "1", **ENVIRONMENT, **(environment or {})}
        variables = {key: value for key, value in variables.items() if value is not None}
        before = set(self.folder.rglob("*"))
        while True:
            start = time.monotonic()
            try:
                done = ended(line, launches=bool(ranks), cwd=cwd or self.folder, env=variables)
                break
            except LauncherFails:
                if {file for file in self.folder.rglob("*") if outputs not in file.parents} != before:
                    raise  # begun again it would be another job
        texts = [file.read_text(encoding="utf-8") for file in sorted(outputs.glob("*/rank.*/stdout"))]
        return Job(done, texts, time.monotonic() - start)

    def run_file(self, file, *arguments, ranks=2, **options):
        words = (sys.executable, file, *arguments)
        if HAVE_TORCH and re.search("import.* torch", Path(file).read_text(encoding="utf-8")):
            words = fork_server().command(file, *arguments)
        return self.command(*words, ranks=ranks, **options)

    def job(self, program, *arguments, ranks=2, **options):
        """Runs a program, given as text, on so many ranks (None: without mpirun)."""
        file = self.folder / "program.py"
        file.write_text(textwrap.dedent(program), encoding="utf-8")
        return self.run_file(file, *arguments, ranks=ranks, **options)

    def processes(self, program, environments):
        """Runs a program, given as text, once with each of these environments, all at once, without mpirun."""
        file = self.folder / "program.py"
        file.write_text(textwrap.dedent(program), encoding="utf-8")
        common = {**os.environ, "OMP_NUM_THREADS": "1", **ENVIRONMENT, "TMPDIR": str(self.folder)}
        options = {"cwd": self.folder, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        jobs = [subprocess.Popen([sys.executable, file], env={**common, **own}, **options) for own in environments]
        said = [job.communicate(timeout=LONGEST_S) for job in jobs]
        return [Job(subprocess.CompletedProcess(job.args, job.returncode, *texts), [texts[0]])
                for job, texts in zip(jobs, said)]

    def good_job(self, program, *arguments, **options):
        job = self.job(program, *arguments, **options)
        self.assertEqual(job.code, 0, job)
        return job

    def summary(self, run="run"):
        return json.loads((self.folder / run / "summary.json").read_text(encoding="utf-8"))


# Replicas of two processes each where there are four: processes 0 and 1 are replica 0, and 0 and 2 have shard 0.
GROUPS = """
    import json, os, sys, torch, hearsay
    import torch.distributed as dist
    rank, ranks = (int(os.environ[f"OMPI_COMM_WORLD_{name}"]) for name in ("RANK", "SIZE"))
    dist.init_process_group("gloo", init_method=f"file://{sys.argv[1]}", rank=rank, world_size=ranks)
    def group_with_me(groups):
        "Of several groups, which all processes make."
        made = [(group, dist.new_group(group)) for group in groups]
        return next((it for group, it in made if rank in group), None)
    two_pairs = (((0, 1), (2, 3)), ((0, 2), (1, 3))) if ranks == 4 else ((), ())
    within, across = map(group_with_me, two_pairs)  # a replica's processes; those with this one's shard
    def run(folder, **exchange): return {"exchange": {"name": "dpsgd", **exchange}, "report": {"directory": folder}}
    def flat(tensors): return [x for t in tensors for x in t.detach().reshape(-1).tolist()]
    class Sums(torch.nn.Module):
        "Gradients of whole numbers: a mean over examples has the same bits however they are dealt out."
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.ModuleList([torch.nn.Linear(6, n) for n in (5, 1, 2)])
            for p in self.parameters(): p.data = (p.data * 64).round() / 64
        def forward(self, x): return sum(layer(x).sum(0).sum() for layer in self.layers) / len(x)
"""


class GroupCase(JobCase):
    """Tests with several process groups of torch.distributed."""

    def group_job(self, program, *arguments, ranks=4, **options):
        """Runs a program after GROUPS."""
        store = Path(tempfile.mkdtemp(dir=self.folder, prefix=".store-"), "store")
        return self.job(GROUPS + program, store, *arguments, ranks=ranks, **options)

    def good_group_job(self, program, *arguments, **options):
        job = self.group_job(program, *arguments, **options)
        self.assertEqual(job.code, 0, job)
        return sorted(job.said, key=lambda said: said["rank"])
