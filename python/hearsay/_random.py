"""Random numbers that all ranks have in common, for a while: a sampler then draws the same on each of them."""
from __future__ import annotations

import collections
import random
import sys

import numpy as np

MOST_HELD = 1000  # samplers in a list: longer ones are of indices


class _Source:
    """Where a program draws random numbers: its state can be read, replaced and seeded."""

    def __init__(self, get, put, seed):
        self.get, self.put, self.seed = get, put, seed


def _sources_of(thing):
    """Those of the process, and those that `thing` and the samplers in it hold: generators of torch, numpy and Python's
    random."""
    torch = sys.modules.get("torch")
    found = [
        _Source(random.getstate, random.setstate, random.seed),
        _Source(np.random.get_state, np.random.set_state, lambda n: np.random.seed(n % 2**32)),
    ]
    held = _held_by(thing)
    if torch is not None:
        held.append(torch.default_generator)
    for value in held:
        if torch is not None and isinstance(value, torch.Generator):
            found.append(_Source(value.get_state, value.set_state, value.manual_seed))
        elif isinstance(value, np.random.Generator):
            found.append(_of_numpy(value.bit_generator))
        elif isinstance(value, np.random.RandomState):
            found.append(_Source(value.get_state, value.set_state, lambda n, value=value: value.seed(n % 2**32)))
        elif isinstance(value, random.Random):
            found.append(_Source(value.getstate, value.setstate, value.seed))
    return found


def _held_by(thing):
    """What `thing` holds, and what is held by what it goes through, such as the sampler in a sampler of batches. In the
    same order on every rank."""
    held, seen, left = [], set(), collections.deque([thing])
    while left and len(held) <= 100 * MOST_HELD:  # a data set may hold anything
        holder = left.popleft()
        if id(holder) in seen:
            continue
        seen.add(id(holder))
        for value in _parts_of(holder):
            held.append(value)
            if hasattr(type(value), "__iter__"):
                left.append(value)
    return held


def _parts_of(holder):
    if isinstance(holder, (list, tuple, dict)):
        parts = holder.values() if isinstance(holder, dict) else holder
        return parts if len(parts) <= MOST_HELD else ()
    return getattr(holder, "__dict__", {}).values()


def _of_numpy(bits):
    def put(state):
        bits.state = state

    return _Source(lambda: bits.state, put, lambda n: put(type(bits)(n).state))


class CommonRandomNumbers:
    """A context in which random numbers are those of `seeds`, on every rank the same; entered again, it goes on where
    it was left. Outside they go on as if nothing had been drawn.

    thing  what draws: generators that it holds count, too
    seeds  numbers, the same on every rank
    """

    def __init__(self, thing, seeds):
        self.sources = _sources_of(thing)
        self.seed = int(np.random.SeedSequence(seeds).generate_state(1, np.uint64)[0] >> np.uint64(1))
        self.states = None

    def __enter__(self):
        self.outside = [source.get() for source in self.sources]
        for number, source in enumerate(self.sources):
            if self.states is None:
                source.seed(self.seed + number)
            else:
                source.put(self.states[number])

    def __exit__(self, *_):
        self.states = [source.get() for source in self.sources]
        for source, state in zip(self.sources, self.outside):
            source.put(state)
