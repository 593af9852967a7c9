#!/usr/bin/env python3
"""Simulate drift correction under unequal silences, for each way of saying how long they are (decisions.md).

    research/method/drift_pace.py [--strength C ...]

Eight ranks in a ring with weights 1/3, one value each; rank i's loss is h (x - t_i)^2 / 2 with h = 0.2; the learning
rate is 0.05; 3,000 iterations. Ranks mix after a silence of T iterations, all at once, which is the worst case: edges
that mix at different times damp each other. Printed is the largest distance of a rank from the minimum of the sum at
the end; 1e-2 is slow, "diverged" is more than 1e9 at any time.
"""
import argparse
import itertools
import random

P, CURVATURE, RATE, WEIGHT, ITERATIONS = 8, 0.2, 0.05, 1 / 3, 3000


def latest(silences):
    yield from silences


def peak_hold(silences):
    peak = 1.0
    for silence in silences:
        peak = max(silence, peak - (peak - silence) / 8)
        yield peak


def running_mean(silences):
    mean = 1.0
    for silence in silences:
        mean += (silence - mean) / 8
        yield mean


def growing(factor, longest=100):
    silence = 1.0
    while True:
        yield int(min(longest, silence))
        silence = min(longest, silence * factor)


def blocks(*parts):
    """(silence, how often) again and again."""
    while True:
        for silence, times in parts:
            yield from itertools.repeat(silence, times)


def step(before, times, after):
    yield from itertools.repeat(before, times)
    yield from itertools.repeat(after)


def saw(factor, longest):
    while True:
        yield from itertools.takewhile(lambda silence: silence < longest, growing(factor, longest))


def drawn(*choices):
    draws = random.Random(1)
    while True:
        yield draws.choice(choices)


PATTERNS = {
    "4": lambda: itertools.repeat(4),
    "30 of 1, then 10": lambda: step(1, 30, 10),
    "30 of 1, then 40": lambda: step(1, 30, 40),
    "times 1.2": lambda: growing(1.2),
    "times 1.5": lambda: growing(1.5),
    "times 2": lambda: growing(2),
    "1 and 10 in turns": lambda: blocks((1, 1), (10, 1)),
    "1 and 40 in turns": lambda: blocks((1, 1), (40, 1)),
    "20 of 1, 20 of 40": lambda: blocks((1, 20), (40, 20)),
    "10 of 1, one of 10": lambda: blocks((1, 10), (10, 1)),
    "30 of 1, one of 40": lambda: blocks((1, 30), (40, 1)),
    "saw, times 1.5 to 40": lambda: saw(1.5, 40),
    "random, 1 to 10": lambda: drawn(*range(1, 11)),
    "random, 1 to 40": lambda: drawn(*range(1, 41)),
    "random, 1 or 40": lambda: drawn(1, 40),
}


def distance(strength, pattern, pace):
    draws = random.Random(0)
    minima = [draws.gauss(0, 3) for _ in range(P)]
    x, v, done = [0.0] * P, [0.0] * P, 0
    silences, same = itertools.tee(pattern())
    for silence, tau in zip(silences, pace(same)):
        for _ in range(silence):
            x = [value - RATE * (CURVATURE * (value - minimum) - drift) for value, minimum, drift in zip(x, minima, v)]
        moves = [WEIGHT * (x[i - 1] + x[(i + 1) % P] - 2 * x[i]) for i in range(P)]
        x = [value + move for value, move in zip(x, moves)]
        v = [drift + strength / (max(1.0, tau) * RATE) * move for drift, move in zip(v, moves)]
        if max(map(abs, x)) > 1e9:
            return "diverged"
        done += silence
        if done >= ITERATIONS:
            return f"{max(abs(value - sum(minima) / P) for value in x):.0e}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--strength", type=float, nargs="+", default=[0.1, 0.3, 0.5])
    paces = (latest, peak_hold, running_mean)
    strengths = parser.parse_args().strength
    print("silences".ljust(24) + "".join(f"{pace.__name__} c = {c:g}".rjust(22) for pace in paces for c in strengths))
    for name, pattern in PATTERNS.items():
        print(name.ljust(24) + "".join(distance(c, pattern, pace).rjust(22) for pace in paces for c in strengths))


if __name__ == "__main__":
    main()
