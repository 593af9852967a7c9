"""The five lines of the README in a whole program: a PyTorch loop of one's own, on several processes.

    scripts/launch -n 4 python3 python/examples/five_lines.py

Ten classes of points are drawn here. Every process trains on its part of them, and sends its neighbours on a ring what
has changed enough. Run folder: runs/python-five-lines.
"""
import torch
from torch.utils.data import DataLoader, TensorDataset

import hearsay

GOSSIP = {  # or the name of a YAML file
    "exchange": {"name": "eventgrad", "mixing": {"name": "arrival"}},
    "topology": {"graph": {"name": "ring"}},
    "trigger": {"name": "adaptive", "horizon": 1.0},
    "report": {"directory": "runs/python-five-lines", "overwrite": True},
}

torch.manual_seed(1)
targets = torch.randint(10, (4000,))
inputs = torch.randn(10, 20)[targets] + 0.5 * torch.randn(4000, 20)
loader = DataLoader(TensorDataset(inputs, targets), batch_size=32, shuffle=True)
model = torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
criterion = torch.nn.CrossEntropyLoss()

member = hearsay.join(GOSSIP, model)  # parameters become one shared block, all ranks begin equal
for _ in range(5):
    for x, y in member.share(loader):  # this rank's part
        with member.step(optimizer):  # sends what is news, …, mixes, calls the optimizer
            criterion(model(x), y).backward()
member.evaluate(lambda: {"accuracy": (model(inputs).argmax(1) == targets).float().mean()})
print(member.summary())  # messages, bytes, staleness
