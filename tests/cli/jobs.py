"""Jobs of `hearsay train` whose ranks are killed and stopped while they train: what the tests of that share.

A test file ends with `jobs.main(__name__)` and is called as FILE HEARSAY SOURCE_DIR [unittest's ARGUMENTS…]. Victims
and instants are drawn: HEARSAY_TEST_SEED=N repeats the draws of the run that printed N at its start, also in a test
case that is run alone. A failure names what was drawn and shows what the job has said.
"""
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

MPIRUN = os.environ.get("MPIEXEC", "mpirun")
LONGEST_S = 150  # a job that takes longer hangs
ENVIRONMENT = {
    "LC_ALL": "C.UTF-8",
    "OMP_NUM_THREADS": "1",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_hwloc_base_binding_policy": "none",
    # The same for Open MPI 5.
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "PRTE_MCA_hwloc_default_binding_policy": "none",
}
SLACK_S = 20  # what a loaded machine may add to an instant
seed = int(os.environ.get("HEARSAY_TEST_SEED") or random.SystemRandom().randrange(10**6))
hearsay = source_dir = None  # paths, set by main


def until(condition, longest_s=60.0, every_s=0.02):
    """Waits until the condition holds; its value, or None when that takes too long."""
    end = time.monotonic() + longest_s
    while time.monotonic() < end:
        if value := condition():
            return value
        time.sleep(every_s)
    return None


def processes_of(directory, folder):
    """rank → process id of the ranks that train in this directory into this run folder, as the command line has it."""
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            if words[:2] != [str(hearsay).encode(), b"train"] or str(folder).encode() not in words:
                continue
            if (entry / "cwd").resolve() != directory:
                continue
            rank = re.search(rb"(?:^|\0)(?:OMPI_COMM_WORLD|HEARSAY)_RANK=(\d+)", (entry / "environ").read_bytes())
        except OSError:  # it has just ended
            continue
        if rank:
            found[int(rank[1])] = int(entry.name)
    return found


class Job:
    """A job in the background, of `processes` ranks, with the run folder `folder`."""

    def __init__(self, case, folder, command, processes):
        self.case, self.folder, self.processes = case, folder, processes
        self.log = Path(f"{case.folder / Path(folder).name}.log")
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                list(map(str, command)), cwd=case.folder, env={**os.environ, **ENVIRONMENT}, stdin=subprocess.DEVNULL,
                stdout=log, stderr=subprocess.STDOUT,
            )
        self.pids, self.began = {}, time.monotonic()
        case.addCleanup(self.clear)

    def __str__(self):
        return f"{self.folder}, {self.seconds():.1f} s after its start; it said:\n{self.said()}"

    def path(self, *parts):
        return self.case.folder.joinpath(self.folder, *parts)

    def seconds(self):
        """Since its start, which comes before that of training."""
        return time.monotonic() - self.began

    def said(self):
        return self.log.read_text(encoding="utf-8", errors="replace")

    def summary(self):
        return json.loads(self.path("summary.json").read_text(encoding="utf-8"))

    def trains(self, ranks=None):
        """Waits until that many ranks train (default: all), and notes who they are."""

        def begun():
            files = [file for file in self.path().glob("metrics.rank*.jsonl") if file.stat().st_size > 0]
            return len(files) >= (ranks or self.processes) or self.process.poll() is not None

        until(begun)
        self.pids = self.ranks()
        self.case.assertEqual(sorted(self.pids), list(range(self.processes)), f"all ranks train: {self}")
        return self

    def ranks(self):
        """rank → process id of those that are there."""
        return processes_of(self.case.folder, self.folder)

    def signal(self, number, *ranks):
        for rank in ranks:
            os.kill(self.pids[rank], number)

    def kill(self, *ranks):
        self.signal(signal.SIGKILL, *ranks)

    def stands_still(self, rank, seconds):
        self.signal(signal.SIGSTOP, rank)
        time.sleep(seconds)
        self.signal(signal.SIGCONT, rank)

    def ended(self):
        """Waits for its end, after which none of its ranks may be there. Its exit code."""
        try:
            code = self.process.wait(max(1.0, LONGEST_S - self.seconds()))
        except subprocess.TimeoutExpired:
            self.case.fail(f"the job hangs: {self}")
        self.case.assertEqual(self.ranks(), {}, f"somebody stays behind: {self}")
        return code if code >= 0 else 128 - code

    def ends_well(self):
        self.case.assertEqual(self.ended(), 0, self)
        return self.summary()

    def clear(self):
        for pid in [*self.ranks().values(), *([self.process.pid] if self.process.poll() is None else [])]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()


class JobCase(unittest.TestCase):
    """Test cases in a folder of their own. BASE: the configuration, as mappings."""

    BASE, RANKS = {}, 4

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="hearsay-jobs-")).resolve()
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.random = random.Random(f"{seed} {self.id()}")
        self.write("base.yaml", self.BASE)

    def write(self, name, config):
        """A configuration file: JSON is YAML, too, but for what scripts/launch looks for in it."""
        text = "".join(f"{section}: {json.dumps(keys)}\n" for section, keys in config.items())
        (self.folder / name).write_text(text, encoding="utf-8")
        return name

    def victims(self, count):
        """One a job: rank 0, which does what one rank does for all, and others, in any order."""
        chosen = [0, *(self.random.randrange(1, self.RANKS) for _ in range(count - 1))]
        self.random.shuffle(chosen)
        return chosen

    def begin(self, folder, *settings, ranks=None, launch=(), config="base.yaml", progress="off", mpi=True):
        """Starts a job of `scripts/launch`, or, without MPI, of `hearsay launch`. Settings: "key=value", or options."""
        processes = ranks or self.RANKS
        launcher = [source_dir / "scripts/launch"] if mpi else [hearsay, "launch"]
        train = self.train(folder, *settings, config=config, progress=progress)
        return Job(self, folder, [*launcher, *launch, "-n", processes, *train], processes)

    def train(self, folder, *settings, config="base.yaml", progress="off"):
        """The command line of a rank."""
        options = [word for setting in settings for word in self.option(setting)]
        return [hearsay, "train", config, "--progress", progress, *options, "--output", folder]

    def finish(self, folder, *settings, **options):
        """A job that nobody disturbs."""
        job = self.begin(folder, *settings, **options)
        self.assertEqual(job.ended(), 0, job)
        return job

    @staticmethod
    def option(setting):
        return [setting] if setting.startswith("--") else ["--set", setting]

    def refused(self, code, words, *settings, **options):
        """A job that ends with this code and says these words, a regular expression."""
        job = self.begin(options.pop("folder", "refused"), *settings, **options)
        self.assertEqual(job.ended(), code, job)
        self.assertRegex(job.said(), words)
        return job

    def command(self, *words):
        """A command of the program; its exit code and what it says."""
        done = subprocess.run(
            list(map(str, [hearsay, *words])), cwd=self.folder, env={**os.environ, **ENVIRONMENT}, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LONGEST_S, check=False,
        )
        return done.returncode, done.stdout

    def says(self, code, words, *command):
        """The program ends with this code and says these words, a regular expression."""
        actual, said = self.command(*command)
        self.assertEqual(actual, code, said)
        self.assertRegex(said, words)
        return said


def main(module="__main__"):
    global hearsay, source_dir
    if len(sys.argv) < 3:
        sys.exit(f"usage: {sys.argv[0]} HEARSAY SOURCE_DIR [unittest's ARGUMENTS…]")
    hearsay, source_dir = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    print(f"HEARSAY_TEST_SEED={seed} repeats these draws", flush=True)
    unittest.main(module=module, argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
