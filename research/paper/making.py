"""Making the runs of an experiment: by `sweep` on this machine, on a testbed or simulated, or by a benchmark."""
import subprocess
import sys
from pathlib import Path

from hearsay_analysis.errors import DataError
from paper.experiment import Bench, Simulation, Testbed

ROOT = Path(__file__).resolve().parents[2]
RUNS, QUICK_RUNS = Path("runs/sweeps"), Path("runs/sweeps-quick")
BENCH_FILE = "bench.jsonl"
_TESTBED = ROOT / "scripts/testbed"


def _call(*command):
    """Throws DataError where it fails."""
    line = list(map(str, command))
    if subprocess.run(line, check=False).returncode != 0:
        raise DataError(f"this failed, see above: {' '.join(line)}")


def sweep_commands(experiment, quick, program):
    """The calls of `sweep` that make the experiment's runs, one for each part of its `only`."""
    way = experiment.way
    for part in experiment.only:
        line = [sys.executable, ROOT / "analysis/hearsay", "sweep", ROOT / f"research/sweeps/{experiment.sweep}.yaml"]
        line += ["--only", f"{part}seed1" if quick and part.endswith("/") else part]
        line += ["--output", QUICK_RUNS / experiment.sweep] if quick else []
        line += [word for setting in experiment.quick for word in ("--set", setting)] if quick else []
        line += ["--simulate", ROOT / f"configs/platforms/{way.platform}.xml"] if isinstance(way, Simulation) else []
        line += ["--testbed"] if isinstance(way, Testbed) else []
        yield line + (["--program", program] if program else [])


def _measure(experiment, quick, program):
    """Writes what the benchmark prints. Throws DataError."""
    program = program or ROOT / "build/release/research" / experiment.way.program
    if not program.exists():
        raise DataError(f"no program at {program}; build it (scripts/test --preset release), or name it with --program")
    file = (QUICK_RUNS if quick else RUNS) / experiment.sweep / BENCH_FILE
    file.parent.mkdir(parents=True, exist_ok=True)
    line = [str(program), *(experiment.way.quick if quick else experiment.way.arguments)]
    done = subprocess.run(line, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise DataError(f"this failed, see above: {' '.join(line)}")
    file.write_text(done.stdout, encoding="utf-8")
    print(file)


def make(experiment, quick, program):
    """Makes what is missing. Throws DataError where a run fails."""
    if isinstance(experiment.way, Bench):
        _measure(experiment, quick, program)
        return
    if isinstance(experiment.way, Testbed):
        _call(_TESTBED, "up", experiment.way.hosts, experiment.way.rate)
    try:
        for line in sweep_commands(experiment, quick, program):
            _call(*line)
    finally:
        if isinstance(experiment.way, Testbed):
            _call(_TESTBED, "down")
