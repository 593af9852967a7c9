"""The most memory (Pss) of a rank that trains an mlp of 987,210 parameters in torch, to be held against --dry-run.

    PYTHONPATH=build/…/python mpirun -n 2 python3 research/bench/memory.py FOLDER

The program's word for the same model: hearsay train MLP.yaml --dry-run -n 2, with
model: {name: mlp, hidden: [1000, 200]}, data: {name: synthetic_digits, batch_size: 1} and the exchange of PLAN.
"""
import os
import sys
import threading
import time

import torch

import hearsay

PLAN = {"exchange": {"name": "eventgrad", "schedule": "asynchronous", "mixing": {"name": "arrival"}}}


def pss_mb():
    with open("/proc/self/smaps_rollup", encoding="utf-8") as rollup:
        return sum(int(line.split()[1]) for line in rollup if line.startswith("Pss:")) / 1000


class Peak(threading.Thread):
    """Looks every 5 ms."""

    def __init__(self):
        super().__init__(daemon=True)
        self.mb = 0.0

    def run(self):
        while True:
            self.mb = max(self.mb, pss_mb())
            time.sleep(0.005)


def main(folder):
    torch.set_num_threads(1)
    sizes = (784, 1000, 200, 10)
    layers = [part for n, m in zip(sizes, sizes[1:]) for part in (torch.nn.Linear(n, m), torch.nn.ReLU())]
    net = torch.nn.Sequential(*layers[:-1])
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    before, peak = pss_mb(), Peak()
    peak.start()
    report = {"directory": os.path.join(folder, "memory"), "overwrite": True}
    member = hearsay.join({**PLAN, "report": report}, net)

    def loss():
        return torch.nn.functional.cross_entropy(net(torch.randn(1, 784)), torch.tensor([1]))

    for _ in range(50):
        with member.step(optimizer) as step:
            step.loss = loss()
            step.loss.backward()
    member.evaluate(lambda: {"loss": loss()})
    member.summary()
    print(f"rank {member.rank}: {before:.0f} MB before join, {peak.mb:.0f} MB at most")


if __name__ == "__main__":
    main(*sys.argv[1:])
