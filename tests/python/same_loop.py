"""The loop of same_loop.cpp in Python, on what that has written: to compare bits and times.

    mpirun -n 2 python3 same_loop.py gossip.yaml FOLDER STEPS BATCH [bare | both]

Prints one JSON object a rank. `bare`: the optimizer alone, with gradients in tensors of their own as torch makes them.
`both`: both of them, ten steps each in turn, so that what else the machine does slows both down.
"""
import copy
import json
import os
import sys
import time

import numpy as np
import torch

LEARNING_RATE, MOMENTUM = 0.05, 0.9


class Net(torch.nn.Module):
    """Two convolutions, dropout, two dense layers; for 28×28 images in ten classes."""

    def __init__(self):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(1, 10, 3)
        self.conv2 = torch.nn.Conv2d(10, 20, 3)
        self.drop = torch.nn.Dropout(0.5)
        self.fc1 = torch.nn.Linear(500, 50)
        self.fc2 = torch.nn.Linear(50, 10)

    def forward(self, x):
        x = torch.relu(torch.max_pool2d(self.conv1(x), 2))
        x = torch.relu(torch.max_pool2d(self.conv2(x), 2))
        return self.fc2(self.drop(torch.relu(self.fc1(x.flatten(1)))))


def bare_step(net, optimizer, x, y):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(net(x), y).backward()
    optimizer.step()


def member_step(member, net, optimizer, x, y):
    with member.step(optimizer):
        torch.nn.functional.cross_entropy(net(x), y).backward()


class Times:
    """Times of steps: by the clock, and processor time of the thread that computes."""

    def __init__(self):
        self.clock, self.thread = [], []

    def of(self, step, *arguments):
        start, thread_start = time.perf_counter(), time.thread_time()
        step(*arguments)
        self.clock.append(time.perf_counter() - start)
        self.thread.append(time.thread_time() - thread_start)

    def medians(self, before=""):
        return {
            f"{before}median_ms": 1e3 * float(np.median(self.clock)),
            f"{before}thread_ms": 1e3 * float(np.median(self.thread)),
        }


def initial_model(folder):
    net = Net()
    initial, begin = np.fromfile(os.path.join(folder, "x0"), np.float32), 0
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_(torch.from_numpy(initial[begin : begin + parameter.numel()]).view(parameter.shape))
            begin += parameter.numel()
    return net


def optimizer_of(net):
    return torch.optim.SGD(net.parameters(), lr=LEARNING_RATE, momentum=MOMENTUM)


def main(config, folder, steps, batch, mode=None):
    steps, batch = int(steps), int(batch)
    torch.set_num_threads(1)
    net = initial_model(folder)
    alone = copy.deepcopy(net)
    optimizer, optimizer_alone = optimizer_of(net), optimizer_of(alone)
    rank, member = int(os.environ.get("OMPI_COMM_WORLD_RANK", 0)), None
    if mode != "bare":
        import hearsay

        plan = {"report.directory": os.path.join(folder, "run"), "report.overwrite": True}
        member = hearsay.join(config, net, optimizer=optimizer, set=plan)
    inputs = torch.from_numpy(np.fromfile(os.path.join(folder, f"inputs{rank}"), np.float32)).view(-1, batch, 1, 28, 28)
    labels = torch.from_numpy(np.fromfile(os.path.join(folder, f"labels{rank}"), np.float32)).long().view(-1, batch)
    torch.manual_seed(rank)
    times, times_alone = Times(), Times()
    process_start = time.process_time()
    for k in range(steps):
        x, y = inputs[k % len(inputs)], labels[k % len(inputs)]
        if mode == "bare" or (mode == "both" and k // 10 % 2 == 0):
            times_alone.of(bare_step, alone, optimizer_alone, x, y)
        else:
            times.of(member_step, member, net, optimizer, x, y)
    said = {"rank": rank, "process_ms": 1e3 * (time.process_time() - process_start) / steps}
    said.update(times_alone.medians() if mode == "bare" else times.medians())
    if mode == "both":
        said.update(times_alone.medians("bare_"))
    if member:
        said["hash"] = member.replica_hash
        member.summary()
        counts = member.counts()
        said.update(messages=counts["messages"], bytes=counts["bytes_sent"])
    print(json.dumps(said))


if __name__ == "__main__":
    main(*sys.argv[1:])
