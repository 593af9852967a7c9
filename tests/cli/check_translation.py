#!/usr/bin/env python3
"""What a run of `seq2seq` or `seq2seq_transformer` says of its averaged model, computed again by PyTorch.

    check_translation.py RUN SOURCE_FILE TARGET_FILE LENGTH [HEADS]

Cuts the lines into tokens by vocabulary.txt, reads the weights of model.pt by their names, and compares loss, accuracy
and BLEU of the most probable translations with summary.json. BLEU is sacrebleu's where that is installed, else counted
here. Exit status 0: equal to 1e-5, BLEU to 1e-6.
"""
import collections
import json
import math
import re
import sys

import torch
from torch import nn
from torch.nn import functional

run, source_file, target_file, length = *sys.argv[1:4], int(sys.argv[4])
heads = int(sys.argv[5]) if len(sys.argv) > 5 else 0
archive = torch.jit.load(f"{run}/model.pt")
weights = archive.state_dict()
PADDING, BEGIN, END = 0, 1, 2

# ---------------------------------------------------------------- tokens


def unescaped(line):
    parts = re.split(r"(\\x[0-9a-f]{2}|\\[\\nt])", line)
    plain = {"\\\\": b"\\", "\\n": b"\n", "\\t": b"\t"}
    return b"".join(
        bytes([int(part[2:], 16)]) if part[:2] == "\\x" else plain.get(part, part.encode()) for part in parts
    )


with open(f"{run}/vocabulary.txt", encoding="utf-8", newline="\n") as stream:
    head, *vocabulary = stream.read().split("\n")[:-1]
assert archive.vocabulary == "".join(line + "\n" for line in vocabulary), "the model has the run's vocabulary"
texts = [unescaped(line) for line in vocabulary]
number = {text: token for token, text in reversed(list(enumerate(texts))) if text}


def encoded(line):
    tokens = []
    for word in re.findall(r"\s?(?:[A-Za-z0-9\x80-\U0010ffff]+|[^\sA-Za-z0-9\x80-\U0010ffff]+)", " " + line):
        parts = [bytes([byte]) for byte in word.encode()]
        while True:
            pairs = [(number.get(a + b, math.inf), i) for i, (a, b) in enumerate(zip(parts, parts[1:]))]
            token, at = min(pairs, default=(math.inf, 0))
            if token == math.inf:
                break
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
        tokens += [number[part] for part in parts]
    return tokens


def decoded(tokens):
    return b"".join(texts[token] for token in tokens).decode(errors="replace").removeprefix(" ")


# ---------------------------------------------------------------- models


def linear(x, name):
    return functional.linear(x, weights[f"{name}.weight"], weights.get(f"{name}.bias"))


def part(name, module):
    own = {key[len(name) + 1 :]: value for key, value in weights.items() if key.startswith(name + ".")}
    module.load_state_dict(own)
    return module


class Recurrent:
    def __init__(self):
        width, hidden = weights["source.weight"].shape[1], weights["query.weight"].shape[0]
        self.encoder = part("encoder", nn.GRU(width, hidden, batch_first=True, bidirectional=True))
        self.cell1 = part("cell1", nn.GRUCell(width, hidden))
        self.cell2 = part("cell2", nn.GRUCell(2 * hidden, hidden))

    def __call__(self, source, target):
        read = self.encoder(weights["source.weight"][source][None])[0][0]
        state = torch.tanh(linear(read.mean(0), "start"))
        logits = []
        for token in target:
            before = weights["target.weight"][token]
            half = self.cell1(before[None], state[None])[0]
            scores = linear(torch.tanh(linear(read, "keys") + linear(half, "query")), "score")[:, 0]
            context = scores.softmax(0) @ read
            state = self.cell2(context[None], half[None])[0]
            logits.append(linear(torch.tanh(linear(torch.cat([state, before, context]), "deep")), "head"))
        return torch.stack(logits)


