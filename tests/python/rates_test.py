"""Exchanges that measure by an optimizer's steps know them: per parameter, in every step, whatever changes them."""
import unittest

from support import JobCase, needs_torch

# Every rank pulls the parameters to places of its own; SGD with all ranks' gradients goes to their mean.
PULLS = """
    import itertools, json, os, torch, hearsay
    sgd, rate = torch.optim.SGD, torch.optim.lr_scheduler

    def pulled(rank):
        draw = torch.Generator().manual_seed(rank)
        return [torch.randn(shape, generator=draw) for shape in ((1, 4), (1,))]

    def model():
        torch.manual_seed(0)
        return torch.nn.Linear(4, 1)

    def descend(net, pulls, optimizer, schedule, step, steps):
        for _ in range(steps):
            with step(optimizer):
                sign = -1 if getattr(optimizer, "param_groups", [{}])[0].get("maximize") else 1
                (sign * sum(((p - t) ** 2).sum() / 2 for p, t in zip(net.parameters(), pulls))).backward()
            if schedule: schedule.step()

    class alone:
        def __init__(self, optimizer): self.optimizer = optimizer
        def __enter__(self): self.optimizer.zero_grad()
        def __exit__(self, *_): self.optimizer.step()

    runs = itertools.count()
    def ring(): return {"topology": {"graph": {"name": "ring"}}, "report": {"directory": f"run{next(runs)}"}}
    DRIFT = {"exchange": {"name": "dpsgd", "correction": {"name": "drift"}}}
    EVENTS = {"exchange": {"name": "eventgrad", "mixing": {"name": "arrival"}, "correction": {"name": "drift"}},
              "trigger": {"name": "adaptive", "maximum_silence": 5, "warmup_iterations": 10}}

    def distance(plan, make, schedule=None, before=True, in_join=True, steps=300):
        "The largest distance of this rank's parameters from those of SGD with all ranks' gradients."
        central, ranks = model(), int(os.environ["OMPI_COMM_WORLD_SIZE"])
        optimizer = make(central)
        mean = [sum(targets) / ranks for targets in zip(*map(pulled, range(ranks)))]
        descend(central, mean, optimizer, schedule and schedule(optimizer), alone, steps)
        net = model()
        optimizer = make(net)
        follows = schedule(optimizer) if schedule and before else None
        member = hearsay.join({**ring(), **plan}, net, optimizer=optimizer if in_join else None)
        follows = schedule(optimizer) if schedule and not before else follows
        descend(net, pulled(member.rank), optimizer, follows, member.step, steps)
        member.leave()
        return max(float((p - q).detach().abs().max()) for p, q in zip(net.parameters(), central.parameters()))
"""


