#!/usr/bin/env python3
"""The tables of docs/simulated-results.md, each from simulated runs that this script starts.

    analysis/simulated_results.py --program build/simulator/apps/simulator/hearsay-simulator fig9-ranks

Times are simulated seconds; the same command gives the same table on every machine.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PLATFORMS = ROOT / "configs" / "platforms"
GLOBAL = ROOT / "configs" / "simulate" / "gtopk.yaml"
NEIGHBOURS = ROOT / "configs" / "simulate" / "neighbours.yaml"
ALPHA_S, BETA_S = 0.436e-3, 3.6e-8  # of a message, of a word of 4 bytes: shi2019gtopk
DENSE = ["exchange={name: allreduce}", "sparsify="]
TOPK = ["exchange={name: topk}"]
GTOPK = ["exchange={name: gtopk, merge: tree}"]


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

    def exchange_s(self, exchange, platform, ranks, values, scale, density=0.001, compute_s=0.0):
        """Seconds an iteration with a gradient of `values` floats."""
        settings = [f"simulate.values={values // scale}", f"simulate.scale={scale}", "simulate.iterations=2",
                    f"simulate.compute_s={compute_s}", *(s for s in exchange if s != "sparsify=")]
        config = GLOBAL
        if "sparsify=" not in exchange:
            settings.append(f"sparsify.selector.density={density}")
            return self.run(config, platform, ranks, settings)["time_per_iteration_s"]
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as dense:  # a dense exchange refuses `sparsify:`
            lines = GLOBAL.read_text().splitlines(keepends=True)
            dense.write("".join(line for line in lines if not line.startswith("sparsify:")))
            dense.flush()
            return self.run(dense.name, platform, ranks, settings)["time_per_iteration_s"]


def table(head, rows):
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(str(cell) for cell in row) + " |")


def milliseconds(seconds):
    return f"{1e3 * seconds:.1f}"


def rounds(ranks):
    return (ranks - 1).bit_length()


def predicted_s(name, ranks, values, k):
    """Table I of shi2019gtopk."""
    messages, words = {"dense": (2 * (ranks - 1), 2 * (ranks - 1) / ranks * values),
                       "top-k": (rounds(ranks), 2 * (ranks - 1) * k),
                       "gTop-k": (2 * rounds(ranks), 4 * rounds(ranks) * k)}[name]
    return messages * ALPHA_S + words * BETA_S


def all_reduces(simulator, first, points, scale):
    rows = []
    for label, ranks, values in points:
        row = [label]
        for name, exchange in (("dense", DENSE), ("top-k", TOPK), ("gTop-k", GTOPK)):
            platform = "ethernet-1g-128.xml"
            row.append(milliseconds(simulator.exchange_s(exchange, platform, ranks, values, scale)))
            row.append(milliseconds(predicted_s(name, ranks, values, values // 1000)))
        rows.append(row)
    table([first, "dense, ms", "Table I", "top-k, ms", "Table I", "gTop-k, ms", "Table I"], rows)


def fig9_ranks(simulator):
    all_reduces(simulator, "P", [(p, p, 25_000_000) for p in (4, 8, 16, 32, 64, 128)], scale=25)


def fig9_values(simulator):
    points = [(f"{m} million", 32, m * 1_000_000) for m in (1, 5, 10, 25, 50, 100)]
    all_reduces(simulator, "m", points, scale=20)


# Model: floats, examples of a rank, images per second on 32 GPUs as Table IV has them (dense, top-k, gTop-k).
TABLE4 = {"VGG-16": (14_700_000, 128, 403, 2016, 3020), "ResNet-20": (270_000, 128, 9212, 22272, 25280),
          "AlexNet": (61_000_000, 64, 39, 296, 505), "ResNet-50": (25_500_000, 256, 343, 978, 1251)}


def table4(simulator):
    ranks, platform, rows = 32, "ethernet-1g-32.xml", []
    for model, (values, batch, *paper) in TABLE4.items():
        scale = 25 if values > 1_000_000 else 1
        images = ranks * batch
        gtopk_s = simulator.exchange_s(GTOPK, platform, ranks, values, scale)
        compute_s = images / paper[2] - gtopk_s  # so that gTop-k has the paper's throughput
        speed = [images / simulator.exchange_s(e, platform, ranks, values, scale, compute_s=compute_s)
                 for e in (DENSE, TOPK, GTOPK)]
        rows.append([model, f"{compute_s:.3f}", *(f"{s:.0f}" for s in speed), *(f"{p}" for p in paper),
                     f"{speed[2] / speed[0]:.2f}", f"{paper[2] / paper[0]:.2f}",
                     f"{speed[2] / speed[1]:.2f}", f"{paper[2] / paper[1]:.2f}"])
    table(["model", "compute, s", "dense", "top-k", "gTop-k", "paper: dense", "top-k", "gTop-k", "g/d", "paper", "g/t",
           "paper"], rows)


def hitopk(simulator):
    rows = []
    for values in (25_000_000,):
        row = [f"{values // 1_000_000} million"]
        for exchange in (DENSE, TOPK, GTOPK, ["exchange={name: hitopk, node_size: 8}"]):
            seconds = simulator.exchange_s(exchange, "gpu-16x8-25g.xml", 128, values, scale=100, density=0.01)
            row.append(milliseconds(seconds))
        rows.append(row)
    table(["m", "dense ring, ms", "flat all-gather (topk), ms", "gTop-k tree, ms", "HiTopKComm, ms"], rows)


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


TABLES = {"fig9-ranks": fig9_ranks, "fig9-values": fig9_values, "table4": table4, "hitopk": hitopk, "graphs": graphs}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, help="hearsay-simulator, as the preset `simulator` builds it")
    parser.add_argument("table", choices=TABLES, help="which table")
    arguments = parser.parse_args()
    TABLES[arguments.table](Simulator(arguments.program))


if __name__ == "__main__":
    main()
