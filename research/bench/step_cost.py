"""What a step, a join and the memory of a member cost from Python.

    build/…/python on PYTHONPATH; python3 research/bench/step_cost.py --same-loop build/…/python/same_loop

Prints medians of `--rounds` jobs each: of a step of a small CNN at P = 2, bare and under asynchronous EventGraD, in
Python and in C++, in turn within a job, ten steps each, and then in jobs of its own; of `join` beyond starting MPI with
10⁶ parameters; and how much the process grows with it, beside what the core says that it holds.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

SAME_LOOP = Path(__file__).resolve().parents[2] / "tests/python/same_loop.py"
PLAN = "exchange: {name: eventgrad, schedule: asynchronous, mixing: {name: arrival}}\n"
JOIN = """
import json, os, sys, time
import numpy as np
import hearsay
from hearsay._process import process

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGESIZE")

start = time.perf_counter()
process.start()
mpi = time.perf_counter()
before = resident()
x = np.zeros(1_000_000, np.float32)
x[:] = 1.0
member = hearsay.join(sys.argv[1], {"x": x}, set={"report.directory": sys.argv[2], "report.overwrite": True})
joined = time.perf_counter()
for k in range(20):
    with member.step():
        member.gradients["x"][:] = 1.0
    member.parameters["x"] -= 0.01
member.summary()
grown = resident() - before - x.nbytes
said = {"rank": member.rank, "mpi_s": mpi - start, "join_s": joined - mpi, "grown_bytes": grown,
        "blocks_bytes": 2 * x.nbytes, "core_bytes": member.memory_bytes,
        "evaluation_bytes": 3 * x.nbytes}
print(json.dumps(said))
"""
MEANINGS = {
    "median_ms": "time by the clock",
    "thread_ms": "processor time of the computing thread",
    "process_ms": "processor time of all threads",
}


def job(ranks, *command):
    variables = {
        "OMP_NUM_THREADS": "1",
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_mpi_yield_when_idle": "1",
    }
    line = ["mpirun", "-q", "--oversubscribe", "--bind-to", "none", "-n", str(ranks), *map(str, command)]
    done = subprocess.run(line, env={**os.environ, **variables}, stdout=subprocess.PIPE, text=True, check=True)
    objects = done.stdout.replace("}{", "}\n{").splitlines()  # mpirun may join the lines of two ranks
    return [json.loads(line) for line in objects if line.startswith("{")]


def step_times(options, folder):
    """{what: [what a rank has said, of both ranks and all rounds]}"""
    config = Path(folder) / "plan.yaml"
    config.write_text(PLAN, encoding="utf-8")
    arguments = (config, folder, options.steps, options.batch)
    python = (sys.executable, SAME_LOOP, *arguments)
    cpp = (options.same_loop, *arguments)
    job(2, options.same_loop, config, folder, 1, options.batch, "bare")  # writes model and batches
    found = {"C++, bare": [], "C++, hearsay": [], "Python, bare": [], "Python, hearsay": []}
    for _ in range(options.rounds):
        found["Python, bare"] += job(2, *python, "bare")
        found["Python, hearsay"] += job(2, *python)
        found["C++, bare"] += job(2, *cpp, "bare")
        found["C++, hearsay"] += job(2, *cpp)
    return found


def turns_times(options, folder):
    """{language: [what a rank has said, of both ranks and all rounds]}"""
    arguments = (f"{folder}/plan.yaml", folder, 4 * options.steps, options.batch, "turns")
    found = {"C++": [], "Python": []}
    for _ in range(options.rounds):
        found["C++"] += job(2, options.same_loop, *arguments)
        found["Python"] += job(2, sys.executable, SAME_LOOP, *arguments)
    return found


def print_turns(key, turns):
    """In turn with the bare loop: what else the machine does slows both down."""
    print(f"a step in turn with the bare loop, {MEANINGS[key]}:")
    more = {}
    for language, said in turns.items():
        ratios = sorted(one[key] / one["bare_" + key] for one in said)
        more[language] = 1e3 * statistics.median(one[key] - one["bare_" + key] for one in said)
        bare = statistics.median(one["bare_" + key] for one in said)
        print(f"  {language:<16} {statistics.median(ratios):8.3f} times {bare:.3f} ms ({ratios[0]:.3f} to "
              f"{ratios[-1]:.3f}), {more[language]:.0f} µs more")
    print(f"  more than C++    {more['Python'] - more['C++']:7.0f} µs")


def print_times(meaning, times):
    print(f"a step in jobs of its own, {meaning}:")
    for what, median in times.items():
        print(f"  {what:<16} {median:8.3f} ms")
    python = times["Python, hearsay"] - times["Python, bare"]
    cpp = times["C++, hearsay"] - times["C++, bare"]
    print(f"  more than C++    {1e3 * (python - cpp):7.0f} µs ({1e3 * python:.0f} µs against {1e3 * cpp:.0f} µs)")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--same-loop", required=True, help="the program of same_loop.cpp")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = step_times(options, folder)
        turns = turns_times(options, folder)
        for key in ("median_ms", "thread_ms"):
            print_turns(key, turns)
        for key, meaning in MEANINGS.items():
            print_times(meaning, {what: statistics.median(one[key] for one in said) for what, said in found.items()})

        command = (sys.executable, "-c", JOIN, f"{folder}/plan.yaml", f"{folder}/join")
        said = [one for _ in range(options.rounds) for one in job(2, *command)]
        middle = {key: statistics.median(one[key] for one in said) for key in said[0]}
        print(f"start of MPI     {1e3 * middle['mpi_s']:8.0f} ms")
        print(f"join             {1e3 * middle['join_s']:8.0f} ms beyond it, 10⁶ parameters")
        most = max(one["grown_bytes"] for one in said)
        stated = middle["blocks_bytes"] + middle["core_bytes"] + middle["evaluation_bytes"]
        print(f"memory           {1e-6 * most:8.1f} MB grown at most, {1e-6 * stated:.1f} MB stated for x, g, "
              f"window, exchange and evaluation, as by --dry-run")


if __name__ == "__main__":
    main()