class Transformer:
    def __init__(self):
        self.width = weights["tokens.weight"].shape[1]
        self.layers = len({name.split(".")[1] for name in weights if name.startswith("encoder.")})

    def norm(self, x, name):
        return functional.layer_norm(x, (self.width,), weights[f"{name}.weight"], weights[f"{name}.bias"])

    def embedded(self, tokens):
        at = torch.arange(len(tokens))[:, None] / 10000 ** (torch.arange(0, self.width, 2) / self.width)
        places = torch.zeros(len(tokens), self.width)
        places[:, 0::2], places[:, 1::2] = at.sin(), at.cos()
        return math.sqrt(self.width) * weights["tokens.weight"][tokens] + places

    def attention(self, x, seen, name, causal=False):
        def split(y, which):
            return linear(y, f"{name}.{which}").view(len(y), heads, -1).transpose(0, 1)

        scores = split(x, "query") @ split(seen, "key").transpose(1, 2) / math.sqrt(self.width // heads)
        if causal:
            scores += torch.full((len(x), len(x)), -math.inf).triu(1)
        mixed = scores.softmax(-1) @ split(seen, "value")
        return linear(mixed.transpose(0, 1).reshape(len(x), -1), f"{name}.projection")

    def layer(self, x, name, memory=None):
        own = self.norm(x, f"{name}.norm1")
        x = x + self.attention(own, own, f"{name}.self", memory is not None)
        if memory is not None:
            x = x + self.attention(self.norm(x, f"{name}.norm_source"), memory, f"{name}.source")
        return x + linear(linear(self.norm(x, f"{name}.norm2"), f"{name}.up").relu(), f"{name}.down")

    def __call__(self, source, target):
        x, y = self.embedded(source), self.embedded(target)
        for number in range(self.layers):
            x = self.layer(x, f"encoder.{number}")
        x = self.norm(x, "encoder_norm")
        for number in range(self.layers):
            y = self.layer(y, f"decoder.{number}", x)
        return self.norm(y, "decoder_norm") @ weights["tokens.weight"].T


# ---------------------------------------------------------------- BLEU

SIGNS = [(r"([\{-\~\[-\` -\&\(-\+\:-\@\/])", r" \1 "), (r"([^0-9])([\.,])", r"\1 \2 "), (r"([\.,])([^0-9])", r" \1 \2"),
         (r"([0-9])(-)", r"\1 \2 ")]  # fmt: skip


def words(text):
    text = f" {text} "
    for pattern, by in SIGNS:
        text = re.sub(pattern, by, text)
    return text.split()


def bleu(translations, references):
    try:
        from sacrebleu.metrics import BLEU

        return BLEU(smooth_method="none").corpus_score(translations, [references]).score
    except ImportError:
        pass
    matches, all_grams, ours, theirs = [0] * 4, [0] * 4, 0, 0
    for a, b in zip(map(words, translations), map(words, references)):
        ours, theirs = ours + len(a), theirs + len(b)
        for n in range(1, 5):
            grams = [collections.Counter(zip(*(w[i:] for i in range(n)))) for w in (a, b)]
            matches[n - 1] += sum((grams[0] & grams[1]).values())
            all_grams[n - 1] += sum(grams[0].values())
    if not all(matches):
        return 0.0
    return 100 * math.exp(sum(math.log(m / g) for m, g in zip(matches, all_grams)) / 4 + min(0, 1 - theirs / ours))


# ---------------------------------------------------------------- the run's figures

model = Transformer() if "encoder_norm.weight" in weights else Recurrent()
loss = correct = count = 0
translations, references = [], []
with open(source_file, encoding="utf-8") as a, open(target_file, encoding="utf-8") as b, torch.no_grad():
    for source_line, target_line in zip(a, b):
        source, target = encoded(source_line.strip()), encoded(target_line.strip())
        logits, wanted = model(source, [BEGIN, *target]), torch.tensor([*target, END])
        loss += functional.cross_entropy(logits, wanted, reduction="sum").item()
        correct += (logits.argmax(1) == wanted).sum().item()
        count += len(wanted)
        written = [BEGIN]
        while written[-1] != END and len(written) <= min(length, 2 * len(source) + 10):
            written.append(model(source, written)[-1].argmax().item())
        translations.append(decoded(written))
        references.append(decoded(target))
with open(f"{run}/summary.json", encoding="utf-8") as stream:
    said = {metric["name"]: metric["mean_model"] for metric in json.load(stream)["metrics"]}
found = {"loss": loss / count, "accuracy": correct / count, "bleu": bleu(translations, references)}
print(*(f"{name} {value} and {said[name]}" for name, value in found.items()), sep=", ")
limits = {"loss": 1e-5, "accuracy": 1e-3, "bleu": 1e-6}
sys.exit(any(abs(found[name] - said[name]) > limit for name, limit in limits.items()))
