#!/usr/bin/env python3
"""Simulate asynchronous edges whose ends take turns (decisions.md), with and without drift correction.

    research/method/alternating.py [--strength C ...] [--graph ring|torus] [--curvature H] [--late] [--copies-stay]

Eight ranks in a ring with weights 1/3, or sixteen in a torus with weights 1/5, one value each; rank i's loss is
h_i (x - t_i)^2 / 2 with h_i up to H; the learning rate is 0.05; 400 to 4,000 iterations of a usual rank, which are
10 % faster or slower each. Ranks send what fires, at random, when an iteration begins, move by it, take the gradient
there, and move by what has come when the iteration ends; one rank may be four times slower or faster, or every other
one two times slower; a packet takes up to ten iterations. Printed is in how many of the 96 patterns every rank ends
within 1e-3 of the minimum of the sum, and in how many one diverges.

--late           ranks move by what they have sent when the iteration ends, as in D-PSGD
--copies-stay    copies stay as they were sent, instead of following the moves that both ends know
"""
import argparse
import heapq
import itertools
import random

RATE = 0.05


class Edge:
    """One end of an edge."""

    def __init__(self, turn):
        self.turn, self.wants, self.packet = turn, False, None  # packet: what this end has under way
        self.mine = self.theirs = 0.0
        self.last, self.silence, self.heard = 0, 1.0, 0.0

    def event(self, k):
        self.silence += (k - self.last - self.silence) / 8
        self.last = k


class Ranks:
    """Ranks of one graph; `times` is how long an iteration of each takes."""

    def __init__(self, neighbours, weight, times, curvature, options, seed=0):
        self.draw = random.Random(seed)
        self.weight, self.times, self.options, self.neighbours = weight, times, options, neighbours
        count = range(len(neighbours))
        self.x = [self.draw.gauss(0, 1) for _ in count]
        self.target = [3 * self.draw.gauss(0, 1) for _ in count]
        self.h = [curvature * self.draw.random() for _ in count]
        self.v, self.k, self.g = [0.0 for _ in count], [0 for _ in count], [0.0 for _ in count]
        self.own = [[] for _ in count]  # what this iteration's events move a rank by
        self.ends = {(i, j): Edge(i < j) for i in count for j in neighbours[i]}

    def minimum(self):
        return sum(h * t for h, t in zip(self.h, self.target)) / sum(self.h)

    def send(self, i, j, now, delays, strength):
        """Rank i, whose turn it is, sends j a packet: with its value if it wants to."""
        end, follow = self.ends[i, j], self.options.follow
        end.turn, arrives = False, now + self.draw.uniform(*delays)
        end.packet = (arrives, None)
        if not end.wants:
            return None
        end.wants = False
        end.event(self.k[i])
        tau = max(2.0, end.silence)
        rate = strength / (RATE * max(tau, end.heard))
        move = self.weight * (end.theirs - self.x[i])
        end.packet = (arrives, (self.x[i], rate, tau))
        end.mine = self.x[i] + follow * move
        end.theirs -= follow * move
        return move, rate

    def begin(self, i, now, fires, delays, strength):
        self.k[i] += 1
        moves = []
        for j in self.neighbours[i]:
            end = self.ends[i, j]
            end.wants |= self.draw.random() < fires
            if end.turn:
                moves.append(self.send(i, j, now, delays, strength))
        self.own[i] = [move for move in moves if move is not None]
        if not self.options.late:
            self.move_by_own_events(i)
        self.g[i] = self.h[i] * (self.x[i] - self.target[i])

    def move_by_own_events(self, i):
        for move in self.own[i]:
            self.move(i, *move)

    def move(self, i, move, rate):
        self.x[i] += move
        self.v[i] += rate * move

    def hear(self, i, j, now):
        """Rank i takes what has come of j."""
        end, other, follow = self.ends[i, j], self.ends[j, i], self.options.follow
        if other.packet is None or other.packet[0] > now:
            return
        event = other.packet[1]
        other.packet, end.turn = None, True
        if event is None:
            return
        value, rate, end.heard = event
        move = self.weight * (value - end.mine)
        end.event(self.k[i])
        self.move(i, move, rate)
        end.theirs = value - follow * move
        end.mine += follow * move

    def end(self, i, now):
        if self.options.late:
            self.move_by_own_events(i)
        for j in self.neighbours[i]:
            self.hear(i, j, now)
        self.x[i] -= RATE * (self.g[i] - self.v[i])


def distance(ranks, fires, delays, strength, time):
    """The largest distance of a rank from the minimum of the sum; infinite if it diverges."""
    ready = [(ranks.draw.random() * t, i, True) for i, t in enumerate(ranks.times)]
    heapq.heapify(ready)
    while ready[0][0] < time:
        now, i, begins = heapq.heappop(ready)
        if begins:
            ranks.begin(i, now, fires[i % len(fires)], delays, strength)
            now += ranks.times[i] * ranks.draw.uniform(0.9, 1.1)
        else:
            ranks.end(i, now)
            if not abs(ranks.x[i]) < 1e6:
                return float("inf")
            now += 1e-6
        heapq.heappush(ready, (now, i, not begins))
    return max(abs(value - ranks.minimum()) for value in ranks.x)


def ring():
    return [[(i - 1) % 8, (i + 1) % 8] for i in range(8)], 1 / 3


def torus():
    return [[(r + 1) % 4 * 4 + q, (r - 1) % 4 * 4 + q, r * 4 + (q + 1) % 4, r * 4 + (q - 1) % 4]
            for r in range(4) for q in range(4)], 1 / 5


def patterns(neighbours):
    count = len(neighbours)
    slow = [1.0] * count
    times = [slow, [4.0] + slow[1:], [0.25] + slow[1:],
             [1.0 + (i // 4 + i) % 2 if count == 16 else 1.0 + i % 2 for i in range(count)]]
    fires = [[1], [0.3], [0.1], [1] * 4 + [0.05] * 4, [0.05] + [1] * 7, [1] + [0.05] * 7]
    return itertools.product(fires, ((0.01, 0.1), (0.3, 0.8), (1, 3), (5, 10)), times)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--strength", type=float, nargs="+", default=[0.0, 0.3, 0.5])
    parser.add_argument("--graph", choices=["ring", "torus"], default="ring")
    parser.add_argument("--curvature", type=float, default=5.0)
    parser.add_argument("--late", action="store_true")
    parser.add_argument("--copies-stay", dest="follow", action="store_false")
    options = parser.parse_args()
    neighbours, weight = {"ring": ring, "torus": torus}[options.graph]()
    time = max(400.0, min(4000.0, 2000.0 / options.curvature))
    for strength in options.strength:
        ends = [distance(Ranks(neighbours, weight, times, options.curvature, options), fires, delays, strength, time)
                for fires, delays, times in patterns(neighbours)]
        print(f"c = {strength}: {sum(d < 1e-3 for d in ends)} of {len(ends)} reach the minimum, "
              f"{sum(d > 100 for d in ends)} diverge, the median distance is {sorted(ends)[len(ends) // 2]:.2g}")


if __name__ == "__main__":
    main()
