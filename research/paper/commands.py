"""What `research/papers` does: list, run, draw, document."""
from hearsay_analysis.drawing import output
from hearsay_analysis.errors import UsageError
from paper import EXPERIMENTS, NOT_HERE, making, pages
from paper.experiment import Bench
from hearsay_analysis.text import counted


def find(name):
    """The experiment of that name. Throws UsageError."""
    for experiment in EXPERIMENTS:
        if experiment.name == name:
            return experiment
    raise UsageError(f"no experiment {name!r}; there are: {', '.join(e.name for e in EXPERIMENTS)}")


def _finished(experiment, runs):
    folders = [str(file.parent) + "/" for file in (runs / experiment.sweep).glob("**/summary.json")]
    return sum(1 for folder in folders if any(part in folder for part in experiment.only))


def _state(experiment, runs):
    if isinstance(experiment.way, Bench):
        there = (runs / experiment.sweep / making.BENCH_FILE).exists()
        return f"{experiment.way.program}, {'measured' if there else 'not measured'} in {runs / experiment.sweep}"
    finished = counted(_finished(experiment, runs), "run")
    return f"research/sweeps/{experiment.sweep}.yaml, {finished} in {runs / experiment.sweep}"


def show_list(runs):
    for experiment in EXPERIMENTS:
        print(f"{experiment.name:22} {experiment.source}")
        print(f"{'':22} {_state(experiment, runs)}")
    print("\nNot there:")
    for what, why in NOT_HERE:
        print(f"  {what}: {why}")


def run(name, quick, program):
    """Makes the experiment's runs, as far as they are missing. Throws DataError where one fails."""
    making.make(find(name), quick, program)


def draw(name, runs, folder):
    """Prints the result as Markdown and writes its figures and their data into `folder`. Throws DataError."""
    experiment = find(name)
    result = experiment.draw(runs / experiment.sweep)
    print(f"{experiment.source} ({experiment.citation})\n\nScaled down: {experiment.scaled}\n\n{result.markdown}")
    for figure in result.figures:
        stem = f"{experiment.name}-{figure.name}"
        output.write_picture(folder / f"{stem}.svg", figure.plot)
        figure.data.to_csv(folder / f"{stem}.csv", index=False)
        print(folder / f"{stem}.svg")


def document(runs, page):
    """Writes the page of claims and the papers' pages. Throws DataError where it cannot."""
    pages.write(runs, page)
