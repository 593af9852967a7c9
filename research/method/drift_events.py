#!/usr/bin/env python3
"""Simulate drift correction in lockstep where the ends of an edge fire at different times (decisions.md).

    research/method/drift_events.py [--strength C ...]

One value a rank, uniform weights; rank i's loss is h (x - t_i)^2 / 2, the learning rate is 0.05, 3,000 iterations. A
rank fires at random: with a probability, or after a silence drawn from 1 ... S. Printed is the largest distance of a
rank from the minimum of the sum at the end, for three ways of counting c where only one end has fired: all of it;
2w / (1 - w) of it, at most all; half of that. Some 1e-13 is exact, above 1 is unstable.
"""
import argparse
import random

RATE, ITERATIONS = 0.05, 3000


def ring(ranks):
    return [1, ranks - 1]


def exponential(ranks):
    powers = [2**i for i in range(ranks.bit_length()) if 2**i <= ranks // 2]
    return sorted({d % ranks for p in powers for d in (p, -p)})


def complete(ranks):
    return list(range(1, ranks))


GRAPHS = [(ring, 8), (ring, 16), (exponential, 8), (exponential, 16), (complete, 8)]
SHARES = {
    "all": lambda w: 1.0,
    "2w/(1-w)": lambda w: min(1.0, 2 * w / (1 - w)),
    "w/(1-w)": lambda w: min(1.0, w / (1 - w)),
}


class AtRandom:
    def __init__(self, probability):
        self.probability = probability

    def __call__(self, _k, draw, ranks):
        return [draw.random() < self.probability for _ in range(ranks)]

    def __str__(self):
        return f"with p = {self.probability:g}"


class WithSilences:
    """At most so many iterations long."""

    def __init__(self, longest):
        self.longest, self.due = longest, {}

    def __call__(self, k, draw, ranks):
        if k == 0:
            self.due = {i: draw.randint(0, self.longest - 1) for i in range(ranks)}
        fired = [self.due[i] <= k for i in range(ranks)]
        for i in range(ranks):
            if fired[i]:
                self.due[i] = k + draw.randint(1, self.longest)
        return fired

    def __str__(self):
        return f"after 1 to {self.longest}"


def distance(strength, graph, ranks, fires, share, curvature):
    draw = random.Random(0)
    minima = [draw.gauss(0, 3) for _ in range(ranks)]
    offsets = graph(ranks)
    weight = 1 / (len(offsets) + 1)
    x, v, copies = [0.0] * ranks, [0.0] * ranks, [0.0] * ranks
    edges = sorted({tuple(sorted((i, (i + d) % ranks))) for i in range(ranks) for d in offsets})
    last, silence = dict.fromkeys(edges, -1), dict.fromkeys(edges, 1.0)
    for k in range(ITERATIONS):
        fired = fires(k, draw, ranks)
        copies = [x[i] if fired[i] else copies[i] for i in range(ranks)]
        step = [-RATE * (curvature * (x[i] - minima[i]) - v[i]) for i in range(ranks)]
        for edge in edges:
            i, j = edge
            if not (fired[i] or fired[j]):
                continue
            silence[edge] += (k - last[edge] - silence[edge]) / 8
            last[edge] = k
            counts = 1.0 if fired[i] and fired[j] else share(weight)
            move = weight * (copies[j] - copies[i])
            learnt = counts * strength / (max(1.0, silence[edge]) * RATE) * move
            step[i], step[j] = step[i] + move, step[j] - move
            v[i], v[j] = v[i] + learnt, v[j] - learnt
        x = [x[i] + step[i] for i in range(ranks)]
        if max(map(abs, x)) > 1e9:
            return "diverged"
    return f"{max(abs(value - sum(minima) / ranks) for value in x):.0e}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--strength", type=float, nargs="+", default=[0.5])
    parser.add_argument("--curvature", type=float, default=0.2)
    arguments = parser.parse_args()
    columns = [(name, c) for c in arguments.strength for name in SHARES]
    print("graph, ranks, events".ljust(34) + "".join(f"{name}, c = {c:g}".rjust(20) for name, c in columns))
    for graph, ranks in GRAPHS:
        for fires in (AtRandom(0.5), AtRandom(0.25), WithSilences(4), WithSilences(10)):
            cells = [distance(c, graph, ranks, fires, SHARES[name], arguments.curvature) for name, c in columns]
            print(f"{graph.__name__}, {ranks}, {fires}".ljust(34) + "".join(cell.rjust(20) for cell in cells))


if __name__ == "__main__":
    main()