@needs_torch
class RatesTest(JobCase):
    def test_with_schedules_and_groups_the_ranks_end_where_one_does(self):
        job = self.good_job(
            PULLS
            + """
    one = lambda net: sgd(net.parameters(), lr=0.1)
    groups = lambda net: [{"params": [net.bias], "lr": 1e-3}, {"params": [net.weight]}]
    SCHEDULES = {
        "one cycle": lambda o: rate.OneCycleLR(o, 0.1, total_steps=301),
        "one cycle of the rate": lambda o: rate.OneCycleLR(o, 0.1, total_steps=301, cycle_momentum=False),
        "linear": lambda o: rate.LinearLR(o, 0.01, total_iters=100),
        "lambda": lambda o: rate.LambdaLR(o, lambda k: 0 if k < 3 else 1 / (1 + k / 100)),
        "cosine": lambda o: rate.CosineAnnealingLR(o, 300),
        "restarts": lambda o: rate.CosineAnnealingWarmRestarts(o, 60),
        "cyclic": lambda o: rate.CyclicLR(o, 1e-5, 0.1, 40, cycle_momentum=False)}
    momentum = lambda net: sgd(net.parameters(), lr=0.02, momentum=0.9)
    cases = {}
    for plan in (DRIFT, EVENTS):
        for name, schedule in SCHEDULES.items():
            for before, in_join in ((True, True), (False, False)):
                with_momentum = one if name != "one cycle" else lambda net: sgd(net.parameters(), lr=0.1, momentum=0.5)
                case = f"{plan['exchange']['name']} {name} {before}"
                cases[case] = distance(plan, with_momentum, schedule, before, in_join)
        for order in (1, -1):
            make = lambda net: sgd(groups(net)[::order], lr=0.1)
            cases[f"{plan['exchange']['name']} groups {order}"] = distance(plan, make)
            make = lambda net: sgd([{**g, "maximize": True} for g in groups(net)[::order]], lr=0.1)
            cases[f"{plan['exchange']['name']} uphill {order}"] = distance(plan, make)
        cases[plan["exchange"]["name"] + " dampening without momentum"] = distance(
            plan, lambda net: sgd(net.parameters(), lr=0.1, dampening=0.9))
    if member_rank == 0: print(json.dumps({"rank": 0, "cases": cases}))
""".replace("member_rank", 'int(os.environ["OMPI_COMM_WORLD_RANK"])'),
            ranks=3,
        )
        for case, distance in job.said[0]["cases"].items():
            with self.subTest(case=case):
                self.assertLess(distance, 2e-3)

    def test_the_order_of_groups_changes_no_bit_and_each_has_its_own_rate(self):
        self.good_job(
            PULLS
            + """
    def parameters(plan, make):
        net = model()
        optimizer = make(net)
        member = hearsay.join({**ring(), **plan}, net)
        descend(net, pulled(member.rank), optimizer, None, member.step, 60)
        member.leave()
        return {name: p.detach().clone() for name, p in net.named_parameters()}

    drift_of_rounds = {"name": "gossip_outer", "local_steps": 5, "correction": {"name": "drift"},
                       "mixing": {"name": "arrival"}}
    for plan in (DRIFT, EVENTS, {"exchange": {"name": "quasi_global_momentum"}}, {"exchange": drift_of_rounds},
                 {"exchange": {"name": "eventgrad", "mixing": {"name": "arrival"}}, "trigger": {"name": "sparq"}}):
        groups = lambda net: [{"params": [net.bias], "lr": 0.002}, {"params": [net.weight]}]
        one, other = (parameters(plan, lambda net: sgd(groups(net)[::order], lr=0.02)) for order in (1, -1))
        slow, fast = (parameters(plan, lambda net: sgd(net.parameters(), lr=lr)) for lr in (0.002, 0.02))
        apart = parameters(plan, lambda net: [sgd([net.weight], lr=0.02), sgd([net.bias], lr=0.002)])
        for name, tensor in one.items():
            assert torch.equal(tensor, other[name]) and torch.equal(tensor, apart[name]), (plan, name)
        assert torch.equal(one["bias"], slow["bias"]) and torch.equal(one["weight"], fast["weight"]), plan
        assert bool(torch.isfinite(one["weight"]).all())
""",
            ranks=3,
        )

    def test_muon_beside_another_optimizer_ends_where_the_sum_of_all_ranks_is_least(self):
        self.good_job(
            PULLS
            + """
    if not hasattr(torch.optim, "Muon"): raise SystemExit  # before torch 2.9
    def pulled(rank):
        draw = torch.Generator().manual_seed(rank)
        return [torch.randn(shape, generator=draw) for shape in ((6, 4), (6,))]
    def distance(plan, adjusts, rate):
        torch.manual_seed(0)
        net = torch.nn.Linear(4, 6)
        muon = torch.optim.Muon([net.weight], lr=rate, weight_decay=0, adjust_lr_fn=adjusts)
        optimizers = [muon, sgd([net.bias], lr=0.1)]
        member = hearsay.join({**ring(), **plan}, net, optimizer=optimizers)
        falls = torch.optim.lr_scheduler.LinearLR(muon, 1.0, 0.0, total_iters=2000)
        descend(net, pulled(member.rank), optimizers, falls, member.step, 2000)
        member.leave()
        mean = [sum(targets) / 3 for targets in zip(*map(pulled, range(3)))]
        return max(float((p - q).detach().abs().max()) for p, q in zip(net.parameters(), mean))
    for adjusts, rate in (("original", 0.02), ("match_rms_adamw", 0.04)):
        assert distance({"exchange": {"name": "dpsgd"}}, adjusts, rate) > 0.2
        drift = distance(DRIFT, adjusts, rate)
        assert drift < 0.02, (adjusts, drift)
""",
            ranks=3,
        )

    def test_steps_that_are_not_known_are_refused_by_name_where_they_matter(self):
        self.good_job(
            PULLS
            + """
    class Lion:
        param_groups = [{"lr": 1e-3, "betas": (0.9, 0.99)}]
        def step(self): pass
    class OwnSGD(torch.optim.SGD): pass

    def refused(words, plan, run, **keys):
        net = model()
        try:
            keys = {name: value(net) if callable(value) else value for name, value in keys.items()}
            member = hearsay.join({**ring(), **plan}, net, **keys)
            run(member, net)
        except hearsay.errors.ConfigError as error:
            for word in words: assert word in str(error), (word, str(error))
        else: raise AssertionError(f"not refused: {plan}")

    def steps(*given, **keys):
        def run(member, net):
            for _ in range(3):
                with member.step(*given, **keys): net(torch.ones(2, 4)).sum().backward()
            member.leave()
        return run
    nothing = lambda member, net: None

    SPARQ = {"exchange": {"name": "eventgrad", "mixing": {"name": "arrival"}}, "trigger": {"name": "sparq"}}
    QUASI = {"exchange": {"name": "quasi_global_momentum"}}
    for plan in (DRIFT, SPARQ, QUASI):
        remedy = ["hearsay.join(…, learning_rate=0.1)", "member.step(…, learning_rate=0.1)"]
        refused(["Lion", *remedy], plan, nothing, optimizer=Lion())
        refused(["Lion", *remedy], plan, steps(Lion()))
        refused(["nobody has told it", *remedy], plan, steps(lambda: None))
        refused(["nobody has told it", *remedy], plan, steps())
        refused(["Lion"], plan, steps([sgd([torch.zeros(1, requires_grad=True)], lr=0.1), Lion()]))
        refused(["LBFGS"], plan, nothing, optimizer=lambda net: torch.optim.LBFGS(net.parameters()))
        refused(["RMSprop", "centered"], plan, nothing,
                optimizer=lambda net: torch.optim.RMSprop(net.parameters(), centered=True))
        refused(["'bias'", "no group", "SGD"], plan, nothing, optimizer=lambda net: sgd([net.weight], lr=0.1))
        refused(["'bias'", "says no rate"], plan, steps(learning_rate={"weight": 0.1}))
        refused(["-0.1"], plan, steps(learning_rate=-0.1))
        net = model()
        member = hearsay.join({**ring(), **plan}, net, learning_rate={"weight": 0.1, "bias": 0.01})
        steps(lambda: None)(member, net)
        for optimizer in (OwnSGD(net.parameters(), lr=0.1), torch.optim.AdamW(net.parameters()),
                          torch.optim.Adagrad(net.parameters()), torch.optim.RMSprop(net.parameters(), momentum=0.9)):
            net = model()
            optimizer.param_groups[0]["params"] = list(net.parameters())
            member = hearsay.join({**ring(), **plan}, net, optimizer=optimizer)
            steps(lambda: None)(member, net)
    everything = [{"exchange": {"name": name}} for name in ("allreduce", "dpsgd", "eventgrad", "gradient_tracking")]
    for plan in everything:
        net = model()
        whole = {**ring(), **plan}
        if plan["exchange"]["name"] == "allreduce": del whole["topology"]
        member = hearsay.join(whole, net, optimizer=Lion())
        steps(Lion())(member, net)

    seen = []
    def own(observation):
        try: observation.learning_rate
        except hearsay.errors.ConfigError as error: assert "learning_rate" in str(error)
        else: seen.append(observation.learning_rate)
        return True
    net = model()
    member = hearsay.join({**ring(), "exchange": {"name": "eventgrad"}}, net, trigger=own)
    steps()(member, net)
    assert not seen
    net = model()
    member = hearsay.join({**ring(), "exchange": {"name": "eventgrad"}}, net, trigger=own)
    steps(learning_rate={"weight": 0.5, "bias": 0.25})(member, net)
    assert set(seen) == {0.5, 0.25}, seen
""",
            ranks=1,
        )


if __name__ == "__main__":
    unittest.main()
