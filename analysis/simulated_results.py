#!/usr/bin/env python3
"""Two tables of docs/simulated-results.md: time per iteration against the number of ranks on four graphs, and four
algorithms on 1024 ranks.

    analysis/simulated_results.py --program build/simulator/apps/simulator/hearsay-simulator

Times are simulated seconds; the same command gives the same table on every machine. Tables that papers have too are made
by analysis/paper.py.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PLATFORMS = ROOT / "configs" / "platforms"
PLATFORM = "ethernet-10g-1024.xml"
NEIGHBOURS = ROOT / "configs" / "simulate" / "neighbours.yaml"
GTOPK = ROOT / "configs" / "simulate" / "gtopk.yaml"


class Simulator:
    """Runs `hearsay simulate` and reads what it leaves behind."""

    def __init__(self, program):
        self.program = program

    def run(self, config, platform, ranks, settings):
        with tempfile.TemporaryDirectory() as folder:
            command = [self.program, str(config), "--platform", str(PLATFORMS / platform), "-n", str(ranks), "-o", folder]
            for setting in settings:
                command += ["--set", setting]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode != 0:
                sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr}")
            return json.loads((pathlib.Path(folder) / "summary.json").read_text())


def table(head, rows):
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(str(cell) for cell in row) + " |")


def milliseconds(seconds):
    return f"{1e3 * seconds:.1f}"


EVENTGRAD = ["exchange={name: eventgrad, mixing: {name: stale}}",
             "trigger={name: adaptive, horizon: 1.0, history: 2, warmup_iterations: 2}", "simulate.segments=16"]


def scaled(ranks):
    """25 million values at 1/1000 of everything; at 1/5000 on 1024 ranks, whose windows would else take 10 GB."""
    return at_scale(1000 if ranks < 1024 else 5000)


def at_scale(scale):
    return [f"simulate.values={25_000_000 // scale}", f"simulate.scale={scale}"]


def graphs(simulator):
    rows = []
    names = ("ring", "torus", "exponential")
    for ranks in (16, 64, 256, 1024):
        row = [ranks]
        for graph in names:
            settings = [f"topology.graph.name={graph}", *scaled(ranks)]
            dense = simulator.run(NEIGHBOURS, PLATFORM, ranks, settings)
            events = simulator.run(NEIGHBOURS, PLATFORM, ranks, [*settings, *EVENTGRAD])
            row += [milliseconds(dense["time_per_iteration_s"]), milliseconds(events["time_per_iteration_s"])]
        one_peer = simulator.run(NEIGHBOURS, PLATFORM, ranks, ["topology.graph.name=one_peer_exponential", *scaled(ranks)])
        rows.append([*row, milliseconds(one_peer["time_per_iteration_s"])])
    table(["P"] + [f"{g}: {c}" for g in names for c in ("D-PSGD, ms", "EventGraD, ms")] + ["one-peer exponential: D-PSGD, ms"],
          rows)


def thousand(simulator):
    rows = []
    dense = at_scale(5000)
    sparse = [*at_scale(500), "simulate.compute_s=0.1", "simulate.iterations=5"]  # finer: 25 thousand of 25 million travel
    for name, config, settings in (
            ("D-PSGD, ring", NEIGHBOURS, dense),
            ("EventGraD, ring", NEIGHBOURS, [*dense, *EVENTGRAD]),
            ("D-PSGD, one-peer exponential", NEIGHBOURS, ["topology.graph.name=one_peer_exponential", *dense]),
            ("top-k", GTOPK, ["exchange={name: topk}", *sparse]),
            ("gTop-k, tree", GTOPK, sparse),
            ("gTop-k, butterfly", GTOPK, ["exchange.merge=butterfly", *sparse])):
        run = simulator.run(config, PLATFORM, 1024, settings)
        sent = run["bytes_sent"] / run["ranks"] / run["iterations"] / (4 * run["parameters"])
        rows.append([name, milliseconds(run["time_per_iteration_s"]), f"{100 * sent:.2f} %"])
    table(["1024 ranks", "time per iteration, ms", "sent by a rank in an iteration, of the model's bytes"], rows)


TABLES = {"graphs": graphs, "thousand": thousand}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, help="hearsay-simulator, as the preset `simulator` builds it")
    parser.add_argument("--table", choices=TABLES, help="only this one")
    arguments = parser.parse_args()
    for name, make in TABLES.items():
        if arguments.table in (None, name):
            make(Simulator(arguments.program))
            print(flush=True)


if __name__ == "__main__":
    main()
