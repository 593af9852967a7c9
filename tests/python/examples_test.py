"""The examples run, learn, and leave run folders that one can compare."""
import os
import re
import unittest
from pathlib import Path

from support import JobCase, free_port, needs_torch

EXAMPLES = os.path.realpath(os.path.join(os.path.dirname(__file__), "../../python/examples"))


class ExamplesTest(JobCase):
    def run_example(self, name, *arguments, ranks=2):
        job = self.run_file(os.path.join(EXAMPLES, name), *arguments, ranks=ranks)
        self.assertEqual(job.code, 0, job)
        return job

    @needs_torch
    def test_mnist_with_fewer_messages_and_fewer_bytes(self):
        self.run_example("mnist.py", "--steps", "150")
        dense, events, sparse = (self.summary(f"runs/python-{name}") for name in ("dpsgd", "eventgrad", "sparse"))
        for summary in (dense, events, sparse):
            self.assertGreater(summary["accuracy_mean_model"], 0.6)
            self.assertEqual((summary["iterations"], summary["status"]), (150, "finished"))
        self.assertEqual(dense["messages"], dense["messages_possible"])
        self.assertLess(events["messages"], dense["messages"])
        self.assertLess(sparse["bytes_sent"], 0.5 * events["bytes_sent"])

    def test_logistic_regression_of_classes_that_no_rank_sees_alone(self):
        """In nine lines of YAML, any exchange: here the two that differ most."""
        self.run_example("logistic_regression.py", ranks=3)
        events = self.summary("runs/python-logistic")
        self.assertGreater(events["accuracy_mean_model"], 0.9)
        self.assertLess(events["messages"], events["messages_possible"])
        (self.folder / "plan.yaml").write_text("exchange: {name: allreduce}\nreport: {directory: runs/all}\n")
        self.run_example("logistic_regression.py", "plan.yaml", ranks=3)
        self.assertGreater(self.summary("runs/all")["accuracy_mean_model"], 0.9)

    @needs_torch
    def test_five_lines(self):
        job = self.run_example("five_lines.py")
        summary = self.summary("runs/python-five-lines")
        self.assertGreater(summary["accuracy_mean_model"], 0.9, job)
        self.assertLess(summary["messages"], summary["messages_possible"])

    @needs_torch
    def test_machines(self):
        """As started by torchrun."""
        program = Path(EXAMPLES, "machines.py").read_text(encoding="utf-8")
        common = {"WORLD_SIZE": "4", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
        jobs = self.processes(program, [{**common, "RANK": rank, "LOCAL_RANK": rank} for rank in "0123"])
        self.assertEqual([job.code for job in jobs], [0] * 4, "\n".join(map(str, jobs)))
        for shard in range(2):
            summary = self.summary(f"runs/python-machines/shard-{shard}")
            self.assertGreater(summary["accuracy_mean_model"], 0.9)
            self.assertLess(summary["messages"], summary["messages_possible"])

    @needs_torch
    def test_the_transformer_learns_the_grammar(self):
        job = self.run_example("character_transformer.py", "--steps", "120")
        loss = float(re.search(r"validation loss .*: ([0-9.]+) nats", job.out)[1])
        # 20 letters: 3.0 without learning. The frequencies of letters alone: 2.7.
        self.assertLess(loss, 2.0)
        self.assertAlmostEqual(self.summary("runs/python-transformer")["loss_mean_model"], loss, delta=6e-4)


if __name__ == "__main__":
    unittest.main()
