"""DistributedDataParallel within a machine, gossip between machines: three lines of a DDP loop are others.

    torchrun --nproc-per-node 4 python/examples/machines.py      # two "machines" of two processes on this one

Gradients are averaged within a machine; the machines send each other what has changed enough. Run folders:
runs/python-machines/shard-0 and shard-1, a part of the parameters each.
"""
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

import hearsay

PROCESSES = 2  # a machine
GOSSIP = {
    "exchange": {"name": "eventgrad", "mixing": {"name": "arrival"}},
    "trigger": {"name": "adaptive", "horizon": 1.0},
    "report": {"directory": "runs/python-machines", "overwrite": True},
}


def mine(groups):
    """The one of these groups of processes, which all processes make, that this one is in."""
    made = [(group, dist.new_group(list(group))) for group in groups]
    return next(it for group, it in made if dist.get_rank() in group)


dist.init_process_group("gloo")
everybody = range(dist.get_world_size())
machine = mine(everybody[i : i + PROCESSES] for i in everybody[::PROCESSES])
same_place = mine(everybody[i::PROCESSES] for i in range(PROCESSES))

torch.manual_seed(1)
targets = torch.randint(10, (4000,))
inputs = torch.randn(10, 20)[targets] + 0.5 * torch.randn(4000, 20)
loader = DataLoader(TensorDataset(inputs, targets), batch_size=16, shuffle=True)
model = torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
criterion = torch.nn.CrossEntropyLoss()

ddp = DistributedDataParallel(model, process_group=machine)  # was: all processes
member = hearsay.wrap(ddp, optimizer, GOSSIP, mesh=same_place)
for _ in range(5):
    for x, y in member.share(loader):  # was: a DistributedSampler
        optimizer.zero_grad()
        criterion(ddp(x), y).backward()
        optimizer.step()
member.evaluate(lambda: {"accuracy": (model(inputs).argmax(1) == targets).float().mean()})
print(member.summary())
