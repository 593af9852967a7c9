"""Replicas of several processes: shard s gossips with shard s of the other replicas, in a job of its own."""
import unittest

from support import GROUPS, GroupCase, needs_fully_shard, needs_torch

# A model of three vectors, cut unevenly: 5 = 3 + 2, 1 = 0 + 1, 2 = 2 + 0. Gradients are whole numbers that differ
# between replicas, so that one has the same bits whole and cut.
CUT = """
    LENGTHS, CUTS = {"w": 5, "b": 1, "c": 2}, {"w": 3, "b": 0, "c": 2}
    class Vectors(torch.nn.Module):
        def __init__(self, shard):
            super().__init__()
            for name, length in LENGTHS.items():
                whole = torch.arange(1.0, 1 + length) / 8 + (rank if shard is None else rank // 2)  # replica 0's count
                part = {None: whole, 0: whole[: CUTS[name]], 1: whole[CUTS[name] :]}[shard]
                self.register_parameter(name, torch.nn.Parameter(part.clone()))
        def forward(self, replica, k): return sum((p * ((3 * replica + k) % 4 - 1)).sum() for p in self.parameters())
    def trained(plan, shard, steps=5, **join):
        model = Vectors(shard)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.125, momentum=0.5)
        member = hearsay.join(plan, model, optimizer=optimizer, **join)
        for k in range(steps):
            with member.step(optimizer) as step:
                step.loss = model(member.rank, k)
                step.loss.backward()
        return model, member
    def values(model): return {name: flat([p]) for name, p in model.named_parameters()}
"""
PLANS = """
    PLANS = {
        "dpsgd": run("dpsgd"),
        "events": {**run("events", name="eventgrad", mixing={"name": "arrival"}),
                   "trigger": {"name": "constant", "threshold": 0, "warmup_iterations": 0}},
        "all": run("all", name="allreduce"),
    }
"""
NETS = """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replica", "shard")) if ranks == 4 else None
    def made(kind=torch.float32):
        "Tensors of 5, 1 and 3 rows on two processes: uneven, and empty on one of them."
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Tanh(), torch.nn.Linear(5, 1), torch.nn.Linear(1, 3))
        return net.to(kind)
    def sharded(net):
        "The last layer is the root's, which stays whole after a pass without gradients."
        for layer in list(net)[:-1]:
            if isinstance(layer, torch.nn.Linear): fully_shard(layer, mesh=mesh["shard"])
        return fully_shard(net, mesh=mesh["shard"])
    def whole(net): return {n: flat([p.full_tensor() if mesh else p]) for n, p in net.named_parameters()}
    def batch(replica, k):
        "What the replica sees in step k; of a process its half."
        made = torch.Generator().manual_seed(100 * replica + k)
        x = torch.randint(-3, 4, (4, 6), generator=made).float()
        return x[2 * mesh["shard"].get_local_rank() :][:2] if mesh else x
"""


