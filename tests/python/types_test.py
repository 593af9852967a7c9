"""Models that are not float32: the block has their values as float32, and what the loop sees follows by one rule."""
import unittest

from support import JobCase, needs_torch

# Gradients are numbers that every type holds, whatever the parameters are: then the float32 values of a bfloat16 model
# are those of a float32 model, to the last bit.
LOOPS = """
    import json, math, sys, torch, hearsay
    def net(kind, seed=0):
        torch.manual_seed(seed)
        made = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Linear(5, 3))
        made.register_parameter("scale", torch.nn.Parameter(torch.tensor(1.5)))  # of no dimension
        made.register_parameter("turned", torch.nn.Parameter(torch.randn(4, 3).t()))
        for p in made.parameters(): p.data = p.data.bfloat16().float()  # every type has these
        return made.to(kind)
    def join(plan, made, name="run", **more):
        return hearsay.join({**plan, "report": {"directory": name, "overwrite": True}}, made, **more)
    def constant_gradients(made, rank, k):
        for i, p in enumerate(made.parameters()):
            (p * (((rank + 2 * i + k) % 4 - 1) / 64)).sum().backward()
    def values(made): return torch.cat([p.detach().double().reshape(-1) for p in made.parameters()])
    NEIGHBOURS = {"topology": {"graph": {"name": "ring"}}}
    PLANS = {
        "dpsgd": {"exchange": {"name": "dpsgd"}},
        "eventgrad": {"exchange": {"name": "eventgrad", "mixing": {"name": "arrival"}},
                      "trigger": {"name": "adaptive", "warmup_iterations": 2}},
        "drift": {"exchange": {"name": "eventgrad", "mixing": {"name": "arrival"}, "correction": {"name": "drift"}}},
        "allreduce": {"exchange": {"name": "allreduce"}},
        "lkgs": {"exchange": {"name": "lkgs"}},
        "diloco": {"exchange": {"name": "diloco", "local_steps": 3}},
    }
"""


