#!/usr/bin/env python3
"""Two iterations of the large networks on two ranks under every exchange, and whether they stay within the memory that
`--dry-run` states.

    large_models.py HEARSAY [--models resnet50 …] [--exchanges dpsgd …] [--side 224] [--classes 1000] [--mpiexec mpirun]

Generated images, one a rank and iteration. Prints a line a run: what is stated for a rank and the most that a rank was
seen to have, in MB. What ranks of a host share, the neighbour's window above all, counts in parts (Linux' Pss). A run
that states more than is free is left out and said so. Exit status 0: all runs ended well and within what was stated;
77: so did those that were not left out.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile
import time

MODELS = ["resnet50", "vgg16", "alexnet"]
EXCHANGES = [
    "allreduce", "topk", "gtopk", "gtopk_naive", "lkgs", "hitopk", "powersgd", "demo", "gradient_dropping", "dpsgd",
    "eventgrad", "quasi_global_momentum", "gradient_tracking", "momentum_tracking", "beer", "motef", "cedas",
    "push_sum", "diloco", "sparseloco", "noloco", "gasloc", "sparta", "fda", "gossip_outer",
]  # fmt: skip
UNITS = {"kB": 1e3, "MB": 1e6, "GB": 1e9}


def settings(options, model, exchange, folder):
    given = {
        "model": f"{{name: {model}}}",
        "data": f"{{name: synthetic_images, side: {options.side}, classes: {options.classes}, train_size: 4,"
        " test_size: 2, batch_size: 1}",
        "exchange": f"{{name: {exchange}}}",
        "optimizer": "{name: sgd, learning_rate: 0.0001}",
        "train": "{iterations: 2, evaluate_every_epochs: 0}",
        "report": f"{{directory: {folder}/run, overwrite: true, save_model: false}}",
    }
    if exchange == "push_sum":
        given["topology"] = "{graph: {name: directed_ring}, weights: {name: uniform}}"
    if exchange in ("diloco", "sparseloco", "noloco", "gasloc", "gossip_outer"):
        given["exchange"] = f"{{name: {exchange}, local_steps: 2}}"
    if exchange in ("topk", "gtopk", "gtopk_naive", "lkgs", "gradient_dropping"):
        given["sparsify"] = "{selector: {density: 0.01}}"
    path = pathlib.Path(folder) / "run.yaml"
    path.write_text("".join(f"{key}: {value}\n" for key, value in given.items()), encoding="utf-8")
    return str(path)


def stated(options, file):
    """Bytes of a rank, or what went wrong."""
    dry = subprocess.run(
        [options.hearsay, "train", file, "--dry-run", "--ranks", "2"], capture_output=True, text=True, check=False
    )
    found = re.search(r"memory[^\n]*?([0-9.]+) ([kMG]B)", dry.stdout)
    if dry.returncode or not found:
        return None, (dry.stderr or dry.stdout).strip()[-300:]
    return float(found[1]) * UNITS[found[2]], ""


def free_bytes():
    text = pathlib.Path("/proc/meminfo").read_text(encoding="ascii")
    return 1024 * int(re.search(r"MemAvailable: +(\d+)", text)[1])


def memory_of(name, session):
    """What each process of this job has now, by its number."""
    for path in pathlib.Path("/proc").glob("[0-9]*/status"):
        try:
            text = path.read_text(encoding="utf-8")
        except OSError:
            continue
        if f"Name:\t{name}\n" in text and str(session) in session_of(path):
            yield path.parent.name, 1024 * share_of(path)


def share_of(status):
    try:
        text = status.with_name("smaps_rollup").read_text(encoding="ascii")
        return int((re.search(r"^Pss:\s+(\d+)", text, re.M) or [0, 0])[1])
    except OSError:
        return 0


def session_of(status):
    try:
        return status.with_name("stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[3:4]
    except OSError:
        return []


def run(options, file):
    command = [*options.mpiexec.split(), "-n", "2", options.hearsay, "train", file, "--progress", "off"]
    most = {}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as job:
        while job.poll() is None:
            for process, bytes_now in memory_of(pathlib.Path(options.hearsay).name[:15], job.pid):
                most[process] = max(most.get(process, 0), bytes_now)
            time.sleep(0.05)
        output = job.stdout.read()
    return job.returncode, max(most.values(), default=0), output


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("hearsay")
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--exchanges", nargs="+", default=EXCHANGES)
    parser.add_argument("--side", type=int, default=224)
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--mpiexec", default="mpirun --oversubscribe --bind-to none")
    options = parser.parse_args()
    failures = left_out = 0
    print("| model | exchange | stated, MB | most, MB | seconds |\n|---|---|---|---|---|")
    for model in options.models:
        for exchange in options.exchanges:
            with tempfile.TemporaryDirectory() as folder:
                file = settings(options, model, exchange, folder)
                limit, problem = stated(options, file)
                if limit is None:
                    failures += 1
                    print(f"| {model} | {exchange} | {problem} | | |", flush=True)
                    continue
                if 2.2 * limit > free_bytes():
                    left_out += 1
                    print(f"| {model} | {exchange} | {limit / 1e6:,.0f} | not run: too little is free | |", flush=True)
                    continue
                start = time.time()
                code, most, output = run(options, file)
                well = code == 0 and 0 < most <= limit
                failures += not well
                why = output.strip()[-300:] if code else "more than stated"
                note = "" if well else f" FAILED, exit code {code}: {why}"
                figures = f"{limit / 1e6:,.0f} | {most / 1e6:,.0f} | {time.time() - start:.0f}"
                print(f"| {model} | {exchange} | {figures}{note} |", flush=True)
    return 1 if failures else 77 if left_out else 0


if __name__ == "__main__":
    sys.exit(main())
