"""A figure or table of a paper: which runs it takes, how it is drawn, what the paper says."""
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hearsay_analysis import text
from hearsay_analysis.errors import DataError
from hearsay_analysis.page.markdown import table as markdown_table  # noqa: F401, for the experiments
from hearsay_analysis.runs.points import runs_below
from hearsay_analysis.runs.run_folder import read_run

TOLERANCE = 0.01  # of accuracy: what counts as the same


@dataclass(frozen=True)
class Result:
    """markdown: tables and sentences, ours beside the paper's. figures: [Figure]."""

    markdown: str
    figures: list


@dataclass(frozen=True)
class Processes:
    """By mpirun on this machine."""


@dataclass(frozen=True)
class Simulation:
    """Simulated, on configs/platforms/PLATFORM.xml."""

    platform: str


@dataclass(frozen=True)
class Testbed:
    """On so many hosts of scripts/testbed, with links of that rate."""

    hosts: int
    rate: str


@dataclass(frozen=True)
class Bench:
    """No runs, but what a program beside `hearsay` prints, a JSON object a line, in runs/sweeps/NAME/bench.jsonl."""

    program: str
    arguments: tuple = ()
    quick: tuple = ()


@dataclass(frozen=True)
class Experiment:
    """sweep: the sweep's name, of configs/sweeps/NAME.yaml and runs/sweeps/NAME. only: parts of the folders' names that
    its runs have. scaled: what is smaller here than in the paper. draw: sweep folder → Result; throws DataError where the
    runs are missing. way: how the runs are made. quick: settings under which they take seconds."""

    name: str
    source: str
    citation: str
    sweep: str
    only: tuple
    scaled: str
    draw: Callable[[Path], Result]
    way: Processes | Simulation | Testbed | Bench = Processes()
    quick: tuple = ("train.iterations=60", "report.every_iterations=5")


def _ended(folder, method, ranks, axis):
    """[Run] with a summary, by seed. axis: values by the last part of their key, without ".name"."""
    found = []
    for run in runs_below(Path(folder) / f"p{ranks}"):
        values = {key.removesuffix(".name").split(".")[-1]: value for key, value in run.axis.items()}
        wanted = run.method == method and all(values.get(key) == value for key, value in axis.items())
        if wanted and run.summary:
            found.append((run.seed, read_run(run.folder, f"{method}, P = {ranks}, seed {run.seed}")))
    return [run for _, run in sorted(found, key=lambda pair: pair[0])]


def runs_of(folder, method, ranks, **axis):
    """The finished runs of a method, one a seed, by seed; axis as in partition="iid". Throws DataError where there are
    none."""
    runs = [run for run in _ended(folder, method, ranks, axis) if run.status == "finished"]
    if not runs:
        raise DataError(f"no finished run of {method!r} with {ranks} ranks below {folder}")
    return runs


def accuracy_or_state(folder, method, ranks, **axis):
    """Accuracy in per cent over the finished runs, with the number of those that diverged; or what became of them."""
    ended = _ended(folder, method, ranks, axis)
    finished = [run for run in ended if run.status == "finished"]
    if not finished:
        return "diverged" if ended else "not run"
    lost = f" ({len(ended) - len(finished)} diverged)" if len(finished) < len(ended) else ""
    return with_spread(finished, "accuracy_mean_model") + lost


def judged(what, ours, papers):
    """A sentence: whether every difference of ours is within a point of the paper's. Fractions."""
    gap = max((here - there for here, there in zip(ours, papers)), key=abs)
    size = points(abs(gap)).lstrip("+")
    if abs(gap) <= TOLERANCE:
        return f"{what}: reproduced, at most {size} points from the paper."
    if gap > 0:
        return f"{what}: better than in the paper, by up to {size} points."
    return f"{what}: **not reproduced**, up to {size} points below the paper."


def claimed(what, holds):
    """A sentence: whether what the paper says of its own runs holds of ours."""
    return f"{what}: {'reproduced' if holds else '**not reproduced**'}."


def mean(runs, key):
    return statistics.mean(run.summary[key] for run in runs)


def with_spread(runs, key, decimals=2):
    """ "97.56 ± 0.17" in per cent: mean and sample standard deviation over seeds, the latter where there are several."""
    return text.spread([100 * run.summary[key] for run in runs], decimals)


def points(difference):
    """ "−0.50": a difference of fractions, in points."""
    return f"{100 * difference:+.2f}".replace("-", "−")
