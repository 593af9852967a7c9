#!/usr/bin/env python3
"""The table of docs/simulated-results.md: time per iteration against the number of ranks, for three graphs.

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
NEIGHBOURS = ROOT / "configs" / "simulate" / "neighbours.yaml"


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


def graphs(simulator):
    rows = []
    trigger = "trigger={name: adaptive, horizon: 1.0, history: 2, warmup_iterations: 2}"
    for ranks in (16, 64, 256):
        row = [ranks]
        for graph in ("ring", "torus", "exponential"):
            settings = [f"topology.graph.name={graph}"]
            dense = simulator.run(NEIGHBOURS, "ethernet-10g-1024.xml", ranks, settings)
            events = simulator.run(NEIGHBOURS, "ethernet-10g-1024.xml", ranks,
                                   [*settings, "exchange={name: eventgrad, mixing: {name: stale}}", trigger,
                                    "simulate.segments=16"])
            row += [milliseconds(dense["time_per_iteration_s"]), milliseconds(events["time_per_iteration_s"]),
                    f"{100 * events['messages_fraction']:.0f} %"]
        rows.append(row)
    table(["P"] + [f"{g}: {c}" for g in ("ring", "torus", "exponential")
                   for c in ("D-PSGD, ms", "EventGraD, ms", "messages")], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, help="hearsay-simulator, as the preset `simulator` builds it")
    graphs(Simulator(parser.parse_args().program))


if __name__ == "__main__":
    main()
