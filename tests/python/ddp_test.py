"""DistributedDataParallel within a machine and gossip between machines: a machine is one replica."""
import unittest

from support import GroupCase, needs_torch

# Two machines of two processes (of four), of one process (of two); or two plain replicas, which train on their
# machines' batches.
MACHINES = """
    from torch.nn.parallel import DistributedDataParallel as DDP
    if ranks == 2: within, across = group_with_me([(0,), (1,)]), dist.group.WORLD
    def made(width=5):
        torch.manual_seed(rank)
        layers = torch.nn.Linear(6, width), torch.nn.Tanh(), torch.nn.BatchNorm1d(width), torch.nn.Linear(width, 2)
        return torch.nn.Sequential(*layers)
    def sgd(net): return torch.optim.SGD(net.parameters(), lr=0.125, momentum=0.5, weight_decay=0.125)
    def require_alike(net):
        own = torch.cat([p.detach().reshape(-1) for p in net.parameters()])
        both = [torch.empty_like(own) for _ in range(dist.get_world_size(within))]
        dist.all_gather(both, own, group=within)
        assert all(torch.equal(own, other) for other in both), "processes of one machine"
    def batch(replica, k):
        "What the machine sees in step k; of a process its part."
        x = torch.randn(4, 6, generator=torch.Generator().manual_seed(100 * replica + k))
        return x if ranks == 2 else x[2 * (rank % 2) :][:2]
"""
PLANS = """
    PLANS = {
        "dpsgd": run("dpsgd"),
        "events": {**run("events", name="eventgrad", mixing={"name": "arrival"}, correction={"name": "drift"}),
                   "trigger": {"name": "adaptive", "warmup_iterations": 2}},
        "all": run("all", name="allreduce"),
        "outer": run("outer", name="gossip_outer", local_steps=2),
        "asynchronous": run("asynchronous", name="eventgrad", schedule="asynchronous", mixing={"name": "arrival"}),
    }
"""


