#!/usr/bin/env python3
"""What a run of `transformer` on the characters of a file says of its averaged model, computed again by PyTorch.

    check_transformer.py RUN FILE HEADS [TEST_FRACTION]

Reads the weights of model.pt by their names and the last part of FILE, and compares loss and accuracy with
summary.json. Exit status 0: equal to 1e-5.
"""
import json
import math
import sys

import torch
from torch.nn import functional

run, file, heads = sys.argv[1], sys.argv[2], int(sys.argv[3])
test_fraction = float(sys.argv[4]) if len(sys.argv) > 4 else 0.1
weights = torch.jit.load(f"{run}/model.pt").state_dict()
length, width = weights["positions.weight"].shape


def linear(x, name):
    return functional.linear(x, weights[f"{name}.weight"], weights[f"{name}.bias"])


def norm(x, name):
    return functional.layer_norm(x, (width,), weights[f"{name}.weight"], weights[f"{name}.bias"])


def split(x):
    return x.view(len(x), length, heads, width // heads).transpose(1, 2)


def block(x, name):
    q, k, v = (split(part) for part in linear(norm(x, f"{name}.norm1"), f"{name}.qkv").chunk(3, -1))
    scores = q @ k.transpose(-1, -2) / math.sqrt(width // heads)
    later = torch.ones(length, length).triu(1).bool()
    attended = scores.masked_fill(later, -math.inf).softmax(-1) @ v
    x = x + linear(attended.transpose(1, 2).reshape(x.shape), f"{name}.projection")
    up = functional.gelu(linear(norm(x, f"{name}.norm2"), f"{name}.up"), approximate="tanh")
    return x + linear(up, f"{name}.down")


def logits(tokens):
    x = weights["tokens.weight"][tokens] + weights["positions.weight"]
    for number in range(len({name.split(".")[1] for name in weights if name.startswith("blocks.")})):
        x = block(x, f"blocks.{number}")
    return functional.linear(norm(x, "norm"), weights["tokens.weight"])


text = open(file, encoding="utf-8", newline="").read()
number = {character: n for n, character in enumerate(sorted(set(text)))}
tokens = torch.tensor([number[character] for character in text[int(len(text) * (1 - test_fraction)) :]])
sequences = torch.stack([tokens[i : i + length + 1] for i in range(0, len(tokens) - length, length)])
loss = correct = 0.0
with torch.no_grad():
    for part in sequences.split(200):
        out, targets = logits(part[:, :-1]), part[:, 1:]
        loss += functional.cross_entropy(out.flatten(0, 1), targets.flatten(), reduction="sum").item()
        correct += (out.argmax(-1) == targets).sum().item()
count = len(sequences) * length
with open(f"{run}/summary.json", encoding="utf-8") as stream:
    said = {metric["name"]: metric["mean_model"] for metric in json.load(stream)["metrics"]}
print(f"loss {loss / count} and {said['loss']}, accuracy {correct / count} and {said['accuracy']}")
sys.exit(abs(loss / count - said["loss"]) > 1e-5 or abs(correct / count - said["accuracy"]) > 1e-3)
