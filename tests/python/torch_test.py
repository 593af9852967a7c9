"""Torch modules: views without a copy, the same bits as in C++, hooks, shares of data, workers."""
import os
import unittest
from pathlib import Path

import numpy as np
from support import JobCase, idx, needs_mnist, needs_same_loop, needs_torch

SAME_LOOP_PY = os.path.join(os.path.dirname(__file__), "same_loop.py")


@needs_torch
class TorchTest(JobCase):
    def test_parameters_gradients_and_buffers(self):
        """Views of the block, the same Parameter objects; rank 0's values everywhere; what does not train stays out."""
        self.good_job(
            """
            import torch, hearsay
            torch.manual_seed(int(__import__("os").environ["OMPI_COMM_WORLD_RANK"]))
            net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2))
            net[2].bias.requires_grad_(False)
            net[1].running_mean += torch.randn(4)
            net[1].num_batches_tracked += int(torch.randint(1, 100, ()))
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
            weight, old = net[0].weight, [p.detach().clone() for p in net.parameters()]
            state = [t.clone() for t in net.state_dict().values()]
            member = hearsay.join({"exchange": {"name": "allreduce"}}, net)
            assert net[0].weight is weight and member.parameters["0.weight"] is weight
            assert list(member.parameters) == ["0.weight", "0.bias", "1.weight", "1.bias", "2.weight"]
            at = weight.data_ptr()
            for p in member.parameters.values():
                assert p.data_ptr() == at; at += 4 * p.numel()
            if member.rank == 0:
                for before, after in zip(state, net.state_dict().values()): assert torch.equal(before, after)
            said = sum(float(t.double().sum()) for t in net.state_dict().values())
            import numpy as np
            with member.averaged() as distance:
                same = sum(float(t.double().sum()) for t in net.state_dict().values())
            assert distance == 0 and abs(said - same) < 1e-4, (distance, said, same)
            x = net[0].weight.detach().clone()
            with member.step(optimizer):
                net(torch.randn(8, 3)).square().sum().backward()
                for name, p in member.parameters.items(): assert p.grad is member.gradients[name]
            assert not torch.equal(x, net[0].weight)
            """
        )

    @needs_same_loop
    def test_the_same_bits_and_messages_as_in_cpp(self):
        for plan in (
            "exchange: {name: dpsgd}",
            "exchange: {name: eventgrad, mixing: {name: arrival}, correction: {name: drift}}\n"
            "trigger: {name: adaptive, warmup_iterations: 3, maximum_silence: 8}",
            "exchange: {name: lkgs}",
            "exchange: {name: gradient_tracking}",
        ):
            with self.subTest(plan=plan):
                (self.folder / "gossip.yaml").write_text(plan)
                arguments = ("gossip.yaml", ".", 12, 4)
                cpp = self.command(os.environ["SAME_LOOP"], *arguments, ranks=2)
                python = self.run_file(SAME_LOOP_PY, *arguments)
                self.assertEqual((cpp.code, python.code), (0, 0), f"{cpp}\n{python}")
                for one, other in zip(cpp.said, python.said):
                    self.assertEqual(one["hash"], other["hash"])
                    self.assertEqual(one["messages"], other["messages"])
                counts = self.summary()
                sent = counts["bytes_sent"] - counts["control_bytes"]
                self.assertGreater(sent, 0)
                in_cpp = sum(one["bytes"] - one["control_bytes"] for one in cpp.said)
                self.assertEqual(sent, in_cpp, "all bytes but acknowledgements, whose number depends on when they come")

    @needs_same_loop
    @needs_mnist
    def test_mnist_ends_with_the_replicas_of_cpp(self):
        """Real digits: 200 steps of 32 on each of two ranks, event-triggered, in lockstep."""
        steps, batch = 200, 32
        folder = Path(os.environ["HEARSAY_DATA"], "mnist")
        images, labels = (idx(folder, f"train-{name}") for name in ("images-idx3-ubyte", "labels-idx1-ubyte"))
        for rank in range(2):
            mine = slice(rank, 2 * steps * batch, 2)
            (images[mine] / np.float32(255)).astype(np.float32).tofile(self.folder / f"inputs{rank}")
            labels[mine].astype(np.float32).tofile(self.folder / f"labels{rank}")
        (self.folder / "gossip.yaml").write_text(
            "exchange: {name: eventgrad, mixing: {name: arrival}}\ntrigger: {name: adaptive, horizon: 1.0}"
        )
        arguments = ("gossip.yaml", ".", steps, batch)
        cpp = self.command(os.environ["SAME_LOOP"], *arguments, "given", ranks=2)
        python = self.run_file(SAME_LOOP_PY, *arguments)
        self.assertEqual((cpp.code, python.code), (0, 0), f"{cpp}\n{python}")
        hashes = [[(one["hash"], one["messages"]) for one in job.said] for job in (cpp, python)]
        self.assertEqual(*hashes)

    def test_gradients_that_the_loop_has_put_elsewhere_count_the_same(self):
        """zero_grad(set_to_none=True) inside the step makes torch allocate new gradients; several backward passes make
        one gradient; layer-wise exchanges send each once."""
        job = self.good_job(
            """
            import json, torch, hearsay
            hashes = {}
            for exchange in ("allreduce", "lkgs", "dpsgd"):
                for way in ("plain", "none", "twice"):
                    torch.manual_seed(3)
                    net = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2))
                    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
                    plan = {"exchange": {"name": exchange}, "report": {"directory": exchange + way}}
                    member = hearsay.join(plan, net)
                    torch.manual_seed(member.rank)
                    for k in range(5):
                        x = torch.randn(4, 6)
                        with member.step(optimizer, backward_passes=2 if way == "twice" else 1):
                            if way == "none": optimizer.zero_grad(set_to_none=True)
                            net(x).square().sum().backward()
                            if way == "twice": (0 * net(x)).sum().backward()
                    hashes[exchange + way] = member.replica_hash
                    member.leave()
            print(json.dumps({"rank": 0, "hashes": hashes}))
            """
        )
        for said in job.said:
            for exchange in ("allreduce", "lkgs", "dpsgd"):
                hashes = {said["hashes"][exchange + way] for way in ("plain", "none", "twice")}
                self.assertEqual(len(hashes), 1, exchange)

    def test_a_gradient_that_was_sent_must_not_change(self):
        job = self.job(
            """
            import torch, hearsay
            net = torch.nn.Linear(3, 2)
            member = hearsay.join({"exchange": {"name": "lkgs"}}, net)
            with member.step(torch.optim.SGD(net.parameters(), lr=0.1)):
                for _ in range(2): net(torch.ones(1, 3)).sum().backward()
            """
        )
        self.assertNotEqual(job.code, 0)
        sentence = r"program.py:6: RuntimeError: the gradient of 'bias' was made twice.*backward_passes=2"
        self.assertRegex(job.err, sentence)

    def test_parameters_that_have_moved_are_noticed(self):
        job = self.job(
            """
            import torch, hearsay
            net = torch.nn.Linear(3, 2)
            member = hearsay.join({}, net)
            net.double().float()
            with member.step(): pass
            """
        )
        self.assertNotEqual(job.code, 0)
        self.assertRegex(job.err, r"'weight' does not lie in the member's block any more")

    def test_what_cannot_be_trained_is_refused(self):
        program = "import torch, hearsay\nhearsay.join({}, torch.nn.Linear(3, 2, dtype=torch.complex64))\n"
        job = self.job(program)
        self.assertEqual(job.code, 2, job)
        self.assertIn("'weight' is torch.complex64 on cpu", job.err)
        self.good_job(
            """
            import torch, hearsay
            P, trained = torch.nn.Parameter, torch.nn.Linear(3, 2)
            def model(p=None, buffer=None, frozen=None):
                net = torch.nn.Sequential(torch.nn.Linear(3, 2))
                if p is not None: net.register_parameter("p", p)
                if frozen is not None: net.register_parameter("p", P(frozen, requires_grad=False))
                if buffer is not None: net.register_buffer("b", buffer)
                return net
            sparse = torch.eye(3).to_sparse()
            tied = model(); tied.register_parameter("p", P(tied[0].weight.data))
            stale = model(); stale.register_buffer("b", stale[0].weight.detach().t())
            for refused, why in (
                (torch.nn.ReLU(), "no parameter that needs a gradient"),
                (3, "not a int"),
                (model(P(torch.zeros(3, dtype=torch.complex64))), "'p' is torch.complex64 on cpu; .*imaginary"),
                (model(P(torch.zeros(3, device="meta"))), "'p' is on the device meta.*load weights"),
                (model(P(sparse)), "'p' is sparse.*to_dense"),
                (torch.nn.LazyLinear(3), "'weight' is lazy and has no shape yet.*one batch through the model"),
                (model(buffer=sparse), "'b', which is not trained, is sparse"),
                (model(frozen=torch.zeros(3, device="meta")), "'p', which is not trained, is on the device meta"),
                (model(buffer=torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8)), "'b'.*is quantised"),
                (tied, "'0.weight' and 'p' share memory|'p' and '0.weight' share memory"),
                (stale, "'0.weight' and 'b' share memory|'b' and '0.weight' share memory"),
            ):
                import re
                try: hearsay.join({}, refused)
                except hearsay.errors.ConfigError as error: assert re.search(why, str(error)), (why, str(error))
                else: assert False, why
            """
        )

    def test_what_was_true_at_join_is_asked_again(self):
        self.good_job(
            """
            import re, torch, hearsay
            def net():
                torch.manual_seed(0)
                made = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 4), torch.nn.Linear(4, 1))
                for p in made[1].parameters(): p.requires_grad_(False)
                return made
            def thaw(net): net[1].weight.requires_grad_(True)
            def replace(net): net[2] = torch.nn.Linear(4, 2)
            def add(net): net.register_parameter("scale", torch.nn.Parameter(torch.ones(1)))
            def norm(net): torch.nn.utils.weight_norm(net[0])
            def move(net): net[0].weight.data = net[0].weight.data.clone()
            def tie(net): net[0].bias.data = net[2].weight.data
            def half(net): net.half()
            def last(net): net[2] = torch.nn.Identity()
            def share(net): net[0].bias = net[0].bias; net[2].extra = net[0].weight
            for change, why in (
                (thaw, "'1.weight' was frozen at hearsay.join and needs a gradient now.*freeze"),
                (replace, r"'2.weight' \\(and 1 more\\) has come to the model after hearsay.join.*member.leave"),
                (add, "'scale' has come to the model"),
                (norm, "'0.weight_g' .* has come to the model"),
                (move, "'0.weight' does not lie in the member's block any more"),
                (tie, "'0.bias' does not lie in the member's block any more"),
                (half, "'0.weight' does not lie .*it is torch.float16 on cpu now"),
                (last, None), (share, None),
            ):
                model = net()
                member = hearsay.join({"report": {"overwrite": True}}, model)
                with member.step(): model[0].weight.sum().backward()
                change(model)
                for entered in (member.step, member.averaged):
                    try:
                        with entered(): pass
                    except hearsay.errors.ConfigError as error: assert why and re.search(why, str(error)), (why, error)
                    else: assert why is None, why
                member.leave()
                if change in (thaw, replace):  # what the sentence says helps
                    member = hearsay.join({"exchange": {"name": "allreduce"}, "report": {"overwrite": True}}, model)
                    with member.step(torch.optim.SGD(model.parameters(), lr=0.1)):
                        model(torch.full((2, 3), 1.0 + member.rank)).sum().backward()
                    assert len(set(member.summary()["replica_hash"])) == 1
                    assert len(member.parameters) == (5 if change is thaw else 4)
                    member.leave()
            """
        )

    def test_what_is_frozen_after_join_rests_and_can_go_on(self):
        self.good_job(
            """
            import torch, hearsay
            torch.manual_seed(0)
            net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 1))
            for exchange in ("allreduce", "lkgs", "dpsgd"):
                optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=0.1)
                member = hearsay.join({"exchange": {"name": exchange}, "report": {"overwrite": True}}, net)
                def step():
                    before = net[0].weight.clone(), net[1].weight.clone()
                    with member.step(optimizer): net(torch.full((2, 3), 1.0)).square().sum().backward()
                    return [not torch.equal(was, layer.weight) for was, layer in zip(before, net)]
                assert step() == [True, True]
                net[0].requires_grad_(False)
                assert step() == [False, True] and step() == [False, True], exchange
                net[0].requires_grad_(True)
                assert step() == [True, True]
                member.leave()
            """
        )

    def test_what_is_not_trained_begins_with_rank_0s_values_whatever_it_is(self):
        job = self.good_job(
            """
            import torch, hearsay
            rank = int(__import__("os").environ["OMPI_COMM_WORLD_RANK"])
            kinds = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.int64, torch.bool,
                     torch.complex64)
            net = torch.nn.Linear(2, 1)
            values = {}
            for kind in kinds:
                whole = (torch.arange(12.0).reshape(3, 4) * (1 - rank)).to(kind)
                name = str(kind).split(".")[1]
                own = lambda: whole.clone()
                for form, tensor in (("whole", own()), ("slice", own()[:, 1:3]), ("turned", own().t()),
                                     ("one", own()[1, 1]), ("none", own()[:, 4:]), ("wide", own()[1, :1].expand(5))):
                    net.register_buffer(f"{form}_{name}", tensor)
                    values[f"{form}_{name}"] = tensor.clone()
                net.register_parameter(f"frozen_{name}", torch.nn.Parameter(whole.clone(), requires_grad=False))
                values[f"frozen_{name}"] = whole.clone()
            objects = {name: id(tensor) for name, tensor in net.state_dict(keep_vars=True).items()}
            member = hearsay.join({}, net)
            whole = {name: tensor for name, tensor in net.state_dict(keep_vars=True).items() if name in values}
            for name, tensor in whole.items():
                assert id(tensor) == objects[name]
                form, kind = name.split("_", 1)
                right = (torch.arange(12.0).reshape(3, 4)).to(tensor.dtype)
                right = {"whole": right, "slice": right[:, 1:3], "turned": right.t(), "one": right[1, 1],
                         "none": right[:, 4:], "wide": right[1, :1].expand(5), "frozen": right}[form]
                assert torch.equal(tensor.detach(), right), (name, tensor, right)
            if member.rank == 1: [t.data.copy_(t.data + 1) for n, t in whole.items()
                                  if t.dtype != torch.bool and not n.startswith("wide")]
            before = {name: tensor.detach().clone() for name, tensor in whole.items()}
            with member.averaged():
                for name, tensor in whole.items():
                    moves = tensor.is_floating_point() and name.split("_")[0] not in ("frozen", "wide")
                    mean = before[name] + (0.5 - member.rank) if moves else before[name]
                    assert torch.equal(tensor.detach(), mean), (name, tensor)
            for name, tensor in whole.items(): assert torch.equal(tensor.detach(), before[name]), name
            net.half_of = torch.zeros(3)
            net.register_buffer("late", torch.full((3,), float(member.rank)))
            with member.averaged(): assert net.late.tolist() == [0.5] * 3, "a buffer that has come after join"
            """
        )
        job = self.job(
            """
            import torch, hearsay
            net = torch.nn.Linear(2, 1)
            if __import__("os").environ["OMPI_COMM_WORLD_RANK"] == "1": net.register_buffer("b", torch.zeros(3))
            hearsay.join({}, net)
            """
        )
        self.assertEqual(job.code, 2, job)
        self.assertIn("the frozen parameters or buffers of rank 1 have other names", job.err)

    def test_shares_cover_the_data_and_are_equally_long(self):
        """With workers that are forked: they load, and nothing else."""
        job = self.good_job(
            """
            import json, torch, hearsay
            from torch.utils.data import DataLoader, TensorDataset
            net = torch.nn.Linear(1, 1)
            member = hearsay.join({"seed": 5}, net)
            data = TensorDataset(torch.arange(11).float())
            said = {"rank": member.rank}
            for name, loader in {
                "straight": DataLoader(data, batch_size=2),
                "shuffled": DataLoader(data, batch_size=2, shuffle=True),
                "workers": DataLoader(data, batch_size=2, shuffle=True, num_workers=2),
                "list": [[i] for i in range(11)],
            }.items():
                share = member.share(loader)
                values = lambda batch: [float(v) for v in torch.as_tensor(batch[0]).reshape(-1)]
                epochs = [[values(batch) for batch in share] for _ in range(2)]
                assert len(share) == len(epochs[0])
                said[name] = epochs
            with member.step(): pass
            print(json.dumps(said))
            """,
            ranks=3,
            environment={"OMP_NUM_THREADS": None},
        )
        for name in ("straight", "shuffled", "workers", "list"):
            lengths = {len(epoch) for said in job.said for epoch in said[name]}
            self.assertEqual(len(lengths), 1, f"{name}: {lengths}")
            first, second = ([v for said in job.said for batch in said[name][e] for v in batch] for e in (0, 1))
            self.assertEqual(set(first), set(range(11 if name != "list" else 9)))
            self.assertLessEqual(len(first), 12)
            self.assertEqual(first == second, name in ("straight", "list"), f"{name}: another order in every epoch")

    def test_ranks_share_the_cores(self):
        """Torch's threads and OpenBLAS's, which torch does not know of."""
        program = """
            import ctypes, json, os, numpy, torch, hearsay
            torch.set_num_threads(4)
            member = hearsay.join({"report": {"overwrite": True}}, torch.nn.Linear(2, 2))
            libraries = {line.split()[-1] for line in open("/proc/self/maps") if "openblas" in line and ".so" in line}
            blas = [getattr(ctypes.CDLL(path), "openblas_get_num_threads", None) for path in libraries]
            print(json.dumps({"rank": member.rank, "threads": torch.get_num_threads(),
                              "blas": [get() for get in blas if get], "cores": len(os.sched_getaffinity(0))}))
            """
        for said in self.good_job(program, ranks=2, environment={"OMP_NUM_THREADS": None}).said:
            for threads in (said["threads"], *said["blas"]):
                self.assertLessEqual(threads, max(1, said["cores"] // 2))
        for said in self.good_job(program, ranks=2, environment={"OMP_NUM_THREADS": "2"}).said:
            self.assertEqual(said["threads"], 4, "the user's own choice stays")


if __name__ == "__main__":
    unittest.main()
