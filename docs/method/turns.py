#!/usr/bin/env python3
"""Simulate asynchronous edges whose ends take turns (decisions.md), with and without drift correction.

    docs/method/turns.py [--strength C ...]

Eight ranks in a ring with weights 1/3, one value each; rank i's loss is h (x - t_i)^2 / 2 with h = 0.2; the learning
rate is 0.05; 4,000 iterations of a usual rank, which are 10 % faster or slower each. Ranks fire at random; one rank may
be four times slower or faster; a packet takes up to ten iterations. Printed is in how many of the 72 patterns every
rank ends within 1e-3 of the minimum of the sum, for copies that follow the moves that both ends know and for copies
that stay as they were sent. About a minute for each strength and kind of copies.
"""
import argparse
import heapq
import itertools
import random

P, CURVATURE, RATE, WEIGHT, TIME = 8, 0.2, 0.05, 1 / 3, 4000.0


class Edge:
    """One end of an edge."""

    def __init__(self, turn):
        self.turn, self.wants, self.packet = turn, False, None  # packet: what this end has under way
        self.mine = self.theirs = 0.0
        self.last, self.silence, self.heard = 0, 1.0, 0.0

    def event(self, k):
        self.silence += (k - self.last - self.silence) / 8
        self.last = k


def distance(fires, delays, speed, strength, follow, seed=0):
    """The largest distance of a rank from the minimum of the sum; infinite if it diverges."""
    draw = random.Random(seed)
    x = [draw.gauss(0, 1) for _ in range(P)]
    target = [3 * draw.gauss(0, 1) for _ in range(P)]
    v, k = [0.0] * P, [0] * P
    ends = {(i, j): Edge(i < j) for i in range(P) for j in ((i - 1) % P, (i + 1) % P)}
    edges_of = [[(j, ends[i, j], ends[j, i]) for j in ((i - 1) % P, (i + 1) % P)] for i in range(P)]
    ready = [(draw.random(), i) for i in range(P)]
    heapq.heapify(ready)
    while ready[0][0] < TIME:
        now, i = heapq.heappop(ready)
        k[i] += 1
        own = []
        for _, end, _ in edges_of[i]:
            end.wants |= draw.random() < fires[i]
            if not end.turn:
                continue
            end.turn, arrives = False, now + draw.uniform(*delays)
            end.packet = (arrives, None)
            if end.wants:
                end.wants = False
                end.event(k[i])
                rate = strength / (RATE * max(2.0, end.silence, end.heard))
                move = WEIGHT * (end.theirs - x[i])
                end.packet = (arrives, (x[i], rate, max(2.0, end.silence)))
                end.mine = x[i] + follow * move
                end.theirs -= follow * move
                own.append((move, rate))
        gradient = CURVATURE * (x[i] - target[i])
        for move, rate in own:
            x[i] += move
            v[i] += rate * move
        for _, end, other in edges_of[i]:
            if other.packet is None or other.packet[0] > now:
                continue
            (_, event), other.packet, end.turn = other.packet, None, True
            if event is None:
                continue
            value, rate, end.heard = event
            move = WEIGHT * (value - end.mine)
            end.event(k[i])
            x[i] += move
            v[i] += rate * move
            end.theirs = value - follow * move
            end.mine += follow * move
        x[i] -= RATE * (gradient - v[i])
        if not abs(x[i]) < 1e6:
            return float("inf")
        heapq.heappush(ready, (now + (speed if i == 0 else 1.0) * draw.uniform(0.9, 1.1), i))
    minimum = sum(target) / P
    return max(abs(value - minimum) for value in x)


def patterns():
    some = [[p] * P for p in (1, 0.3, 0.1)]
    unlike = [[1, 0.05] * (P // 2), [0.05] + [1] * (P - 1), [1] + [0.05] * (P - 1)]
    return itertools.product(some + unlike, ((0.01, 0.1), (0.3, 0.8), (1, 3), (5, 10)), (1.0, 4.0, 0.25))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--strength", type=float, nargs="+", default=[0.0, 0.3, 0.5])
    for strength in parser.parse_args().strength:
        for follow in (True, False):
            ends = [distance(fires, delays, speed, strength, follow) for fires, delays, speed in patterns()]
            copies = "follow" if follow else "stay"
            print(f"c = {strength}, copies {copies}: {sum(d < 1e-3 for d in ends)} of {len(ends)} "
                  f"reach the minimum, {sum(d > 100 for d in ends)} diverge, the largest distance is {max(ends):.2g}")


if __name__ == "__main__":
    main()