@needs_torch
class ShardsTest(GroupCase):
    def test_shards_cut_by_hand_end_with_the_bits_of_whole_replicas(self):
        program = CUT + PLANS + """
    for name, plan in PLANS.items():
        shard = rank % 2 if ranks == 4 else None
        model, member = trained(plan, shard, **({"mesh": across} if across else {}))
        assert (member.rank, member.ranks, member.shard) == ((rank // 2, 2, shard) if across else (rank, 2, None))
        print(json.dumps({"rank": rank, "name": name, "values": values(model), "folder": member.directory}))
        with member.averaged(): print(json.dumps({"rank": rank, "name": name + " mean", "values": values(model)}))
        assert member.evaluate(lambda: {"loss": float(model(0, 1))})["loss_rank_mean"] is not None
        assert (hearsay.rank(), hearsay.size()) == (rank, ranks)
        member.leave()
        """
        found = {}
        for ranks in (2, 4):
            for said in self.good_group_job(program, ranks=ranks):
                found[ranks, said["rank"], said["name"]] = said
        for (ranks, replica, name), said in found.items():
            if ranks == 2:
                first, second = (found[4, 2 * replica + shard, name]["values"] for shard in range(2))
                self.assertEqual(said["values"], {key: first[key] + second[key] for key in first}, name)
        self.assertNotEqual(found[2, 0, "dpsgd"]["values"], found[2, 1, "dpsgd"]["values"], "replicas differ")
        for shard in range(2):
            self.assertEqual(found[4, shard, "dpsgd"]["folder"], f"dpsgd/shard-{shard}")
            summary = self.summary(f"dpsgd/shard-{shard}")
            self.assertEqual((summary["ranks"], summary["status"]), (2, "finished"))
            self.assertEqual(summary["parameters"], (5, 3)[shard])

    def test_started_without_mpi_the_same(self):
        """As by torchrun: the groups meet in torch's store. A graph and a trigger of the loop's own work; a second
        member of the same group follows the first."""
        program = GROUPS.replace('OMPI_COMM_WORLD_{name}"]', '{name}"]').replace('"SIZE"', '"WORLD_SIZE"') + CUT + """
    own = {"graph": lambda ranks: [(0, 1)], "trigger": lambda o: True}
    for name in ("first", "second"):
        model, member = trained(run(name, name="eventgrad", schedule="asynchronous"), rank % 2, mesh=across, **own)
        member.end()
        summary = member.summary()
        assert (summary["iterations"], summary["ranks"]) == (5, 2) and summary["messages"] > 0, summary
        member.leave()
        """
        store = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29511"}
        program = program.replace("sys.argv[1]", repr(str(self.folder / "store")))
        jobs = self.processes(program, [{**store, "RANK": r, "LOCAL_RANK": r, "WORLD_SIZE": "4"} for r in "0123"])
        self.assertEqual([job.code for job in jobs], [0] * 4, "\n".join(map(str, jobs)))
        for shard in range(2):
            self.assertEqual(self.summary(f"second/shard-{shard}")["status"], "finished")
            self.assertTrue((self.folder / f"second/shard-{shard}/graph.txt").exists())

    def test_data_are_dealt_out_by_replica_or_by_process(self):
        said = self.good_group_job(
            CUT + """
    from torch.utils.data import DataLoader, DistributedSampler
    dealt = {}
    for name, more in (("replica", {}), ("process", {"data_mesh": within})):
        member = hearsay.join(run(name), Vectors(rank % 2), mesh=across, **more)
        share = member.share(DataLoader(range(12), batch_size=2, shuffle=True))
        dealt[name] = [x for batch in share for x in batch.tolist()]
        member.leave()
    sampler = DistributedSampler(range(12), num_replicas=2, rank=rank // 2)
    try: member._deals.share(DataLoader(range(12), sampler=sampler))
    except hearsay.errors.ConfigError as error: assert f"make it with num_replicas=4, rank={rank}" in str(error), error
    else: assert False
    print(json.dumps({"rank": rank, **dealt}))
            """
        )
        replicas = [one["replica"] for one in said]
        self.assertEqual((replicas[0], replicas[2]), (replicas[1], replicas[3]))
        self.assertEqual(sorted(replicas[0] + replicas[2]), list(range(12)))
        self.assertEqual(sorted(x for one in said for x in one["process"]), list(range(12)))

    def test_a_stopped_run_goes_on_with_its_bits(self):
        program = CUT + """
    plan = {**run("run", name="eventgrad"), "trigger": {"name": "adaptive", "warmup_iterations": 2}}
    plan["report"]["overwrite"] = True
    steps, file = int(sys.argv[2]), f"checkpoint.{rank}.pt"
    model = Vectors(rank % 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.125, momentum=0.5)
    member = hearsay.join(plan, model, mesh=across)
    if os.path.exists(file):
        saved = torch.load(file, weights_only=False) if torch.__version__ >= "2" else torch.load(file)
        model.load_state_dict(saved["model"]), optimizer.load_state_dict(saved["optimizer"])
        other = {**saved["member"], "shard": 1 - member.shard}
        try: member.load_state_dict(other)
        except hearsay.errors.DataError as error: assert "shard" in str(error), error
        else: assert False
        member.load_state_dict(saved["member"])
    while member.steps < steps:
        with member.step(optimizer): model(member.rank, member.steps).backward()
    state = {"member": member.state_dict(), "model": model.state_dict(), "optimizer": optimizer.state_dict()}
    if steps == 6: torch.save(state, file)
    print(json.dumps({"rank": rank, "values": values(model), "messages": member.counts()["messages"]}))
        """
        expected = self.good_group_job(program, 12)
        self.good_group_job(program, 6)
        self.assertEqual(self.good_group_job(program, 12), expected)

    def test_what_cannot_be_is_refused_in_a_sentence(self):
        self.good_group_job(
            CUT + """
    import numpy as np
    def refused(words, *arguments, kind=hearsay.errors.ConfigError, **named):
        try: hearsay.join(*arguments, **named)
        except kind as error: assert words in str(error), error
        else: assert False, words
    model = lambda: Vectors(rank % 2)
    alone = group_with_me([(r,) for r in range(4)])
    refused("data_mesh=… says which processes of a replica", {}, model(), data_mesh=within)
    refused("a ProcessGroup, not a list", {}, model(), mesh=[0, 2])
    refused(f"mesh is one process, rank {rank} of torch.distributed: one replica has nobody", {}, model(), mesh=alone)
    refused("leave out communicator=… and job=…", {}, model(), mesh=across, communicator=3)
    survives = {"train": {"on_failure": "continue"}, "exchange": {"name": "dpsgd", "schedule": "asynchronous"}}
    refused("for replicas of one process", survives, model(), mesh=across)
    first = dist.new_group([0, 2])
    if rank in (1, 3): refused(f"rank {rank} of torch.distributed is none of mesh", {}, model(), mesh=first)
    if rank in (0, 2): assert hearsay.join({}, [np.ones(3, np.float32)], mesh=first).ranks == 2
            """
        )
        other = self.group_job(CUT + "    hearsay.join(run('run'), Vectors(rank // 2), mesh=across)\n")
        self.assertEqual(other.code, 2, other)
        self.assertIn("the parameters of rank 1 have other names or shapes than those of rank 0", other.err)

    def test_a_process_that_fails_ends_all_shards(self):
        job = self.group_job(
            CUT + """
    model, member = trained(run("run"), rank % 2, mesh=across)
    if rank == 3: raise ValueError("of rank 3")
    member.summary()
            """
        )
        self.assertEqual(job.code, 1, job)
        self.assertRegex(job.err, r"\[rank 3\] .*program.py:\d+: ValueError: of rank 3")


