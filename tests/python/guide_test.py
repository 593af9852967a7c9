"""The code of the pages on Python runs as it stands there; what they leave to the reader is said here."""
import re
import shutil
import textwrap
import unittest
from pathlib import Path

from support import GroupCase, needs_fully_shard, needs_torch

GUIDE = Path(__file__).resolve().parents[2] / "docs/guide"
PAGES = "".join((GUIDE / page).read_text(encoding="utf-8") for page in ("python.md", "python-details.md", "sharded.md"))
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGES, re.MULTILINE | re.DOTALL)
TORCH = """
import torch
from torch.utils.data import DataLoader, TensorDataset
class Net(torch.nn.Sequential):
    def __init__(self): super().__init__(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
loader = DataLoader(TensorDataset(torch.randn(60, 4), torch.randint(3, (60,))), batch_size=5, shuffle=True)
criterion = torch.nn.CrossEntropyLoss()
"""


def block(language, words):
    """The one block in that language with these words in it."""
    (found,) = [code for of, code in BLOCKS if of == language and words in code]
    return found


class GuideTest(GroupCase):
    def setUp(self):
        super().setUp()
        self.yaml = block("yaml", "# gossip.yaml")
        (self.folder / "gossip.yaml").write_text(self.yaml, encoding="utf-8")

    @needs_torch
    def test_the_five_lines(self):
        job = self.good_job(TORCH + block("python", "import torch, hearsay"), ranks=4)
        self.assertIn("eventgrad (asynchronous) on 4 ranks: 3 steps, runs/mine", job.out)
        self.assertEqual(self.summary("runs/mine")["status"], "finished")

    @needs_torch
    def test_a_loop_that_stays_as_it_is(self):
        made = "import hearsay\nmodel = Net()\noptimizer = torch.optim.SGD(model.parameters(), lr=0.05)\n"
        end = "assert member.summary()['iterations'] == 6\n"
        self.good_job(TORCH + made + block("python", "hearsay.wrap(model, optimizer") + end)

    def test_arrays(self):
        loop = block("python", "step.exchange()")
        self.good_job(
            "import numpy as np, hearsay\nw, b, config = np.ones(3, np.float32), np.zeros(1, np.float32), {}\n"
            'member = hearsay.join(config, {"w": w, "b": b})\ngradient = lambda x: 2 * x\nfor _ in range(3):\n'
            + textwrap.indent(loop, "    ")
            + 'assert np.allclose(member.parameters["w"], 0.8 ** 3)\n'
        )

    def test_a_graph_and_a_trigger(self):
        self.good_job(
            "import numpy as np, hearsay\nconfig, model = 'gossip.yaml', [np.ones(2000, np.float32)]\n"
            + block("python", "def star(ranks)")
            + "assert member.neighbours == ([1, 2] if member.rank == 0 else [0])\nwith member.step(): pass\n",
            ranks=3,
        )

    @needs_fully_shard
    def test_replicas_of_several_processes(self):
        imports = """
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
"""
        loop = """
called = ddp if "ddp" in globals() else model
for x, y in member.share(loader):
    with member.step(optimizer) if called is model else contextlib.nullcontext():
        optimizer.zero_grad()
        criterion(called(x), y).backward()
    if called is not model: optimizer.step()
summary = member.summary()
assert (summary["iterations"], summary["ranks"]) == (3, 2) and member.shard == rank % 2
assert member.directory == f"runs/mine/shard-{member.shard}", member.directory
"""
        for words, mesh in (("fully_shard(", '"cuda", (2, 4)'), ("DistributedDataParallel(", '"cuda", (2, 8)')):
            with self.subTest(words):
                code = block("python", words)
                self.assertIn(mesh, code)
                program = TORCH + imports + code.replace(mesh, '"cpu", (2, 2)') + loop
                shutil.rmtree(self.folder / "runs", ignore_errors=True)
                self.good_group_job("    import contextlib\n" + textwrap.indent(program, "    "))

    @needs_torch
    def test_checkpoints(self):
        save, load = block("python", "member.state_dict()").split("\n\n")
        join = (
            "import sys, hearsay\nmodel = Net()\noptimizer = torch.optim.AdamW(model.parameters())\n"
            "member = hearsay.join('gossip.yaml', model, set={'report.directory': sys.argv[1]})\n"
        )
        loop = "for x, y in member.share(loader):\n    with member.step(optimizer): criterion(model(x), y).backward()\n"
        self.good_job(f"{TORCH}{join}{loop}{save}\nassert member.steps == 6\n", "first")
        self.good_job(f"{TORCH}{join}{load}{loop}assert member.steps == 12, member.steps\n", "second")


if __name__ == "__main__":
    unittest.main()