@needs_torch
class TypesTest(JobCase):
    def test_the_master_copy_is_a_float32_model(self):
        """Steps that bfloat16 would round away one by one are all there in the end."""
        self.good_job(
            LOOPS
            + """
    for name, plan in PLANS.items():
        for momentum in (0.0, 0.5):
            hashes = []
            for kind in (torch.float32, torch.bfloat16, torch.float16):
                made = net(kind)
                before = values(made)
                optimizer = torch.optim.SGD(made.parameters(), lr=2**-10, momentum=momentum)
                member = join(plan, made)
                objects = list(made.parameters())
                for k in range(9):
                    with member.step(optimizer): constant_gradients(made, member.rank, k)
                assert all(p.dtype == kind and a is p for a, p in zip(objects, made.parameters()))
                member.end()
                hashes.append(member.replica_hash)
                master = torch.cat([torch.from_numpy(member._block.values)])
                rounded = master.to(kind).double()
                assert torch.equal(values(made), rounded), (name, kind)
                if kind != torch.float32: assert not torch.equal(master.double(), rounded), "some steps are too small"
                with member.averaged(): mean = values(made)
                assert torch.equal(values(made), rounded), "as before the block"
                member.leave()
            assert len(set(hashes)) == 1, (name, momentum, hashes)
            """
        )

    def test_double_precision_keeps_its_own(self):
        """Two ranks of dpsgd against the same iteration written out in float64."""
        self.good_job(
            LOOPS
            + """
    made = net(torch.float64, seed=1)
    optimizer = torch.optim.SGD(made.parameters(), lr=0.05)
    member = join({"exchange": {"name": "dpsgd"}}, made)
    x = [values(made).float().double() for _ in range(2)]
    assert torch.equal(values(made), x[0])
    for k in range(200):
        w = 0.5  # of two ranks on a ring
        x = [w * x[0] + w * x[1] - 0.05 * (x[r] - r - k % 2) for r in range(2)]
        with member.step(optimizer):
            for p in made.parameters(): (0.5 * (p - member.rank - k % 2).square()).sum().backward()
    spacing = torch.finfo(torch.float32).eps * x[member.rank].abs().max()
    error = (values(made) - x[member.rank]).abs().max()
    assert error < 4 * spacing, (error, spacing)
    with member.averaged(): pass
    after = values(made)
    assert error == (after - x[member.rank]).abs().max(), "as before the block"
            """
        )

    def test_alone_no_bit_of_double_precision_is_lost(self):
        self.good_job(
            LOOPS
            + """
    made, alone = net(torch.float64), net(torch.float64)
    steps = [torch.optim.AdamW(m.parameters(), lr=0.01) for m in (made, alone)]
    member = join({"exchange": {"name": "dpsgd"}}, made)
    for k in range(20):
        x = torch.randn(8, 6, dtype=torch.float64)
        def backward(m): (m(x).square().sum() + m.scale * m.turned.square().sum()).backward()
        steps[1].zero_grad(); backward(alone); steps[1].step()
        with member.step(steps[0]): backward(made)
        assert torch.equal(values(made), values(alone)), k
            """,
            ranks=1,
        )

    def test_a_model_ends_within_the_spacing_of_its_type(self):
        """The end of a float32 model, to within that: a strongly convex loss, so that roundings do not add up."""
        self.good_job(
            LOOPS
            + """
    def trained(kind, plan):
        made = net(kind)
        optimizer = torch.optim.SGD(made.parameters(), lr=0.1, momentum=0.5)
        member = join(plan, made)
        for k in range(60):
            with member.step(optimizer) as step:
                step.loss = sum((0.5 * (p - 0.3 * member.rank - 0.7).square()).sum() for p in made.parameters())
                step.loss.backward()
        member.end()
        found = values(made)
        member.leave()
        return found
    for name in ("dpsgd", "eventgrad", "allreduce"):
        exact = trained(torch.float32, PLANS[name])
        for kind in (torch.bfloat16, torch.float16, torch.float64):
            spacing = max(torch.finfo(kind).eps, torch.finfo(torch.float32).eps * 8)
            error = ((trained(kind, PLANS[name]) - exact).abs() / exact.abs().clamp(min=0.5)).max()
            assert error <= 4 * spacing, (name, kind, float(error), spacing)
            """
        )

    def test_model_and_block_are_equal_whatever_moves_them(self):
        """To rounding, after every step and every collective call; asynchronous ranks, servers, mixed types."""
        self.good_job(
            LOOPS
            + """
    def require_equal(member, made):
        for (name, p), x in zip(made.named_parameters(), member._block.value_views):
            assert torch.equal(p.detach(), x.to(p.dtype)) or torch.equal(p.detach().float(), x), (name, p, x)
    for plan in (PLANS["dpsgd"], PLANS["diloco"], PLANS["lkgs"],
                 {"exchange": {"name": "eventgrad", "schedule": "asynchronous", "mixing": {"name": "arrival"}}},
                 {"exchange": {"name": "gradient_dropping"},
                  "sparsify": {"selector": {"name": "topk", "density": 0.5}}},
                 {"exchange": {"name": "dpsgd", "schedule": "asynchronous"}}):
        made = net(torch.bfloat16)
        made[0].double(), made[1].float()
        made.more = torch.nn.Parameter(torch.ones(3).half())
        first = values(made)
        optimizer = torch.optim.SGD(made.parameters(), lr=0.1)
        member = join(plan, made)
        for k in range(40):
            if k == 20: made[0].bias.requires_grad_(False)
            with member.step(optimizer) as step:
                step.loss = sum((0.5 * (p.float() - 5).square()).sum() for p in made.parameters())
                step.loss.backward()
            require_equal(member, made)
        for call in (member.end, member.state_dict, member.summary, lambda: member.evaluate(lambda: {"loss": 1.0})):
            call()
            require_equal(member, made)
        assert [p.dtype for p in made.parameters()] == [p.dtype for p in member.parameters.values()]
        assert (values(made) > first).all(), plan
        with member.averaged(): require_equal(member, made)
        require_equal(member, made)
        member.leave()
            """
        )

    def test_what_the_loop_writes_into_the_model_counts(self):
        """A mask after each step, weights that are loaded, gradients clipped between exchange and step."""
        self.good_job(
            LOOPS
            + """
    for kind in (torch.bfloat16, torch.float64):
        made = net(kind)
        optimizer = torch.optim.SGD(made.parameters(), lr=0.01)
        member = join({"exchange": {"name": "allreduce"}}, made)
        mask = torch.arange(30).reshape(5, 6) % 3 > 0
        for k in range(5):
            with torch.no_grad(): made[0].weight.mul_(mask)
            with member.step(optimizer) as step:
                constant_gradients(made, member.rank, k)
                step.exchange()  # sums begin in the backward pass: what is written into gradients before may come late
                made[0].weight.grad.mul_(mask)
        assert (made[0].weight[~mask] == 0).all() and (made[0].weight[mask] != 0).all()
        assert (member._block.value_views[member._block.names.index("0.weight")][~mask] == 0).all()
        made.load_state_dict({name: torch.ones_like(p) for name, p in made.state_dict().items()})
        with member.averaged(): assert (values(made) == 1).all()
        with member.step(optimizer) as step:
            constant_gradients(made, member.rank, 0)
            step.exchange()
            same = [p.grad.clone() for p in made.parameters()]
            torch.nn.utils.clip_grad_norm_(made.parameters(), 1e-30)
        assert (values(made) - 1).abs().max() < 1e-6, "clipped to nothing"
        with member.step() as step:  # the loop's own update
            constant_gradients(made, member.rank, 0)
            step.exchange()
            with torch.no_grad():
                for p, g in zip(made.parameters(), same): p -= 8 * g
        assert (values(made) - 1).abs().max() > 0.01
        assert len(set(member.summary()["replica_hash"])) == 1
        member.leave()
            """
        )

    def test_a_state_has_the_master_copy(self):
        self.good_job(
            LOOPS
            + """
    def loop(member, made, optimizer, steps):
        for k in steps:
            with member.step(optimizer): constant_gradients(made, member.rank, k)
    made = net(torch.bfloat16)
    optimizer = torch.optim.SGD(made.parameters(), lr=2**-10)
    member = join(PLANS["eventgrad"], made)
    loop(member, made, optimizer, range(6))
    saved = member.state_dict(), {n: p.clone() for n, p in made.state_dict().items()}
    loop(member, made, optimizer, range(6, 12))
    right = member.replica_hash
    member.leave()
    again = net(torch.bfloat16)
    member = join(PLANS["eventgrad"], again, "again")
    again.load_state_dict(saved[1]), member.load_state_dict(saved[0])
    loop(member, again, torch.optim.SGD(again.parameters(), lr=2**-10), range(6, 12))
    assert member.replica_hash == right
            """
        )

    def test_ranks_of_other_types_are_refused(self):
        job = self.job(
            """
            import os, torch, hearsay
            net = torch.nn.Linear(2, 1)
            hearsay.join({}, net.double() if os.environ["OMPI_COMM_WORLD_RANK"] == "1" else net)
            """
        )
        self.assertEqual(job.code, 2, job)
        words = "of rank 1 have other names, shapes or types than those of rank 0, or its parameters other"
        self.assertIn(words, job.err)


if __name__ == "__main__":
    unittest.main()
