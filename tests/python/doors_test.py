"""hearsay.wrap: a loop with optimizer.step() in it ends with the bits of the loop around member.step."""
import unittest

from support import JobCase, have, needs_torch

needs_compile = unittest.skipUnless(have("torch._dynamo"), "this torch has no torch.compile (2.0)")
needs_scaler = unittest.skipUnless(
    have("torch.amp.grad_scaler"), "this torch has no GradScaler for the processor (2.3)"
)

# Every loop is there twice: as one with steps of its own, and as one of hearsay.wrap.
LOOPS = """
    import copy, io, json, math, sys, warnings, torch, hearsay
    from torch.utils.data import DataLoader, TensorDataset
    warnings.simplefilter("error")
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(48, 6), torch.randn(48, 2))
    PLANS = {
        "dpsgd": {"exchange": {"name": "dpsgd"}},
        "eventgrad": {"exchange": {"name": "eventgrad", "mixing": {"name": "arrival"}},
                      "trigger": {"name": "adaptive", "warmup_iterations": 2}},
        "drift": {"exchange": {"name": "dpsgd", "correction": {"name": "drift"}}},
        "allreduce": {"exchange": {"name": "allreduce", "overlap": False}},
        "lkgs": {"exchange": {"name": "lkgs", "overlap": False},
                 "sparsify": {"selector": {"name": "topk", "density": 0.3}}},
        "gradient_dropping": {"exchange": {"name": "gradient_dropping"}},
        "diloco": {"exchange": {"name": "diloco", "local_steps": 3}},
        "gossip_outer": {"exchange": {"name": "gossip_outer", "local_steps": 2}},
    }
    def made(kind=torch.float32):
        torch.manual_seed(1)
        return torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2)).to(kind)
    def loss_of(net, batch):
        x, y = (t.to(net[0].weight.dtype) for t in batch)
        return (net(x) - y).square().mean()
    def plan_of(name, **report): return {**PLANS[name], "report": {"directory": "run", "overwrite": True, **report}}
    def batches(member, passes=1):
        "Of one epoch: so many at a time."
        mine = list(member.share(DataLoader(data, batch_size=2, shuffle=True)))
        return [mine[k : k + passes] for k in range(0, len(mine), passes)]
    def sgd(net, rate=0.05): return torch.optim.SGD(net.parameters(), lr=rate, momentum=0.9, weight_decay=0.01)
    def adam(net):
        groups = [{"params": [p for n, p in net.named_parameters() if n.endswith("bias")], "lr": 0.001},
                  {"params": [p for n, p in net.named_parameters() if n.endswith("weight")]}]
        return torch.optim.AdamW(groups, lr=0.01)
    def halves(optimizer): return torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.5)
    def ended(member):
        "What the loop has made of the model, and what that cost."
        member.summary()  # all that was sent is counted
        said = [member.replica_hash, member.steps, member.counts()["messages"]]
        member.leave()
        return said
    def with_steps(plan, net, optimizer, schedule=None, passes=1, clip=None):
        member = hearsay.join(plan, net, optimizer=optimizer)
        for some in batches(member, passes):
            with member.step(optimizer, backward_passes=passes):
                for batch in some: loss_of(net, batch).backward()
                if clip: torch.nn.utils.clip_grad_norm_(net.parameters(), clip)
            if schedule: schedule.step()
        return ended(member)
    def wrapped(plan, net, optimizer, schedule=None, passes=1, clip=None, late=None, none=False, **more):
        member = hearsay.wrap(net, optimizer, plan, **more)
        schedule = schedule or (late(optimizer) if late else None)
        for some in batches(member, passes):
            optimizer.zero_grad(set_to_none=none)
            for batch in some: loss_of(net, batch).backward()
            if clip: torch.nn.utils.clip_grad_norm_(net.parameters(), clip)
            assert optimizer.step() is None
            if schedule: schedule.step()
        return ended(member)
"""
SAME = """
    def same(what, one, other):
        assert one == other, (what, one, other)
"""


