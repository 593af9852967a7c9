"""A rank's part of the data: disjoint and complete at every door, or refused with what to do."""
import unittest

from support import JobCase, needs_torch


class ShareTest(JobCase):
    @needs_torch
    def test_shares_are_disjoint_and_complete_or_refused(self):
        """Two ranks whose random numbers differ; in one process."""
        job = self.job(
            """
            import re, torch, hearsay
            from torch.utils import data as d
            from hearsay._sharing import Deals
            n, numbers = 10, d.TensorDataset(torch.arange(10.0))
            class Stream(d.IterableDataset):
                def __iter__(self): return iter(torch.arange(10.0))
            class One(Stream):
                def __len__(self): return 1
            class Mine(d.RandomSampler): pass
            class NoLength(d.Dataset):
                def __getitem__(self, i): return i
            class Own(d.DataLoader):
                def __iter__(self): return iter([1])
            class Unhashed:
                __hash__ = None
                def __iter__(self): return iter(range(10))
            shuffled = lambda: d.RandomSampler(numbers)
            load = lambda **how: (lambda rank: d.DataLoader(numbers, **{k: v(rank) for k, v in how.items()}))
            is_ = lambda thing: (lambda rank: thing)
            batches = lambda sampler, drop=False: (lambda rank: d.BatchSampler(sampler(), 2, drop))
            twice = lambda: d.RandomSampler(numbers, replacement=True)
            weighted = lambda: d.WeightedRandomSampler([1.0] * n, n, replacement=False)
            class Likeness(d.Sampler):  # of other libraries
                num_replicas = 2
                def __init__(self, rank): self.rank = rank
                def __iter__(self): return iter(range(self.rank, n, 2))
                def __len__(self): return n // 2
            def values(x):
                if torch.is_tensor(x): return [float(v) for v in x.reshape(-1)]
                if isinstance(x, (list, tuple)): return [v for part in x for v in values(part)]
                return [float(x)]
            for name, make, steps, refusal in (
                ("batch_size", load(batch_size=is_(2), shuffle=is_(True)), 3, None),
                ("batch_sampler", load(batch_sampler=batches(shuffled)), 3, None),
                ("no batches", load(batch_size=is_(None), shuffle=is_(True)), 5, None),
                ("batches as a sampler", load(batch_size=is_(None), sampler=batches(shuffled)), 3, None),
                ("distributed", load(sampler=lambda r: d.DistributedSampler(numbers, 2, r)), 5, None),
                ("its batches",
                 lambda r: load(batch_sampler=batches(lambda: d.DistributedSampler(numbers, 2, r)))(r), 3, None),
                ("a share", lambda r: Deals(r, 2, 7).share(load(shuffle=is_(True))(r)), 5, None),
                ("a stream", lambda r: d.DataLoader(Stream()), None, None),
                ("a bare stream", lambda r: Stream(), None, None),
                ("a bare sampler", lambda r: shuffled(), 5, None),
                ("bare batches", batches(shuffled), 3, None),
                ("a data set", is_(numbers), 5, None),
                ("a list", is_(list(range(10))), 5, None),
                ("a tensor", is_(torch.arange(10.0)), 5, None),
                ("a generator", lambda r: (i for i in range(10)), None, None),
                ("an object", lambda r: Unhashed(), None, None),
                ("weighted", load(sampler=lambda r: weighted()), 5, None),
                ("weighted in batches", load(batch_sampler=batches(weighted)), 3, None),
                ("weighted, no batches", load(batch_size=is_(None), sampler=lambda r: weighted()), 5, None),
                ("weighted, bare", lambda r: weighted(), 5, None),
                ("subset", load(sampler=lambda r: d.SubsetRandomSampler(range(n))), 5, None),
                ("one's own", load(sampler=lambda r: Mine(numbers)), 5, None),
                ("a list as a sampler", load(sampler=is_(list(range(n)))), 5, None),
                ("batches of one's own", load(batch_sampler=is_([[2 * i, 2 * i + 1] for i in range(4)] + [[8], [9]])),
                 3, None),
                ("another library's", load(sampler=lambda r: Likeness(r)), 5, None),
                ("another library's of another rank", load(sampler=lambda r: Likeness(1 - r)), 0, "Likeness draws"),
                ("another rank's", load(sampler=lambda r: d.DistributedSampler(numbers, 3, r)), 0, "=2, rank="),
                ("no length", lambda r: d.DataLoader(NoLength()), 0, "NoLength without a length.*IterableDataset"),
                ("a loader of one's own", lambda r: Own(numbers), 0, "Own.*way of its own"),
                ("a set", is_(set(range(10))), 0, "sort it"),
                ("one item", is_([0]), 0, "was given 1 item for 2 ranks"),
                ("one batch of a stream", lambda r: d.DataLoader(One()), 0, "was given 1 item for 2 ranks"),
            ):
                epochs = {0: [], 1: []}
                for rank in range(2):
                    torch.manual_seed(100 + rank)
                    deals = Deals(rank, 2, 7)
                    try:
                        loader = make(rank)
                        share = deals.share(loader)
                    except hearsay.errors.ConfigError as error:
                        assert refusal and re.search(refusal, str(error)), (name, str(error))
                        continue
                    assert refusal is None, (name, "was not refused")
                    try: assert len(share) == steps, (name, len(share))
                    except TypeError: assert steps is None, name
                    for epoch in range(1 if name == "a generator" else 2):
                        taken = [values(batch) for batch in share]
                        assert steps is None or len(taken) == steps, (name, taken)
                        assert deals.epoch_length == steps, (name, deals.epoch_length)
                        epochs[epoch] += [v for batch in taken for v in batch]
                    if isinstance(loader, d.DataLoader) and steps:
                        assert deals.share(loader) is share, "asked again, it goes on"
                    if name == "a generator":
                        try: list(share)
                        except hearsay.errors.ConfigError as error: assert "gone through once" in str(error)
                        else: assert False, name
                for taken in epochs.values():
                    assert refusal or not taken or sorted(taken) == list(range(10)), (name, taken)
            draws = lambda m: [list(Deals(r, 2, 7).share(d.RandomSampler(numbers, num_samples=m))) for r in range(2)]
            assert [len(part) for part in draws(4)] == [2, 2] and len({*draws(4)[0], *draws(4)[1]}) == 4
            assert sorted(draws(20)[0] + draws(20)[1]) == sorted([*range(10), *range(10)])
            """,
            ranks=None,
        )
        self.assertEqual(job.code, 0, job)

    @needs_torch
    def test_ranks_share_what_any_sampler_draws(self):
        """Together they have its whole draw, the same that one rank would have; equally many each; anew in every epoch;
        and random numbers of the loop go on as if nothing had been drawn."""
        self.good_job(
            """
            import random, collections, numpy as np, torch, hearsay
            from torch.utils import data as d
            from hearsay._sharing import Deals
            n, numbers = 10, d.TensorDataset(torch.arange(10.0))
            class Own(d.Sampler):
                def __init__(self, draw): self.draw = draw
                def __iter__(self): return (self.draw() for _ in range(1000))
                def __len__(self): return 1000
            class Held(Own):
                def __init__(self, held, draw): self.held, self.draw = held, lambda: draw(held)
            class Endless(d.Sampler):
                def __init__(self): pass
                def __iter__(self):
                    while True: yield int(torch.randint(n, ()))
            class Pairs(d.Sampler):  # of what the samplers in it draw
                def __init__(self, *inner): self.inner = inner
                def __iter__(self): return zip(*self.inner)
                def __len__(self): return min(map(len, self.inner))
            class Bare:  # is no Sampler of torch's, and goes through one
                def __init__(self, inner): self.settings = {"inner": inner}
                def __iter__(self): return iter(self.settings["inner"])
                def __len__(self): return 300
            most = 1100  # draws that are looked at
            seeded = lambda rank: torch.Generator().manual_seed(rank)
            for make in (
                lambda r: d.RandomSampler(numbers, replacement=True, num_samples=1000),
                lambda r: d.RandomSampler(numbers, replacement=True, num_samples=999, generator=seeded(r)),
                lambda r: d.WeightedRandomSampler([1.0, 3.0], 1000),
                lambda r: d.WeightedRandomSampler([1.0, 3.0], 1001, generator=seeded(r)),
                lambda r: d.SubsetRandomSampler(range(300), generator=seeded(r)),
                lambda r: Own(lambda: int(torch.randint(n, ()))),
                lambda r: Own(lambda: random.randrange(n)),
                lambda r: Own(lambda: np.random.randint(n)),
                lambda r: Held(seeded(r), lambda g: int(torch.randint(n, (), generator=g))),
                lambda r: Held(np.random.default_rng(r), lambda g: int(g.integers(n))),
                lambda r: Held(np.random.RandomState(r), lambda g: int(g.randint(n))),
                lambda r: Held(random.Random(r), lambda g: g.randrange(n)),
                lambda r: Endless(),
                lambda r: Pairs(d.SubsetRandomSampler(range(300), generator=seeded(r)),
                                Held(np.random.default_rng(r), lambda g: int(g.integers(n)))),
                lambda r: Pairs(Bare(d.SubsetRandomSampler(range(300), generator=seeded(r)))),
            ):
                def draws(ranks):
                    parts, marks = [], []
                    for rank in range(ranks):
                        torch.manual_seed(rank); np.random.seed(rank); random.seed(rank)
                        sampler, deals = make(rank), Deals(rank, ranks, 7)
                        loop = lambda: (torch.rand(()).item(), np.random.rand(), random.random())
                        states = torch.get_rng_state(), np.random.get_state(), random.getstate()
                        share, epochs, others = deals.share(sampler), [[], []], []
                        for epoch in epochs:
                            for k, index in zip(range(most), share): epoch.append(index); others.append(loop())
                        torch.set_rng_state(states[0]); np.random.set_state(states[1]); random.setstate(states[2])
                        assert others == [loop() for _ in others], "the loop's own random numbers go on"
                        parts.append(epochs); marks.append(deals.mark())
                    assert len(set(marks)) == 1
                    return parts
                one, three = draws(1)[0], draws(3)
                assert one[0] != one[1], "another epoch, other draws"
                for epoch in range(2):
                    parts = [part[epoch] for part in three]
                    assert len({len(part) for part in parts}) == 1
                    together = [index for round in zip(*parts) for index in round]
                    whole = one[epoch]
                    if len(whole) < most:  # it has an end
                        assert len(together) - len(whole) in (0, 1, 2)
                        whole = whole + whole[:len(together) - len(whole)]
                    assert together[:len(whole)] == whole, (make(0), together[:20], whole[:20])
                    assert parts[0] != parts[1]
            counts = collections.Counter(v for r in range(2)
                                         for v in Deals(r, 2, 7).share(d.WeightedRandomSampler([1.0, 3.0], 4000)))
            assert abs(counts[1] - 3000) < 5 * (4000 * 3 / 16) ** 0.5, counts
            """,
            ranks=None,
        )

    @needs_torch
    def test_a_state_goes_on_with_the_next_draws(self):
        self.good_job(
            """
            from torch.utils import data as d
            from hearsay._sharing import Deals
            draw = lambda deals: deals.share(d.WeightedRandomSampler([1.0, 3.0], 100))
            whole = Deals(0, 2, 7)
            share = draw(whole)
            first, state, second = list(share), whole.epochs(), list(share)
            again = Deals(0, 2, 7)
            again.go_on(state)
            assert list(draw(again)) == second != first
            """,
            ranks=None,
        )

    @needs_torch
    def test_a_sampler_that_draws_otherwise_on_some_ranks_is_noticed(self):
        job = self.good_job(
            """
            import os, torch, hearsay
            from torch.utils import data as d
            class Own(d.Sampler):
                def __init__(self): pass
                def __iter__(self):
                    rank = int(os.environ["OMPI_COMM_WORLD_RANK"])
                    return iter([(7 * i + rank) % 10 for i in range(10)])
                def __len__(self): return 10
            net = torch.nn.Linear(1, 1)
            member = hearsay.join({"exchange": {"name": "dpsgd"}, "report": {"directory": "run"}}, net)
            loader = d.DataLoader(d.TensorDataset(torch.arange(10.0)), batch_size=1, sampler=Own())
            for x, in member.share(loader):
                with member.step(torch.optim.SGD(net.parameters(), lr=1e-3)): net(x[:, None]).sum().backward()
            member.summary()
            """
        )
        self.assertEqual(job.err.count("hearsay: warning: a sampler has drawn other examples on some ranks"), 1, job)

    def test_densities_of_epochs_last_an_epoch_of_what_is_shared(self):
        job = self.good_job(
            """
            import json, numpy as np, hearsay
            said = {}
            for name, more in (("shared", {}), ("said", {"iterations_per_epoch": 2})):
                member = hearsay.join(
                    {"exchange": {"name": "topk"}, "report": {"directory": name},
                     "sparsify": {"selector": {"name": "topk", "density": 0.1}, "density_schedule": [1.0, 0.5]}},
                    {"x": np.zeros(100, np.float32)}, **more)
                counts, others = [], member.share([1, 2, 3, 4])
                for _ in range(3):
                    for batch in member.share(list(range(6))):
                        with member.step(learning_rate=0.1) as step:
                            member.gradients["x"][...] = np.arange(100, 0, -1)  # the same on all ranks: a common choice
                            step.exchange()
                            counts.append(int(np.count_nonzero(member.gradients["x"])))
                    for _ in others: pass
                said[name] = counts, member.summary()["epochs"]
                member.leave()
            if member.rank == 0: print(json.dumps(said))
            """
        )
        said = job.said[0]
        self.assertEqual(said["shared"], [[100] * 3 + [50] * 3 + [10] * 3, 3.0])
        self.assertEqual(said["said"], [[100] * 2 + [50] * 2 + [10] * 5, 4.5])


if __name__ == "__main__":
    unittest.main()
