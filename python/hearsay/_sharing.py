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


def share(loader, rank, ranks, seed):
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(loader, torch.utils.data.DataLoader):
        return _share_of_loader(torch.utils.data, loader, rank, ranks, seed)
    return EveryPth(loader, rank, ranks)


def _share_of_loader(data, loader, rank, ranks, seed):
    if isinstance(loader.dataset, data.IterableDataset) or loader.batch_size is None:
        return EveryPth(loader, rank, ranks)
    if not isinstance(loader.sampler, (data.SequentialSampler, data.RandomSampler)):
        raise TypeError(
            f"member.share cannot deal out a DataLoader with the sampler {type(loader.sampler).__name__}: it may "
            f"favour examples. Take the sampler out, or deal them out yourself by member.rank and member.ranks"
        )
    shuffle = isinstance(loader.sampler, data.RandomSampler)
    sampler = ShareSampler(len(loader.dataset), rank, ranks, seed, shuffle)
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