@needs_torch
class WrapTest(JobCase):
    def test_the_same_bits_as_with_steps(self):
        """Every kind of exchange, gradients that are set to 0 or to None, and types that are staged."""
        for ranks in (2, 3):
            with self.subTest(ranks=ranks):
                self.good_job(
                    LOOPS + SAME + """
    for name in PLANS:
        plan = plan_of(name)
        net, other = made(), made()
        same(name, with_steps(plan, net, sgd(net)), wrapped(plan, other, sgd(other)))
    for kind in (torch.bfloat16, torch.float64):
        for name in ("eventgrad", "allreduce"):
            plan = plan_of(name)
            net, other = made(kind), made(kind)
            same((name, kind), with_steps(plan, net, sgd(net)), wrapped(plan, other, sgd(other), none=True))
                    """,
                    ranks=ranks,
                )

    def test_what_loops_do_besides(self):
        """Accumulation, clipping, schedules made before or after, groups, gradients of None, layer-wise sending."""
        self.good_job(
            LOOPS + SAME + """
    for name in ("dpsgd", "eventgrad", "allreduce", "diloco"):
        plan = plan_of(name)
        for none, what in ((False, {"clip": 0.1}), (True, {"passes": 3, "clip": 0.1})):
            net, other = made(), made()
            expected = with_steps(plan, net, adam(net), **what)
            same((name, what), expected, wrapped(plan, other, adam(other), none=none, **what))
        net, early, late = made(), made(), made()
        optimizer = sgd(net)
        expected = with_steps(plan, net, optimizer, halves(optimizer))
        optimizer = sgd(early)
        same((name, "schedule"), expected, wrapped(plan, early, optimizer, halves(optimizer)))
        assert optimizer.param_groups[0]["lr"] < 0.05
        optimizer = sgd(late)
        same((name, "late schedule"), expected, wrapped(plan, late, optimizer, late=halves))
    for name in ("allreduce", "lkgs"):
        plan = plan_of(name)
        plan["exchange"] = {**plan["exchange"], "overlap": True}
        for passes in (1, 2):
            net, other, silent = made(), made(), made()
            expected = with_steps(plan, net, sgd(net), passes=passes)
            same(name, expected, wrapped(plan, other, sgd(other), passes=passes, backward_passes=passes))
            same(name, expected, wrapped(plan, silent, sgd(silent), passes=passes))
            """
        )

    def test_the_model_and_the_optimizer_stay_what_they_are(self):
        """Keys, copies, pickles, closures, workers, a loss for the run folder; and after the end a plain optimizer."""
        for schedule in ("lockstep", "asynchronous"):
            self.good_job(
                LOOPS + f"    SCHEDULE = '{schedule}'\n" + """
    net = made()
    keys, optimizer = list(net.state_dict()), sgd(net)
    plan = plan_of("dpsgd", every_iterations=1)
    plan["exchange"] = {"name": "dpsgd", "schedule": SCHEDULE}
    member = hearsay.wrap(net, optimizer, plan, name="mine")
    assert list(net.state_dict()) == keys and member.lockstep == (SCHEDULE == "lockstep")
    def closure():
        optimizer.zero_grad()
        loss = loss_of(net, batch)
        loss.backward()
        return loss
    for k, batch in enumerate(member.share(DataLoader(data, batch_size=2, num_workers=2))):
        assert member.steps == k and member._open_step is None
        net.eval(); loss_of(net, batch); net.train()
        with torch.no_grad(): loss_of(net, batch)
        double = copy.deepcopy(net)
        loss_of(double, batch).backward()
        torch.save(net, io.BytesIO()) if k > 4 else None  # what warns of equal data looks at the first inputs
        assert member._open_step is None, "none of these is a step"
        if k % 2: assert optimizer.step(closure).item() > 0
        else:
            loss = closure(); member.loss = loss
            assert member._open_step is not None
            optimizer.step()
        if k == 3: assert set(member.evaluate(lambda: {"loss": 1.0})) > {"loss_mean_model"}
    summary = member.summary()
    assert (summary["iterations"], summary["model"]) == (k + 1, "mine"), summary
    if member.rank == 0:
        with open("run/metrics.rank0000.jsonl") as file: records = [json.loads(line) for line in file]
        losses = [r["loss"] for r in records if r.get("loss") is not None]
        assert len(losses) >= k, records[:3]
    member.leave()
    before = net[0].weight.detach().clone()
    closure(); optimizer.step(); optimizer.step(closure)
    assert not torch.equal(before, net[0].weight)
    optimizer.state.clear()
    again = hearsay.wrap(net, optimizer, plan_of("allreduce"))
    with again.step(optimizer): loss_of(net, batch).backward()
    closure(); optimizer.step()
    assert again.steps == 2 and len(set(again.summary()["replica_hash"])) == 1
                """
            )

    def test_a_collective_call_between_a_pass_and_its_step(self):
        """Makes a step without a gradient of what has begun. The gradient stays for the next one."""
        self.good_job(
            LOOPS + SAME + """
    for name in ("dpsgd", "allreduce", "diloco"):
        for kind in (torch.float32, torch.bfloat16):
            plan, net, other = plan_of(name), made(kind), made(kind)
            optimizer = sgd(net)
            member = hearsay.join(plan, net)
            some = batches(member)
            for batch, in some:
                gradients = torch.autograd.grad(loss_of(net, batch), list(net.parameters()))
                with member.step(): pass
                with member.step(optimizer):
                    for p, gradient in zip(net.parameters(), gradients): p.grad = gradient
            expected = ended(member)
            optimizer = sgd(other)
            member = hearsay.wrap(other, optimizer, plan)
            for batch, in some:
                optimizer.zero_grad(set_to_none=True)
                loss_of(other, batch).backward()
                member.evaluate(lambda: {"loss": 0.0})
                optimizer.step()
            optimizer.zero_grad()
            said = ended(member)
            same((name, kind), expected[:2], said[:2])
    member = hearsay.wrap(other, optimizer, plan)
    loss_of(other, batch).backward()  # the program ends here, and well
            """
        )

    def test_gradients_that_a_scaler_finds_infinite(self):
        """As what it says to any optimizer that deals with it (torch 2): here on one rank, in the third step."""
        self.good_job(
            LOOPS + SAME + """
    for name in ("dpsgd", "eventgrad", "allreduce", "diloco"):
        plan, net, other = plan_of(name), made(), made()
        optimizer = sgd(net)
        member = hearsay.join(plan, net)
        some = batches(member)
        for k, (batch,) in enumerate(some):
            overflows = k == 2 and member.rank == 1
            with member.step(None if overflows and name != "allreduce" else optimizer) as step:
                if not overflows: loss_of(net, batch).backward()
                elif name != "allreduce": step.exchange()
        expected = ended(member)
        optimizer = sgd(other)
        member = hearsay.wrap(other, optimizer, plan)
        for k, (batch,) in enumerate(some):
            optimizer.zero_grad()
            (1024 * loss_of(other, batch)).backward()
            overflows = k == 2 and member.rank == 1
            if overflows: other[0].weight.grad[0, 0] = math.inf
            optimizer.grad_scale, optimizer.found_inf = torch.tensor(1024.0), torch.tensor(float(overflows))
            optimizer.step()
            del optimizer.grad_scale, optimizer.found_inf
        same(name, expected, ended(member))
            """
        )

    @needs_scaler
    def test_torchs_scaler(self):
        self.good_job(
            LOOPS + SAME + """
    for name in ("dpsgd", "allreduce"):
        for unscales in (False, True):
            plan, net, other = plan_of(name), made(), made()
            expected = with_steps(plan, net, sgd(net))
            optimizer = sgd(other)
            member = hearsay.wrap(other, optimizer, plan)
            scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
            for batch, in batches(member):
                optimizer.zero_grad()
                scaler.scale(loss_of(other, batch)).backward()
                if unscales: scaler.unscale_(optimizer)
                scaler.step(optimizer)
                scaler.update()
            same(name, expected, ended(member))
            member = hearsay.wrap(other, optimizer, plan)  # it overflows on rank 1 first
            scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
            for k in range(3):
                optimizer.zero_grad()
                scale = math.inf if member.rank == 1 and k == 0 else 1.0
                scaler.scale(scale * loss_of(other, batch)).backward()
                if unscales: scaler.unscale_(optimizer)
                scaler.step(optimizer)
                scaler.update()
            assert member.steps == 3 and scaler.get_scale() == (512 if member.rank == 1 else 1024)
            assert all(bool(p.isfinite().all()) for p in other.parameters())
            if name == "allreduce": assert len(set(member.summary()["replica_hash"])) == 1
            member.leave()
            """
        )

    def test_autocast(self):
        self.good_job(
            LOOPS + SAME + """
    hashes = []
    for way in ("steps", "wrap"):
        net = made(); optimizer = sgd(net)
        if way == "steps": member = hearsay.join(plan_of("eventgrad"), net)
        else: member = hearsay.wrap(net, optimizer, plan_of("eventgrad"))
        for (x, y), in batches(member):
            def backward():
                with torch.autocast("cpu", dtype=torch.bfloat16): loss = (net(x).float() - y).square().mean()
                loss.backward()
            if way == "steps":
                with member.step(optimizer): backward()
            else:
                optimizer.zero_grad(); backward(); optimizer.step()
        hashes.append(ended(member))
    same("autocast", *hashes)
            """
        )

    @needs_compile
    def test_a_compiled_model(self):
        for order in ("before", "after"):
            for schedule in ("lockstep", "asynchronous"):
                self.good_job(
                    LOOPS + SAME + f"    ORDER, SCHEDULE = '{order}', '{schedule}'\n" + """
    warnings.simplefilter("ignore")  # torch's own
    plan, net, other = plan_of("dpsgd"), made(), made()
    plan["exchange"] = {"name": "dpsgd", "schedule": SCHEDULE}
    expected = with_steps(plan, net, sgd(net))
    optimizer = sgd(other)
    called = torch.compile(other, backend="eager")
    member = hearsay.wrap(called if ORDER == "before" else other, optimizer, plan)
    for (x, y), in batches(member):
        optimizer.zero_grad()
        (called(x) - y).square().mean().backward()
        optimizer.step()
    said = ended(member)
    assert said[1] == expected[1]
    if SCHEDULE == "lockstep": same("compiled", expected, said)
                    """
                )

    def test_a_sampler_that_the_script_has_already(self):
        self.good_job(
            LOOPS + """
    from torch.utils.data.distributed import DistributedSampler
    net = made(); optimizer = sgd(net)
    member = hearsay.wrap(net, optimizer, plan_of("allreduce"))
    sampler = DistributedSampler(data, num_replicas=member.ranks, rank=member.rank)
    loader = DataLoader(data, batch_size=4, sampler=sampler)
    assert member.share(loader) is loader
    for batch in loader:
        optimizer.zero_grad(); loss_of(net, batch).backward(); optimizer.step()
    assert member.steps == 6
            """
        )

    def test_a_rank_that_stops_early_is_named(self):
        job = self.job(
            LOOPS + """
    net = made(); optimizer = sgd(net)
    member = hearsay.wrap(net, optimizer, plan_of("dpsgd"))
    for k, (batch,) in enumerate(batches(member)):
        if k == 3 and member.rank == 1: break
        optimizer.zero_grad(); loss_of(net, batch).backward(); optimizer.step()
            """
        )
        self.assertEqual(job.code, 4, job)
        self.assertRegex(job.err, "rank 1 is at the program's end after 3 steps, and this rank waits for it in step 4")

    def test_the_same_data_on_all_ranks_is_noticed(self):
        job = self.good_job(
            LOOPS + """
    net = made(); optimizer = sgd(net)
    member = hearsay.wrap(net, optimizer, plan_of("dpsgd"))
    for batch in DataLoader(data, batch_size=4):
        net.eval()
        with torch.no_grad(): loss_of(net, data[:2])  # looked at between two steps, and nobody's business
        net.train()
        optimizer.zero_grad(); (loss_of(net, batch) * (1 + member.rank)).backward(); optimizer.step()
    member.summary()
            """
        )
        self.assertIn("all ranks had the same inputs: they train on the same data", job.err)

    def test_what_cannot_be_wrapped_is_refused(self):
        self.good_job(
            LOOPS + """
    import numpy as np
    net = made()
    for model, optimizer, why in (
        (np.zeros(3, np.float32), sgd(net), "takes a torch.nn.Module, not a ndarray; use hearsay.join"),
        (net, torch.optim.LBFGS(net.parameters()), "LBFGS takes several gradients a step"),
        (net, [torch.optim.SGD(net.parameters(), lr=0.1)] * 2, "member.step([muon, adamw])"),
        (net, sgd(made()), "the optimizer has no parameter of the model"),
    ):
        try: hearsay.wrap(model, optimizer, {})
        except hearsay.errors.ConfigError as error: assert why in str(error), error
        else: assert False, why
    member = hearsay.wrap(net, sgd(net), plan_of("dpsgd"))
    optimizer = sgd(net)
    member.leave()
    member = hearsay.wrap(net, optimizer, plan_of("dpsgd"))
    with member.averaged():
        loss_of(net, data[:2]).backward()
        try: optimizer.step()
        except RuntimeError as error: assert "a step inside of member.averaged()" in str(error)
        else: assert False
            """,
            ranks=None,
        )


