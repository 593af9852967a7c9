"""Simulate how times per iteration grow with ranks: two tables.

    analysis/hearsay scaling --program build/simulator/apps/simulator/hearsay-simulator --table graphs

The tables of docs/results/simulated.md: time per iteration against the number of ranks on four graphs, and four
algorithms on 1024 ranks. Times are simulated seconds; the same command gives the same table on every machine. Tables
that papers have too are made by `paper`.
"""
import json
import subprocess
import tempfile
from pathlib import Path

from hearsay_analysis.errors import DataError
from hearsay_analysis.page import markdown

PACKAGES = ()
ROOT = Path(__file__).resolve().parents[3]
PLATFORM = ROOT / "configs/platforms/ethernet-10g-1024.xml"
NEIGHBOURS = ROOT / "configs/simulate/neighbours.yaml"
GTOPK = ROOT / "configs/simulate/gtopk.yaml"


class Simulator:
    """Runs `hearsay simulate` and reads what it leaves behind. Throws DataError."""

    def __init__(self, program):
        self.program = program

    def run(self, config, ranks, settings):
        with tempfile.TemporaryDirectory() as folder:
            command = [self.program, str(config), "--platform", str(PLATFORM), "-n", str(ranks), "-o", folder]
            for setting in settings:
                command += ["--set", setting]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode != 0:
                raise DataError(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr}")
            return json.loads((Path(folder) / "summary.json").read_text())


def milliseconds(seconds):
    return f"{1e3 * seconds:.1f}"


EVENTGRAD = [
    "exchange={name: eventgrad, mixing: {name: stale}}",
    "trigger={name: adaptive, horizon: 1.0, history: 2, warmup_iterations: 2}",
    "simulate.segments=16",
]


def scaled(ranks):
    """25 million values at 1/1000 of everything; at 1/5000 on 1024 ranks, whose windows would else take 10 GB."""
    return at_scale(1000 if ranks < 1024 else 5000)


def at_scale(scale):
    return [f"simulate.values={25_000_000 // scale}", f"simulate.scale={scale}"]


def graphs(simulator):
    """Markdown: a row a number of ranks, columns of graphs and methods."""
    rows = []
    names = ("ring", "torus", "exponential")
    for ranks in (16, 64, 256, 1024):
        row = [ranks]
        for graph in names:
            settings = [f"topology.graph.name={graph}", *scaled(ranks)]
            dense = simulator.run(NEIGHBOURS, ranks, settings)
            events = simulator.run(NEIGHBOURS, ranks, [*settings, *EVENTGRAD])
            row += [milliseconds(dense["time_per_iteration_s"]), milliseconds(events["time_per_iteration_s"])]
        one_peer = simulator.run(NEIGHBOURS, ranks, ["topology.graph.name=one_peer_exponential", *scaled(ranks)])
        rows.append([*row, milliseconds(one_peer["time_per_iteration_s"])])
    columns = [f"{graph}: {method}" for graph in names for method in ("D-PSGD, ms", "EventGraD, ms")]
    return markdown.table(["P", *columns, "one-peer exponential: D-PSGD, ms"], rows)


def thousand(simulator):
    """Markdown: a row an algorithm, on 1024 ranks."""
    rows = []
    dense = at_scale(5000)
    # Finer: 25 thousand of 25 million travel.
    sparse = [*at_scale(500), "simulate.compute_s=0.1", "simulate.iterations=5"]
    for name, config, settings in (
        ("D-PSGD, ring", NEIGHBOURS, dense),
        ("EventGraD, ring", NEIGHBOURS, [*dense, *EVENTGRAD]),
        ("D-PSGD, one-peer exponential", NEIGHBOURS, ["topology.graph.name=one_peer_exponential", *dense]),
        ("top-k", GTOPK, ["exchange={name: topk}", *sparse]),
        ("gTop-k, tree", GTOPK, sparse),
        ("gTop-k, butterfly", GTOPK, ["exchange.merge=butterfly", *sparse]),
    ):
        run = simulator.run(config, 1024, settings)
        sent = run["bytes_sent"] / run["ranks"] / run["iterations"] / (4 * run["parameters"])
        rows.append([name, milliseconds(run["time_per_iteration_s"]), f"{100 * sent:.2f} %"])
    sent = "sent by a rank in an iteration, of the model's bytes"
    return markdown.table(["1024 ranks", "time per iteration, ms", sent], rows)


_TABLES = {"graphs": graphs, "thousand": thousand}


def arguments(parser):
    parser.add_argument("--program", required=True, help="hearsay-simulator, as the preset `simulator` builds it")
    parser.add_argument("--table", choices=_TABLES, help="only this one")


def run(options):
    """Prints the tables."""
    for name, make in _TABLES.items():
        if options.table in (None, name):
            print(make(Simulator(options.program)), flush=True)
