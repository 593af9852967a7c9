"""A figure or table of a paper: which runs it takes, how it is drawn, what the paper says."""
import dataclasses
import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hearsay_analysis import text
from hearsay_analysis.errors import DataError
from hearsay_analysis.runs.points import runs_below
from hearsay_analysis.runs.run_folder import read_run

TOLERANCE = 0.01  # of accuracy: what counts as the same
ENOUGH_SEEDS = 3  # fewer decide nothing
NOT_STATED = math.inf  # epochs of a paper that does not say how many

TOLERANCE = 0.01  # of accuracy: what counts as the same
ENOUGH_SEEDS = 3  # fewer decide nothing
NOT_STATED = math.inf  # epochs of a paper that does not say how many


def markdown_table(heads, rows):
    """A table with its last line's end. Cells are anything that prints."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(text.shown(cell) for cell in line)} |\n" for line in lines)


@dataclass(frozen=True)
class Evidence:
    """What a verdict rests on. seeds: of the method that has the fewest; None where times are simulated and a second
    run is the same run. epochs: of the shortest run; 0 where nothing is trained. paper_epochs: may be NOT_STATED."""

    seeds: int | None = None
    epochs: float = 0.0
    paper_epochs: float = 0.0

    @property
    def too_short(self):
        """Whether less than half of the paper's epochs were trained."""
        return self.epochs < self.paper_epochs / 2

    @property
    def decides(self):
        return self.seeds is None or (self.seeds >= ENOUGH_SEEDS and not self.too_short)

    def __str__(self):
        if self.seeds is None:
            return "simulated"
        if not self.paper_epochs:
            return "one run" if self.seeds == 1 else text.counted(self.seeds, "run")
        seeds = "one seed" if self.seeds == 1 else text.counted(self.seeds, "seed")
        of = "an unknown number of" if self.paper_epochs == NOT_STATED else f"{self.paper_epochs:g}"
        return f"{seeds}, {self.epochs:g} of {of} epochs"


SIMULATED = Evidence()
ONE_RUN = Evidence(seeds=1)


@dataclass(frozen=True)
class Claim:
    """What a paper says, and whether our runs say so, too. better: they say more. detail: by how much; may be empty."""

    what: str
    holds: bool
    evidence: Evidence
    detail: str = ""
    better: bool = False

    @property
    def verdict(self):
        """"reproduced", "better than the paper" and "not reproduced" take three seeds and half of the paper's epochs;
        with fewer than all epochs they are "scaled down". Else "seen once" (or in two seeds), or "open"."""
        if not self.evidence.decides:
            if self.evidence.too_short or not self.holds:
                return "open"
            return "seen once" if self.evidence.seeds == 1 else f"seen in {self.evidence.seeds} seeds"
        word = "better than the paper" if self.better else "reproduced" if self.holds else "**not reproduced**"
        return f"{word}, scaled down" if self.evidence.epochs < self.evidence.paper_epochs else word

    @property
    def ground(self):
        """What the verdict rests on and what was seen."""
        seen = "" if self.evidence.decides else "held" if self.holds else "did not hold"
        return f"{self.evidence}{': ' if seen else ''}{seen}{f'; {self.detail}' if self.detail else ''}"

    def __str__(self):
        return f"{self.what}: {self.verdict} ({self.ground})."


@dataclass(frozen=True)
class Result:
    """markdown: tables and sentences, ours beside the paper's. figures: [Figure]. claims: [Claim], which stand in the
    sentences as well."""

    markdown: str
    figures: list
    claims: list = dataclasses.field(default_factory=list)


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
    """sweep: the sweep's name, of research/sweeps/NAME.yaml and runs/sweeps/NAME. only: parts of the folders' names
    that its runs have. scaled: what is smaller here than in the paper. draw: sweep folder → Result; throws NotRun
    where the runs are missing. way: how the runs are made. quick: settings under which they take seconds."""

    name: str
    source: str
    citation: str
    sweep: str
    only: tuple
    scaled: str
    draw: Callable[[Path], Result]
    way: Processes | Simulation | Testbed | Bench = Processes()
    quick: tuple = ("train.iterations=60", "report.every_iterations=5")


class NotRun(DataError):
    """Runs that an experiment needs are missing below a folder. `what`: which."""

    def __init__(self, what, folder):
        super().__init__(f"{what} below {folder}")
        self.what = what


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
    """The finished runs of a method, one a seed, by seed; axis as in partition="iid". Throws NotRun where there are
    none."""
    runs = [run for run in _ended(folder, method, ranks, axis) if run.status == "finished"]
    if not runs:
        raise NotRun(f"no finished run of {method!r} with {ranks} ranks", folder)
    return runs


def accuracy_or_state(folder, method, ranks, **axis):
    """Accuracy in per cent over the finished runs, with the number of those that diverged; or what became of them."""
    ended = _ended(folder, method, ranks, axis)
    finished = [run for run in ended if run.status == "finished"]
    if not finished:
        return "diverged" if ended else "not run"
    lost = f" ({len(ended) - len(finished)} diverged)" if len(finished) < len(ended) else ""
    return with_spread(finished, "accuracy_mean_model") + lost


def trained(series, paper_epochs):
    """The Evidence of runs that were trained. series: [[Run]], a list a method; paper_epochs: the paper's."""
    epochs = min(run.summary["epochs"] for runs in series for run in runs)
    return Evidence(min(len(runs) for runs in series), epochs, paper_epochs)


def judged(what, ours, papers, evidence):
    """A Claim: every difference of ours is within a point of the paper's, or above it. Fractions."""
    gap = max((here - there for here, there in zip(ours, papers)), key=abs)
    size = points(abs(gap)).lstrip("+")
    if abs(gap) <= TOLERANCE:
        return Claim(what, True, evidence, f"at most {size} points from the paper")
    side = "above" if gap > 0 else "below"
    return Claim(what, gap > 0, evidence, f"up to {size} points {side} the paper", better=gap > 0)


def mean(runs, key):
    return statistics.mean(run.summary[key] for run in runs)


def with_spread(runs, key, decimals=2):
    """ "97.56 ± 0.17" in per cent: mean and, where there are several seeds, their sample standard deviation."""
    return text.spread([100 * run.summary[key] for run in runs], decimals)


def points(difference):
    """ "−0.50": a difference of fractions, in points."""
    return f"{100 * difference:+.2f}".replace("-", "−")



