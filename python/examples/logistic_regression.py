"""Logistic regression in plain numpy, on data that the ranks draw for themselves. No PyTorch.

    scripts/launch -n 4 python3 python/examples/logistic_regression.py [gossip.yaml]

Every rank sees two of five classes only. Alone it would never tell the others; the averaged model does.
"""
import sys

import numpy as np

import hearsay

CLASSES, FEATURES, BATCH, RATE, STEPS = 5, 20, 32, 0.5, 400
PLAN = {
    "exchange": {"name": "eventgrad", "mixing": {"name": "arrival"}},
    "trigger": {"name": "constant", "threshold": 0.02},
    "report": {"directory": "runs/python-logistic", "overwrite": True},
}
CENTRES = np.random.default_rng(0).normal(size=(CLASSES, FEATURES)).astype(np.float32)


def draw(random, classes, examples):
    labels = random.choice(classes, size=examples)
    return CENTRES[labels] + random.normal(scale=0.8, size=(examples, FEATURES)).astype(np.float32), labels


def probabilities(parameters, inputs):
    logits = inputs @ parameters["weight"] + parameters["bias"]
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    return exponentials / exponentials.sum(axis=1, keepdims=True)


def loss_of(p, labels):
    return float(-np.log(p[np.arange(len(labels)), labels] + 1e-12).mean())


def main():
    start = {"weight": np.zeros((FEATURES, CLASSES), np.float32), "bias": np.zeros(CLASSES, np.float32)}
    member = hearsay.join(sys.argv[1] if len(sys.argv) > 1 else PLAN, start, learning_rate=RATE)
    x, g = member.parameters, member.gradients  # views: to be changed in place
    random = np.random.default_rng(1 + member.rank)
    mine = [(2 * member.rank) % CLASSES, (2 * member.rank + 1) % CLASSES]
    for _ in range(STEPS):
        with member.step(learning_rate=RATE) as step:
            inputs, labels = draw(random, mine, BATCH)
            p = probabilities(x, inputs)
            step.loss = loss_of(p, labels)
            p[np.arange(BATCH), labels] -= 1.0
            g["weight"][...] = inputs.T @ p / BATCH
            g["bias"][...] = p.mean(axis=0)
            step.exchange()  # mixes x, or makes g all ranks'
            for name in x:
                x[name] -= RATE * g[name]

    inputs, labels = draw(np.random.default_rng(99), np.arange(CLASSES), 2000)

    def score():
        p = probabilities(x, inputs)
        return {"accuracy": (p.argmax(axis=1) == labels).mean(), "loss": loss_of(p, labels)}

    member.evaluate(score)
    print(member.summary())


if __name__ == "__main__":
    main()
