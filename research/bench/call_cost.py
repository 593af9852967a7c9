"""What Python adds to the core's calls in a step: no computing, no messages, processor time, in turns.

    PYTHONPATH=build/…/python mpirun -n 2 python3 research/bench/call_cost.py FOLDER [TENSORS]

`with member.step(optimizer)` of a torch module with so many parameter tensors (default 8) against the calls into the
core that a C++ loop makes, too. Asynchronous EventGraD, nothing fires. Medians of 200 turns of 20 steps each.
"""
import os
import statistics
import sys
import time

import torch

import hearsay

PLAN = {
    "exchange": {"name": "eventgrad", "schedule": "asynchronous", "mixing": {"name": "arrival"}},
    "trigger": {"name": "constant", "threshold": 1e6, "warmup_iterations": 0},
}


class Nothing:
    """An optimizer that costs nothing."""

    def step(self):
        pass


def main(folder, tensors=8):
    torch.set_num_threads(1)
    net = torch.nn.ModuleList(torch.nn.Linear(8, 8) for _ in range(int(tensors) // 2))
    member = hearsay.join({**PLAN, "report": {"directory": os.path.join(folder, "calls"), "overwrite": True}}, net)
    core, block, optimizer = member._core, member._block, Nothing()

    def from_python():
        with member.step(optimizer):
            pass

    def core_alone():
        block.gradient_tensor.zero_()
        core.start()
        core.finish(0.05)
        core.stepped(float("nan"))

    times = {from_python: [], core_alone: []}
    for _ in range(200):
        for step, found in times.items():
            start = time.thread_time()
            for _ in range(20):
                step()
            found.append((time.thread_time() - start) / 20)
    python, core = (1e6 * statistics.median(found) for found in times.values())
    print(f"rank {member.rank}, {len(block.names)} tensors: {python:.1f} µs, the core's calls {core:.1f} µs of it")


if __name__ == "__main__":
    main(*sys.argv[1:])
