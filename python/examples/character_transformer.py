"""A small transformer that learns characters with AdamW, gossiped.

    scripts/launch -n 2 python3 python/examples/character_transformer.py [--text FILE] [--steps N] [--layers 2 …]

Without --text the text is drawn from a small grammar of sentences. Run folder: runs/python-transformer. With
--layers 4 --width 128 --block 64 --steps 2000 and Shakespeare it has the size of the well-known small setting.
"""
import argparse
import itertools
import random as python_random

import torch
from torch.nn import functional as F

import hearsay

PLAN = {
    "exchange": {"name": "eventgrad", "schedule": "asynchronous", "mixing": {"name": "arrival"}},
    "trigger": {"name": "adaptive", "warmup_iterations": 20, "maximum_silence": 20},
    "report": {"directory": "runs/python-transformer", "overwrite": True},
}


class Block(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2 = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.attention = torch.nn.MultiheadAttention(width, heads, batch_first=True)
        self.mlp = torch.nn.Sequential(
            torch.nn.Linear(width, 4 * width), torch.nn.GELU(), torch.nn.Linear(4 * width, width)
        )

    def forward(self, x, mask):
        y = self.norm1(x)
        x = x + self.attention(y, y, y, attn_mask=mask, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


class Transformer(torch.nn.Module):
    def __init__(self, characters, block, layers, heads, width):
        super().__init__()
        self.token = torch.nn.Embedding(characters, width)
        self.position = torch.nn.Embedding(block, width)
        self.blocks = torch.nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.head = torch.nn.LayerNorm(width), torch.nn.Linear(width, characters)
        self.register_buffer("mask", torch.triu(torch.full((block, block), float("-inf")), diagonal=1))

    def forward(self, tokens):
        n = tokens.shape[1]
        x = self.token(tokens) + self.position(torch.arange(n))
        for block in self.blocks:
            x = block(x, self.mask[:n, :n])
        return self.head(self.norm(x))


def drawn(sentences):
    """Sentences of a grammar: article adjective noun verb article noun."""
    draw = python_random.Random(0)
    nouns = ["rank", "graph", "model", "packet", "mailbox", "trigger"]
    words = [["the", "a"], ["old", "new", "small"], nouns, ["sends", "keeps", "mixes"], ["the", "a"], nouns]
    return " ".join(" ".join(draw.choice(of) for of in words) + "." for _ in range(sentences))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", help="a file to learn")
    for name, default in {"steps": 200, "layers": 2, "heads": 2, "width": 48, "block": 32, "batch": 12}.items():
        parser.add_argument(f"--{name}", type=int, default=default, help=f"(default: {default})")
    options = parser.parse_args()
    if options.text:
        with open(options.text, encoding="utf-8") as file:
            text = file.read()
    else:
        text = drawn(4000)
    letters = {letter: i for i, letter in enumerate(sorted(set(text)))}
    tokens = torch.tensor([letters[letter] for letter in text])
    cut = int(0.9 * len(tokens))
    train, validation = tokens[:cut], tokens[cut:]

    torch.manual_seed(7)
    model = Transformer(len(letters), options.block, options.layers, options.heads, options.width)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    member = hearsay.join(PLAN, model, optimizer=optimizer, data="characters", iterations=options.steps)
    draw = torch.Generator().manual_seed(member.rank)  # every rank draws pieces of its own

    def batch(of, generator):
        starts = torch.randint(len(of) - options.block - 1, (options.batch,), generator=generator)
        pieces = torch.stack([of[s : s + options.block + 1] for s in starts])
        return pieces[:, :-1], pieces[:, 1:]

    def loss_of(x, y):
        return F.cross_entropy(model(x).flatten(0, 1), y.flatten())

    for _ in itertools.repeat(None, options.steps):
        with member.step(optimizer) as step:
            step.loss = loss_of(*batch(train, draw))
            step.loss.backward()

    def score():
        same = torch.Generator().manual_seed(99)
        return {"loss": sum(loss_of(*batch(validation, same)) for _ in range(10)) / 10}

    found = member.evaluate(score)
    if member.rank == 0:
        print(f"validation loss of the averaged model: {found['loss_mean_model']:.3f} nats a character")
    print(member.summary())


if __name__ == "__main__":
    main()