@needs_torch
class DdpTest(GroupCase):
    def test_one_process_a_machine_is_wrap(self):
        """To the last bit, whatever else DDP is told."""
        said = self.good_group_job(
            MACHINES + PLANS + """
    del PLANS["asynchronous"]
    for name, plan in PLANS.items():
        found = []
        for way, views in (("plain", False), ("ddp", False), ("ddp", True)):
            net = made()
            optimizer = sgd(net)
            plan["report"]["directory"] = f"{name}{way}{views}"
            called, more = net, {}
            if way == "ddp":
                called = DDP(net, process_group=within, gradient_as_bucket_view=views)
                more = {"mesh": across}
            member = hearsay.wrap(called, optimizer, plan, **more)
            for k in range(8):
                optimizer.zero_grad(set_to_none=k % 2 == 0)
                for part in range(2):
                    (called(batch(rank, 2 * k + part)) - 1).square().mean().backward()
                torch.nn.utils.clip_grad_norm_(net.parameters(), 0.5)
                optimizer.step()
            summary = member.summary()
            assert summary["model"] == "Sequential" and list(member.parameters)[0] == "0.weight"
            found.append([member.replica_hash, summary["messages"]])
            member.leave()
        assert found[0] == found[1] == found[2], (name, found)
    print(json.dumps({"rank": rank}))
            """,
            ranks=2,
        )
        self.assertEqual(len(said), 2)

    def test_processes_of_a_machine_stay_alike(self):
        """After every step and call, for every kind of exchange, and after the member has left; between machines
        everything is sent once."""
        said = self.good_group_job(
            MACHINES + PLANS + """
    for name, plan in PLANS.items():
        net = made()
        ddp, optimizer = DDP(net, process_group=within), sgd(net)
        member = hearsay.wrap(ddp, optimizer, plan, mesh=across)
        def step(k):
            optimizer.zero_grad()
            (ddp(batch(rank // 2, k)) - 1).square().mean().backward()
            assert all(p.grad is not None for p in net.parameters())
            optimizer.step()
            require_alike(net)
        require_alike(net)
        net[0].register_forward_pre_hook(lambda *_: require_alike(net))  # what has arrived meanwhile included
        for k in range(7): step(k)
        with member.averaged(): require_alike(net)
        require_alike(net)
        before = optimizer.state_dict()["state"]
        assert len(before) == len(member.parameters) < 6, "the optimizer's state is its owner's"
        assert member.evaluate(lambda: {"loss": float(ddp(torch.ones(2, 6)).sum())})["loss_rank_worst"] is not None
        print(json.dumps({"rank": rank, "name": name, "owned": list(member.parameters), "folder": member.directory,
                          "sent": member.summary()["payload_bytes"]}))
        member.leave()
        for k in range(3): step(k)
        assert optimizer.state_dict()["state"].keys() == before.keys()
            """
        )
        first, second = ([one for one in said if one["rank"] == rank and one["name"] == "dpsgd"][0] for rank in (0, 1))
        self.assertEqual(sorted(first["owned"] + second["owned"]),
                         sorted(f"{layer}.{kind}" for layer in (0, 2, 3) for kind in ("weight", "bias")))
        self.assertEqual(second["folder"], "dpsgd/shard-1")
        self.assertEqual(first["sent"] + second["sent"], 2 * 7 * 4 * (5 * 7 + 2 * 5 + 2 * 6))

    def test_a_machine_is_a_replica_that_sees_all_its_data(self):
        """Whole numbers: to the last bit. A net: up to the order of sums."""
        program = MACHINES + """
    for name in ("dpsgd", "allreduce"):
        for kind in ("numbers", "net"):
            torch.manual_seed(rank)
            net = Sums() if kind == "numbers" else made()[:2]
            optimizer = torch.optim.SGD(net.parameters(), lr=0.125, momentum=0.5)
            plan = run(name + kind, name=name)
            if ranks == 4: called, more = DDP(net, process_group=within), {"mesh": across}
            else: called, more = net, {}
            member = hearsay.wrap(called, optimizer, plan, **more)
            for k in range(4):
                x = batch(member.rank, k)
                optimizer.zero_grad()
                if kind == "numbers": called((4 * x).round()).backward()
                else: (called(x) - 1).square().mean().backward()
                optimizer.step()
            values = {n: flat([p]) for n, p in net.named_parameters()}
            print(json.dumps({"rank": rank, "name": name, "kind": kind, "values": values}))
            member.leave()
        """
        found = {(ranks, said["rank"], said["name"], said["kind"]): said["values"]
                 for ranks in (2, 4) for said in self.good_group_job(program, ranks=ranks)}
        for (ranks, process, name, kind), values in found.items():
            expected = found[2, process // 2 if ranks == 4 else process, name, kind]
            if kind == "numbers":
                self.assertEqual(values, expected, name)
            for here, there in ((x, y) for key in expected for x, y in zip(values[key], expected[key])):
                self.assertAlmostEqual(here, there, delta=1e-6)
        self.assertNotEqual(found[2, 0, "dpsgd", "numbers"], found[2, 1, "dpsgd", "numbers"], "replicas differ")

    def test_every_process_has_data_of_its_own(self):
        said = self.good_group_job(
            MACHINES + """
    net = made()
    member = hearsay.wrap(DDP(net, process_group=within), sgd(net), run("run"), mesh=across)
    print(json.dumps({"rank": rank, "mine": list(member.share(list(range(12))))}))
            """
        )
        self.assertEqual([one["mine"] for one in said], [[r, r + 4, r + 8] for r in range(4)])

    def test_what_cannot_be_is_refused_in_a_sentence(self):
        self.good_group_job(
            MACHINES + """
    def refused(words, net, **named):
        try: hearsay.wrap(DDP(net, process_group=within), sgd(net), {}, **named)
        except hearsay.errors.ConfigError as error: assert words in str(error), error
        else: assert False, words
    refused("needs mesh=…, the processes with this one's place", made())
    refused("backward_passes=… sends during the backward pass", made(), mesh=across, backward_passes=1)
    refused("0.weight' is torch.float16", made().half(), mesh=across)
    refused("1 tensors that are trained, and the machine 2 processes", torch.nn.Linear(2, 1, bias=False), mesh=across)
            """
        )


if __name__ == "__main__":
    unittest.main()
