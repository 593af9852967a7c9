"""A rank's part of the data."""
from __future__ import annotations

import sys

import numpy as np


class EveryPth:
    """Items rank, rank + P, … of an iterable; whole rounds only, so that all ranks get equally many."""

    def __init__(self, items, rank, ranks):
        self.items, self.rank, self.ranks = items, rank, ranks

    def __iter__(self):
        mine = None
        for index, item in enumerate(self.items):
            if index % self.ranks == self.rank:
                mine = item
            if index % self.ranks == self.ranks - 1:
                yield mine

    def __len__(self):
        return len(self.items) // self.ranks


class ShareSampler:
    """Indices of this rank's ⌈N/P⌉ examples of an epoch, the same draw on every rank; a new one every time."""

    def __init__(self, examples, rank, ranks, seed, shuffle):
        self.examples, self.rank, self.ranks, self.seed, self.shuffle = examples, rank, ranks, seed, shuffle
        self.epoch = 0

    def __iter__(self):
        order = np.arange(self.examples)
        if self.shuffle:
            order = np.random.default_rng([self.seed, self.epoch]).permutation(self.examples)
        self.epoch += 1
        order = np.resize(order, len(self) * self.ranks)  # from the start again where P does not divide N
        return iter(order[self.rank :: self.ranks].tolist())

    def __len__(self):
        return -(-self.examples // self.ranks)


class Deals:
    """What a member has dealt out, in the order in which its loop has asked, and how far each of them is."""

    def __init__(self, rank, ranks, seed):
        self.rank, self.ranks, self.seed = rank, ranks, seed
        self.samplers, self.begun = [], []

    def share(self, loader):
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(loader, torch.utils.data.DataLoader):
            data = torch.utils.data
            if not isinstance(loader.dataset, data.IterableDataset) and loader.batch_size is not None:
                return self._of_loader(data, loader)
        return EveryPth(loader, self.rank, self.ranks)

    def epochs(self):
        """That have begun, of every loader whose examples are drawn here."""
        return [sampler.epoch for sampler in self.samplers] + self.begun[len(self.samplers) :]

    def go_on(self, epochs):
        self.begun = [int(epoch) for epoch in epochs]
        for sampler, epoch in zip(self.samplers, self.begun):
            sampler.epoch = epoch

    def _of_loader(self, data, loader):
        sampler = sampler_for(data, loader, self.rank, self.ranks, self.seed)
        if len(self.samplers) < len(self.begun):
            sampler.epoch = self.begun[len(self.samplers)]
        self.samplers.append(sampler)
        return with_sampler(data, loader, sampler)


def sampler_for(data, loader, rank, ranks, seed):
    if not isinstance(loader.sampler, (data.SequentialSampler, data.RandomSampler)):
        raise TypeError(
            f"member.share cannot deal out a DataLoader with the sampler {type(loader.sampler).__name__}: it may "
            f"favour examples. Take the sampler out, or deal them out yourself by member.rank and member.ranks"
        )
    shuffle = isinstance(loader.sampler, data.RandomSampler)
    return ShareSampler(len(loader.dataset), rank, ranks, seed, shuffle)


def with_sampler(data, loader, sampler):
    more = {"prefetch_factor": loader.prefetch_factor} if loader.num_workers > 0 else {}
    return data.DataLoader(
        loader.dataset,
        batch_size=loader.batch_size,
        sampler=sampler,
        num_workers=loader.num_workers,
        collate_fn=loader.collate_fn,
        pin_memory=loader.pin_memory,
        drop_last=loader.drop_last,
        timeout=loader.timeout,
        worker_init_fn=loader.worker_init_fn,
        multiprocessing_context=loader.multiprocessing_context,
        generator=loader.generator,
        persistent_workers=loader.persistent_workers,
        **more,
    )


def length_of(shared):
    """Steps of an epoch, or None where nobody knows."""
    try:
        return len(shared)
    except TypeError:
        return None
