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
        for model, why in (
            ("torch.nn.Linear(3, 2).double()", "'weight' is torch.float64 on cpu"),
            ("torch.nn.ReLU()", "no parameter that needs a gradient"),
            ("3", "not a int"),
        ):
            job = self.job(f"import torch, hearsay\nhearsay.join({{}}, {model})\n")
            self.assertEqual(job.code, 2, job)
            self.assertIn(why, job.err)

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