@needs_torch
class LogTest(JobCase):
    def test_rank_0_logs_what_the_run_folder_has(self):
        job = self.good_job(
            LOOPS + """
    calls = []
    net = made(); optimizer = sgd(net)
    def log(metrics, step=None): calls.append((step, metrics))
    member = hearsay.join(plan_of("eventgrad", every_iterations=4), net, log=log)
    for k, (batch,) in enumerate(batches(member)):
        with member.step(optimizer) as step:
            step.loss = loss_of(net, batch)
            step.loss.backward()
        if k == 3: fourth = step.loss.item()
    said = member.evaluate(lambda: {"accuracy": 0.5})
    print(json.dumps({"rank": member.rank, "calls": calls, "said": {k: v for k, v in said.items() if v == v},
                      "fourth": fourth}))
            """
        )
        first, second = job.said
        self.assertEqual(second["calls"], [])
        steps = [step for step, _ in first["calls"]]
        self.assertEqual(steps, [4, 8, 12, 12])
        self.assertEqual(first["calls"][0][1]["loss"], first["fourth"])
        self.assertEqual(first["calls"][-1][1], first["said"])
        for _, numbers in first["calls"][:-1]:
            self.assertGreater(numbers["bytes_sent"], 0)
            self.assertGreater(numbers["messages"], 0)

    def test_tensorboard_has_the_records_of_python(self):
        """As of the program: `report.tensorboard` writes an event file a rank, with the losses."""
        job = self.job(
            LOOPS + """
    net = made(); optimizer = sgd(net)
    member = hearsay.wrap(net, optimizer, plan_of("dpsgd", every_iterations=4, tensorboard=True))
    for batch, in batches(member):
        optimizer.zero_grad()
        member.loss = loss_of(net, batch)
        member.loss.backward()
        optimizer.step()
            """
        )
        if "built without Protobuf" in job.err:
            self.skipTest("this build has no Protobuf")
        self.assertEqual(job.code, 0, job)
        files = sorted(self.folder.glob("run/tensorboard/rank*/events.out.tfevents.*"))
        self.assertEqual([file.parent.name for file in files], ["rank0000", "rank0001"])
        for file in files:
            self.assertIn(b"loss", file.read_bytes())


if __name__ == "__main__":
    unittest.main()
