#!/usr/bin/env python3
"""Write a PyTorch module as a file that `model: {name: torchscript, path: FILE}` trains: three examples.

    analysis/export_model.py images net.pt                       # 28×28 images in ten classes: synthetic_digits, mnist
    analysis/export_model.py text net.pt --vocabulary 65         # characters: text
    analysis/export_model.py numbers net.pt --inputs 4           # rows of numbers to one number: csv

Any module will do whose forward takes one tensor, a batch of inputs, and gives one: logits (B, targets…, classes), or
(B, targets…) numbers. Its parameters are segments by their names. Dropout, normalisation and buffers work as in Python.
Needs python3-torch.
"""
import argparse
import sys

try:
    import torch
    from torch import nn
except ImportError:
    if {"-h", "--help"} & set(sys.argv):
        print(__doc__)
        sys.exit(0)
    print("export_model.py: this Python has no torch (Debian: apt install python3-torch)", file=sys.stderr)
    sys.exit(3)


class Images(nn.Module):
    """Convolutions with normalisation and dropout."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3), nn.ReLU()
        )
        self.head = nn.Sequential(nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Dropout(0.2), nn.Linear(256, 10))

    def forward(self, x):  # (B, 1, 28, 28) → (B, 10)
        return self.head(self.features(x))


class Text(nn.Module):
    """A gated recurrent network."""

    def __init__(self, vocabulary):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, 32)
        self.gru = nn.GRU(32, 64, batch_first=True)
        self.head = nn.Linear(64, vocabulary)

    def forward(self, tokens):  # (B, T) → (B, T, V)
        states, _ = self.gru(self.tokens(tokens))
        return self.head(states)


class Numbers(nn.Module):
    """One hidden layer."""

    def __init__(self, inputs):
        super().__init__()
        self.hidden = nn.Linear(inputs, 32)
        self.out = nn.Linear(32, 1)

    def forward(self, x):  # (B, inputs) → (B)
        return self.out(torch.tanh(self.hidden(x))).squeeze(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=["images", "text", "numbers"])
    parser.add_argument("file")
    parser.add_argument("--vocabulary", type=int, default=65, help="tokens of the text (default: 65)")
    parser.add_argument("--inputs", type=int, default=4, help="numbers of a row (default: 4)")
    options = parser.parse_args()
    torch.manual_seed(1)
    net = {
        "images": Images,
        "text": lambda: Text(options.vocabulary),
        "numbers": lambda: Numbers(options.inputs),
    }[options.kind]()
    torch.jit.script(net).save(options.file)
    print(f"{options.file}: {sum(p.numel() for p in net.parameters()):,} parameters")


if __name__ == "__main__":
    main()