@needs_fully_shard
class FullyShardTest(GroupCase):
    def test_whole_numbers_have_the_bits_of_whole_replicas(self):
        """Through member.step and through hearsay.wrap; and a process holds half of the memory."""
        program = NETS + """
    for name in ("dpsgd", "allreduce"):
        for way in ("step", "wrap"):
            torch.manual_seed(0)
            net = Sums()
            if mesh:
                for layer in net.layers: fully_shard(layer, mesh=mesh["shard"])
                fully_shard(net, mesh=mesh["shard"])
            optimizer = torch.optim.SGD(net.parameters(), lr=0.125, momentum=0.5)
            more = {"mesh": mesh["replica"]} if mesh else {}
            plan = run(name + way, name=name)
            if way == "step": member = hearsay.join(plan, net, **more)
            else: member = hearsay.wrap(net, optimizer, plan, **more)
            for k in range(4):
                if k == 2:
                    with torch.no_grad(): torch._foreach_mul_(list(net.parameters()), 0.5)  # torch counts none of it
                def halve(): torch._foreach_mul_([p.grad for p in net.parameters()], 0.5)  # as clipping does
                x = 4 * batch(member.rank, k)
                if way == "step":
                    with member.step(optimizer) as step:
                        net(x).backward()
                        step.exchange()
                        halve()
                else:
                    optimizer.zero_grad(); net(x).backward(); halve(); optimizer.step()
            print(json.dumps({"rank": rank, "name": name, "way": way, "values": whole(net)}))
            member.leave()
    net = torch.nn.Sequential(*[torch.nn.Linear(128, 128) for _ in range(4)])
    member = hearsay.join(run("memory"), sharded(net) if mesh else net, **more)
    held = 8 * len(member._block.values) + member.memory_bytes
    print(json.dumps({"rank": rank, "name": "memory", "way": "", "bytes": held}))
        """
        found = {(ranks, said["rank"], said["name"], said["way"]): said
                 for ranks in (2, 4) for said in self.good_group_job(program, ranks=ranks)}
        for (ranks, process, name, way), said in found.items():
            if ranks == 4 and name != "memory":
                self.assertEqual(said["values"], found[2, process // 2, name, "step"]["values"], (name, way))
            if ranks == 4 and name == "memory":
                self.assertLess(said["bytes"], 0.55 * found[2, 0, "memory", ""]["bytes"])
        one, other = (found[2, replica, "dpsgd", "step"]["values"] for replica in range(2))
        self.assertNotEqual(one, other, "replicas differ")

    def test_a_net_trains_as_whole_replicas_do(self):
        """Clipped and accumulated gradients, AdamW, double precision, drift correction, averages; up to the order of
        sums."""
        program = NETS + """
    for kind in (torch.float32, torch.float64):
        net = made(kind)
        if mesh: sharded(net)
        is_adam = kind == torch.float32  # whose correction goes by the norm of a shard's gradient
        optimizer = (torch.optim.AdamW if is_adam else torch.optim.SGD)(net.parameters(), lr=0.01)
        plan = run(f"run{kind}", name="eventgrad", mixing={"name": "arrival"})
        plan["exchange"].update({} if is_adam else {"correction": {"name": "drift"}})
        plan["trigger"] = {"name": "constant", "threshold": 0}
        member = hearsay.wrap(net, optimizer, plan, **({"mesh": mesh["replica"]} if mesh else {}))
        for k in range(6):
            optimizer.zero_grad()
            for part in range(2):
                loss = (net(batch(member.rank, 2 * k + part).to(kind)) - 1).square().mean()
                loss.backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 0.5)
            optimizer.step()
            if k == 2: scores = member.evaluate(lambda: {"loss": float(net(torch.ones(2, 6, dtype=kind)).sum())})
        own = whole(net)
        with member.averaged(): mean = whole(net), float(net(torch.ones(2, 6, dtype=kind)).sum())
        assert whole(net) == own
        score = scores["loss_mean_model"]
        print(json.dumps({"rank": rank, "kind": str(kind), "own": own, "mean": mean, "score": score}))
        member.leave()
        """
        found = {(ranks, said["rank"], said["kind"]): said
                 for ranks in (2, 4) for said in self.good_group_job(program, ranks=ranks)}
        for (ranks, process, kind), said in found.items():
            expected = found[2, process // 2 if ranks == 4 else process, kind]
            self.assertAlmostEqual(said["score"], expected["score"], delta=1e-5)
            self.assertAlmostEqual(said["mean"][1], expected["mean"][1], delta=1e-5)
            for here, there in ((said["own"], expected["own"]), (said["mean"][0], expected["mean"][0])):
                for name in there:
                    for one, other in zip(here[name], there[name]):
                        self.assertAlmostEqual(one, other, delta=2e-6, msg=f"{name} {kind}")

    def test_asynchronous_replicas(self):
        said = self.good_group_job(
            NETS + """
    import time
    net = sharded(made())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    plan = run("run", name="eventgrad", schedule="asynchronous", mixing={"name": "arrival"})
    member = hearsay.wrap(net, optimizer, plan, mesh=mesh["replica"])
    for k in range(30):
        optimizer.zero_grad()
        (net(batch(member.rank, k)) - 1).square().mean().backward()
        optimizer.step()
        time.sleep(0.002 * member.rank)
    member.end()
    with member.averaged() as distance: pass
    print(json.dumps({"rank": rank, "distance": distance, "steps": member.steps, "sent": member.counts()["messages"]}))
            """
        )
        for one in said:
            self.assertEqual(one["steps"], 30)
            self.assertGreater(one["sent"], 0)
            self.assertLess(one["distance"], 1)

    def test_tensor_parallelism(self):
        """What several processes of a replica hold alike stays alike in lockstep, and asynchronously is refused; all
        processes of a replica get the same data; a gradient that is not summed yet is summed."""
        self.good_group_job(
            NETS + """
    from torch.distributed.tensor import DTensor, Partial
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
    def parallel():
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.Tanh(), torch.nn.Linear(4, 3))
        return parallelize_module(net, mesh["shard"], {"0": ColwiseParallel(), "2": RowwiseParallel()})
    net = parallel()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    member = hearsay.wrap(net, optimizer, run("run"), mesh=mesh["replica"])
    for k, x in enumerate(member.share([torch.full((4, 6), i / 10) for i in range(8)])):
        optimizer.zero_grad()
        net(x).square().sum().backward()
        optimizer.step()
        own = net[2].bias.to_local().detach()
        both = [torch.empty_like(own) for _ in range(2)]
        dist.all_gather(both, own, group=mesh["shard"].get_group())
        assert torch.equal(*both), "the same data, and the same copy"
    assert k == 3 and net[0].weight.to_local().shape == (2, 6)
    before = net[2].bias.to_local().detach().clone()
    with member.averaged(): mean = net[2].bias.to_local().detach().clone()
    with member.step(optimizer) as step:
        net[2].bias.grad = DTensor.from_local(torch.ones(3), mesh["shard"], [Partial()])  # 2 in all
        step.exchange()
        assert member.gradients["2.bias"].tolist() == [2.0] * 3
    assert torch.allclose(net[2].bias.to_local(), mean - 0.2, atol=1e-6)
    member.leave()
    try: hearsay.join(run("other", schedule="asynchronous"), parallel(), mesh=mesh["replica"])
    except hearsay.errors.ConfigError as error: assert "the whole parameter '2.bias'" in str(error), error
    else: assert False
    try: hearsay.join(run("other"), parallel().bfloat16(), mesh=mesh["replica"])
    except hearsay.errors.ConfigError as error: assert "a shard has no master copy" in str(error), error
    else: assert False
    for wrong, words in ((mesh, "mesh has 2 dimensions, replica, shard, and one is wanted: mesh['replica']"),):
        try: hearsay.join({}, parallel(), mesh=wrong)
        except hearsay.errors.ConfigError as error: assert words in str(error), error
        else: assert False
    both = parallel()
    for layer in both: fully_shard(layer, mesh=mesh["replica"])
    try: hearsay.join({}, both, mesh=mesh["replica"])
    except hearsay.errors.ConfigError as error: assert "over more than one dimension" in str(error), error
    else: assert False
    print(json.dumps({"rank": rank}))
            """
        )


if __name__ == "__main__":
    unittest.main()
