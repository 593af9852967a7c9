"""A rank's part of the data."""
from __future__ import annotations

import itertools
import sys
import weakref
import zlib

import numpy as np

from ._random import CommonRandomNumbers
from .errors import ConfigError

DRAWS_AT_ONCE = 64  # a rank: some samplers never end


class EveryPth:
    """Items rank, rank + P, … of an iterable; whole rounds only, so that all ranks get equally many. `begins` is called
    at the start of an epoch."""

    def __init__(self, items, rank, ranks, begins=lambda: None):
        self.items, self.rank, self.ranks, self.begins = items, rank, ranks, begins
        self.exhausted = False

    def __iter__(self):
        if self.exhausted:
            raise ConfigError(
                "member.share was given something that can be gone through once (a generator, a file), and it has come "
                "to its end; give it something that begins anew every epoch: a list, a DataLoader, an object with "
                "__iter__"
            )
        self.begins()
        items, mine = iter(self.items), None
        for index, item in enumerate(items):
            if index % self.ranks == self.rank:
                mine = item
            if index % self.ranks == self.ranks - 1:
                yield mine
        self.exhausted = items is self.items

    def __len__(self):
        return len(self.items) // self.ranks


class ShareSampler:
    """Indices of this rank's ⌈n/P⌉ examples of an epoch that draws n. All ranks draw the same, anew in every epoch.

    n   of the N examples that there are; more than N go through them again
    """

    def __init__(self, examples, rank, ranks, seed, shuffle, draws=None):
        self.examples, self.rank, self.ranks, self.seed, self.shuffle = examples, rank, ranks, seed, shuffle
        self.draws = examples if draws is None else draws
        self.epoch = 0
        self.begins = lambda: None  # called at the start of an epoch

    def __iter__(self):
        self.begins()
        order = np.arange(self.examples)
        if self.shuffle:
            random = np.random.default_rng([self.seed, self.epoch])
            rounds = [random.permutation(self.examples) for _ in range(-(-self.draws // max(1, self.examples)))]
            order = np.concatenate([order[:0], *rounds])[: self.draws]
        self.epoch += 1
        order = np.resize(order, len(self) * self.ranks)  # from the start again where P does not divide n
        return iter(order[self.rank :: self.ranks].tolist())

    def __len__(self):
        return -(-self.draws // self.ranks)


class DealtDraws:
    """Every P-th of what any sampler draws, indices or batches of them; from the first ones again where P does not
    divide them. On every rank the sampler draws the same whole epoch, by random numbers that all ranks have in common
    and that are others in every epoch. `mark`: of the first draws, the same where ranks have drawn the same.
    """

    def __init__(self, sampler, rank, ranks, seed):
        self.sampler, self.rank, self.ranks, self.seed = sampler, rank, ranks, seed
        self.epoch = 0
        self.mark = None
        self.begins = lambda: None  # called at the start of an epoch

    def __iter__(self):
        self.begins()
        numbers = CommonRandomNumbers(self.sampler, [self.seed, self.epoch])
        self.epoch += 1
        with numbers:
            draws = iter(self.sampler)
        first = []
        while True:
            with numbers:
                some = list(itertools.islice(draws, DRAWS_AT_ONCE * self.ranks))
            if self.mark is None:
                self.mark = zlib.crc32(repr(some).encode())
            first = first or some[: self.ranks]
            lacking = -len(some) % self.ranks
            yield from (some + (first * self.ranks)[:lacking])[self.rank :: self.ranks]
            if lacking or not some:
                return

    def __len__(self):
        return -(-len(self.sampler) // self.ranks)


class Deals:
    """What a member has dealt out, in the order in which its loop has asked, and how far each of them is."""

    def __init__(self, rank, ranks, seed):
        self.rank, self.ranks, self.seed = rank, ranks, seed
        self.samplers, self.begun = [], []
        self.shared = weakref.WeakKeyDictionary()  # loader → its share
        self.asked = False
        self.epochs_before = None  # of the others, where this rank has joined later
        self.epoch_length = None  # steps, of what was begun last: None where nobody knows

    def share(self, loader):
        self.asked = True
        if isinstance(loader, (set, frozenset)):
            raise ConfigError("member.share was given a set, whose order differs between ranks: sort it into a list")
        torch = sys.modules.get("torch")
        data = None if torch is None else torch.utils.data
        if data and isinstance(loader, data.DataLoader) and not isinstance(loader.dataset, data.IterableDataset):
            share = self._of_loader(data, loader)
        elif data and isinstance(loader, data.Sampler):
            share = self._dealt(data, loader)
            self._watch(share, share)
        else:
            share = EveryPth(loader, self.rank, self.ranks)
            self._require_rounds(loader)
            self._watch(share, share)
        if self.epoch_length is None:
            self._begins(share)
        return share

    def _require_rounds(self, items):
        """As far as their number is known: where it is not, or 0, nobody is given less than there is."""
        known = length_of(items) or self.ranks
        if known < self.ranks:
            raise ConfigError(
                f"member.share was given {known} item{'s' if known > 1 else ''} for {self.ranks} ranks, of which every "
                f"rank gets equally many, none: give it at least one a rank, or start fewer ranks"
            )

    def epochs(self):
        """That have begun, of every loader whose examples are drawn here."""
        return [sampler.epoch for sampler in self.samplers] + self.begun[len(self.samplers) :]

    def mark(self):
        """A mark of what samplers of the loop's own have drawn: the same on all ranks where they have drawn the same.
        None where none has, or where they begin with another epoch than the others."""
        if self.epochs_before is not None:
            return None
        marks = [sampler.mark for sampler in self.samplers if getattr(sampler, "mark", None) is not None]
        return marks[0] if marks else None

    def begin_at(self, epochs):
        """So many are over."""
        self.epochs_before = epochs

    def go_on(self, epochs):
        self.begun = [int(epoch) for epoch in epochs]
        for sampler, epoch in zip(self.samplers, self.begun):
            sampler.epoch = epoch

    def _watch(self, share, drawn):
        """Notes when an epoch of `share` begins, which goes through `drawn`."""
        drawn = getattr(drawn, "sampler", drawn)
        if hasattr(drawn, "begins"):
            drawn.begins = lambda: self._begins(share)

    def _begins(self, share):
        self.epoch_length = length_of(share) or self.epoch_length

    def _of_loader(self, data, loader):
        if loader in self.shared:
            return self.shared[loader]
        if type(loader).__iter__ is not data.DataLoader.__iter__:
            raise ConfigError(
                f"member.share cannot deal out a {type(loader).__name__}: it goes through its data in a way of its "
                f"own. Deal its examples out by member.rank and member.ranks, and use it without member.share"
            )
        batched = loader.batch_size is None and loader.batch_sampler is not None
        asked = loader.batch_sampler if batched else loader.sampler
        sampler = self._dealt(data, asked)
        share = loader
        if sampler is not asked:
            share = with_sampler(data, loader, sampler, batched)
            self._watch(share, sampler)
        self.shared[loader] = share
        return share

    def _dealt(self, data, sampler):
        """A sampler of this rank's part of what this one draws; itself if it draws that already."""
        if type(sampler) is data.BatchSampler:
            inner = self._dealt(data, sampler.sampler)
            same = inner is sampler.sampler
            return sampler if same else data.BatchSampler(inner, sampler.batch_size, sampler.drop_last)
        if _deals_out(sampler):
            return self._already_dealt(sampler)
        dealt = self._new_sampler(data, sampler)
        if len(self.samplers) < len(self.begun):
            dealt.epoch = self.begun[len(self.samplers)]
        elif self.epochs_before is not None:
            dealt.epoch = self.epochs_before
        self.samplers.append(dealt)
        return dealt

    def _new_sampler(self, data, sampler):
        """Where the draws are known to be those of the data, each once, they are made here."""
        shuffled = type(sampler) is data.RandomSampler and not sampler.replacement
        if not shuffled and type(sampler) is not data.SequentialSampler:
            return DealtDraws(sampler, self.rank, self.ranks, self.seed)
        draws = sampler.num_samples if shuffled else None
        return ShareSampler(_length_of(sampler.data_source), self.rank, self.ranks, self.seed, shuffled, draws)

    def _already_dealt(self, sampler):
        rank, ranks = sampler.rank, getattr(sampler, "num_replicas", None) or sampler.ranks
        if (rank, ranks) != (self.rank, self.ranks):
            raise ConfigError(
                f"the {type(sampler).__name__} draws the part of rank {rank} of {ranks}, and this is rank {self.rank} "
                f"of {self.ranks}: take it out, since member.share deals out by itself, or make it with "
                f"num_replicas={self.ranks}, rank={self.rank}"
            )
        return sampler


def _deals_out(sampler):
    """Whether it draws the part of one rank: torch's DistributedSampler, and what is made in its likeness."""
    own = isinstance(sampler, (ShareSampler, DealtDraws))
    return own or (hasattr(sampler, "num_replicas") and hasattr(sampler, "rank"))


def _length_of(source):
    try:
        return len(source)
    except TypeError:
        raise ConfigError(
            f"member.share cannot deal out a {type(source).__name__} without a length: give it __len__, or make it a "
            f"torch IterableDataset, of whose batches every rank takes every P-th"
        ) from None


def with_sampler(data, loader, sampler, batched):
    """A loader as this one is, but for its sampler, or its sampler of batches."""
    if batched:
        draws = {"batch_sampler": sampler}
    else:
        draws = {"sampler": sampler, "batch_size": loader.batch_size, "drop_last": loader.drop_last}
    if loader.num_workers > 0:
        draws["prefetch_factor"] = loader.prefetch_factor
    for newer in ("pin_memory_device", "in_order"):  # torch 1.12, 2.6
        if hasattr(loader, newer):
            draws[newer] = getattr(loader, newer)
    return data.DataLoader(
        loader.dataset,
        num_workers=loader.num_workers,
        collate_fn=loader.collate_fn,
        pin_memory=loader.pin_memory,
        timeout=loader.timeout,
        worker_init_fn=loader.worker_init_fn,
        multiprocessing_context=loader.multiprocessing_context,
        generator=loader.generator,
        persistent_workers=loader.persistent_workers,
        **draws,
    )


def length_of(shared):
    """Steps of an epoch, or None where nobody knows."""
    try:
        return len(shared)
    except TypeError:
        return None
