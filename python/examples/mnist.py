"""MNIST-like digits with a PyTorch network, three ways: D-PSGD, EventGraD, EventGraD with Top-k.

    scripts/launch -n 4 python3 python/examples/mnist.py [--steps N] [--data FOLDER]

Without --data the digits are drawn here: every class is a smooth random picture, and an example is one of them, moved
and noisy. --data names a folder with MNIST's four files (scripts/get-data mnist FOLDER). Run folders: runs/python-….
"""
import argparse
import gzip
import os

import numpy as np
import torch
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

import hearsay

GRAPH = {"graph": {"name": "ring"}}
WAYS = {
    "dpsgd": {"exchange": {"name": "dpsgd"}},
    "eventgrad": {"exchange": {"name": "eventgrad", "mixing": {"name": "arrival"}}},
    "sparse": {
        "exchange": {"name": "eventgrad", "mixing": {"name": "arrival"}},
        "sparsify": {"selector": {"name": "topk", "density": 0.1}},
    },
}


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(1, 8, 3)
        self.conv2 = torch.nn.Conv2d(8, 16, 3)
        self.fc1 = torch.nn.Linear(400, 32)
        self.fc2 = torch.nn.Linear(32, 10)

    def forward(self, x):
        x = F.relu(F.max_pool2d(self.conv1(x), 2))
        x = F.relu(F.max_pool2d(self.conv2(x), 2))
        return self.fc2(F.relu(self.fc1(x.flatten(1))))


def drawn(examples, seed):
    """(examples, 1, 28, 28) in [0, 1] with noise, and their classes. The same classes for every seed."""
    pictures = np.random.default_rng(0).normal(size=(10, 7, 7)).repeat(4, axis=1).repeat(4, axis=2)
    random = np.random.default_rng(seed)
    labels = random.integers(10, size=examples)
    images = np.stack([np.roll(pictures[c], random.integers(-2, 3, size=2), (0, 1)) for c in labels])
    images += random.normal(scale=0.7, size=images.shape)
    return torch.from_numpy(images[:, None].astype(np.float32)), torch.from_numpy(labels)


def read(folder, which):
    """One of MNIST's two sets."""

    def content(name, header):
        for path, opened in ((os.path.join(folder, name), open), (os.path.join(folder, name + ".gz"), gzip.open)):
            if os.path.exists(path):
                with opened(path, "rb") as file:
                    return np.frombuffer(file.read(), np.uint8, offset=header)
        raise SystemExit(f"{folder} has no {name}; fetch it with scripts/get-data mnist {folder}")

    images = content(f"{which}-images-idx3-ubyte", 16).reshape(-1, 1, 28, 28)
    labels = content(f"{which}-labels-idx1-ubyte", 8)
    inputs = (images.astype(np.float32) / 255 - 0.13) / 0.31
    return torch.from_numpy(inputs), torch.from_numpy(labels.astype(np.int64))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=300, help="of every rank and way (default: 300)")
    parser.add_argument("--data", help="folder with MNIST's files")
    options = parser.parse_args()
    train = read(options.data, "train") if options.data else drawn(8000, 1)
    inputs, targets = read(options.data, "t10k") if options.data else drawn(2000, 2)
    loader = DataLoader(TensorDataset(*train), batch_size=32, shuffle=True)

    for name, way in WAYS.items():
        torch.manual_seed(7)
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        report = {"directory": f"runs/python-{name}", "overwrite": True}
        member = hearsay.join({**way, "topology": GRAPH, "report": report}, model, data="mnist")
        batches = member.share(loader)
        while member.steps < options.steps:
            for x, y in batches:
                with member.step(optimizer) as step:
                    step.loss = F.cross_entropy(model(x), y)
                    step.loss.backward()
                if member.steps == options.steps:
                    break

        def score():
            output = model(inputs)
            correct = (output.argmax(1) == targets).float().mean()
            return {"accuracy": correct, "loss": F.cross_entropy(output, targets)}

        member.evaluate(score)
        summary = member.summary()
        if member.rank == 0:
            print(summary)
        member.leave()


if __name__ == "__main__":
    main()
