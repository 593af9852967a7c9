"""The run folder: what the program writes, Python and the simulator write; what cannot be written is said."""
import os
import re
import unittest
from pathlib import Path

from support import JobCase, needs_program

RANKS, ITERATIONS, AN_EPOCH, HIDDEN, PIXELS, DIGITS = 3, 12, 4, 2, 28 * 28, 10
VALUES = HIDDEN * PIXELS + HIDDEN + DIGITS * HIDDEN + DIGITS
# What a model is worth, what time and chance decide, and what names the run; all else is the exchange's.
MEASURED = {
    *("accuracy_mean_model", "accuracy_rank_min", "accuracy_rank_mean", "loss_mean_model", "metrics"),
    *("consensus_distance", "replica_hash", "run_id", "model", "dataset", "clock"),
    *("puts", "control_bytes", "bytes_sent", "bytes_fraction"),  # how often a mailbox is looked at
}
EXCHANGES = {
    "dpsgd": "{name: dpsgd}\ntopology: {graph: {name: ring}}",
    "gossip": "{name: gossip_outer, local_steps: 5}\ntopology: {graph: {name: ring}}",
    "allreduce": "{name: allreduce}",
}
COMMON = """
exchange: {exchange}
report: {{directory: {directory}, every_iterations: 5}}
"""
LOOP = """
    import numpy as np, hearsay, sys
    for file in sys.argv[1:]:
        member = hearsay.join(
            file,
            {name: np.zeros(shape, np.float32) for name, shape in
             {"w": (%d, %d), "b": (%d,), "v": (%d, %d), "c": (%d,)}.items()},
            iterations_per_epoch=%d)
        for _ in range(%d):
            with member.step(learning_rate=0.1) as step:
                for g in member.gradients.values(): g[...] = 1 + member.rank
                step.exchange()
                for name, x in member.parameters.items(): x -= np.float32(0.1) * member.gradients[name]
        member.leave()
""" % (HIDDEN, PIXELS, HIDDEN, DIGITS, HIDDEN, DIGITS, AN_EPOCH, ITERATIONS)


def simulator():
    """The simulator of another build folder, or the one that $HEARSAY_SIMULATOR names."""
    builds = Path(__file__).resolve().parents[2] / "build"
    built = [builds / name / "apps/simulator/hearsay-simulator" for name in ("simulator", "simulator-core")]
    named = os.environ.get("HEARSAY_SIMULATOR")
    return next((p for p in ([Path(named)] if named else built) if p.is_file()), None)


def untimed(summary):
    return {key: value for key, value in summary.items() if key not in MEASURED and not key.endswith("_s")}


class DiaryTest(JobCase):
    def write(self, directory, exchange, more):
        file = self.folder / f"{directory}.yaml"
        file.write_text(COMMON.format(exchange=exchange, directory=directory) + more)
        return file

    def trained(self, name, exchange):
        """By the program."""
        file = self.write(
            f"{name}-program",
            exchange,
            f"model: {{name: mlp, hidden: [{HIDDEN}]}}\n"
            f"data: {{name: synthetic_digits, train_size: {16 * RANKS * AN_EPOCH}, test_size: 8, batch_size: 16}}\n"
            f"train: {{iterations: {ITERATIONS}}}\n",
        )
        job = self.command(os.environ["HEARSAY"], "train", file, "--progress", "off", ranks=RANKS)
        self.assertEqual(job.code, 0, job)
        return self.summary(f"{name}-program")

    def simulated(self, program, name, exchange):
        file = self.write(
            f"{name}-simulated",
            exchange,
            f"simulate: {{gradients: synthetic, values: {VALUES}, segments: 4, iterations: {ITERATIONS}}}\n",
        )
        platform = Path(__file__).resolve().parents[2] / "configs/platforms/ethernet-1g-32.xml"
        job = self.command(program, file, "--platform", platform, "-n", str(RANKS))
        self.assertEqual(job.code, 0, job)
        return self.summary(f"{name}-simulated")

    @needs_program
    def test_the_same_exchange_leaves_the_same_summary_whoever_runs_it(self):
        """Equal keys, and equal values where nothing is timed or learnt: program, Python, simulator."""
        files = [self.write(name, exchange, "") for name, exchange in EXCHANGES.items()]
        self.good_job(LOOP, *map(str, files), ranks=RANKS)
        simulates = simulator()
        for name, exchange in EXCHANGES.items():
            with self.subTest(exchange=name):
                python, program = self.summary(name), self.trained(name, exchange)
                self.assertEqual(program["parameters"], VALUES)
                self.assertEqual(list(python), list(program))
                self.assertEqual(untimed(python), untimed(program))
                self.assertEqual(python["local_steps"], 5 if name == "gossip" else 1)
                if simulates:
                    simulated = self.simulated(simulates, name, exchange)
                    self.assertEqual(list(simulated), list(program))
                    del simulated["epochs"]  # of synthetic gradients there are none
                    expected = untimed(program)
                    self.assertEqual(untimed(simulated), {key: expected[key] for key in untimed(simulated)})

    def test_what_a_full_disk_loses_is_said_and_is_the_exit_code(self):
        """By metrics, and by the summary itself; the loop ends, and so do all ranks."""
        program = """
            import resource, signal, sys
            import numpy as np, hearsay
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            member = hearsay.join({"exchange": {"name": "dpsgd"}, "report": {"directory": "run", "overwrite": True,
                                   "every_iterations": 1, "trace": True}}, {"x": np.zeros(3, np.float32)})
            resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), int(sys.argv[1])))
            for _ in range(300):
                with member.step(): member.parameters["x"] -= 1
            summary = member.summary()
            print("steps", member.steps, len(summary["not_written"]))
            """
        job = self.job(program, "20000")
        self.assertEqual(job.code, 3, job)
        self.assertEqual([text.strip() for text in job.outputs], ["steps 300 2"] * 2, job)
        for rank in range(2):
            self.assertEqual(job.err.count(f"[rank {rank}] warning: cannot be written any more: metrics"), 1, job)
        summary = self.summary()
        self.assertEqual(summary["status"], "finished")
        for kind in (
            r"metrics\.rank000[01]\.jsonl \(\d+ records, File too large\), and 1 more like it",
            r".*trace\.rank000[01]\.json: cannot be written \(File too large\).*, and \d more like it",
        ):
            self.assertTrue(any(re.fullmatch(kind, line) for line in summary["not_written"]), summary)
        (self.folder / "run/summary.json").unlink()
        job = self.job(program, "500")
        self.assertEqual(job.code, 3, job)
        self.assertFalse((self.folder / "run/summary.json").exists())
        self.assertIn("summary.json: cannot be written (File too large)", job.err)
        self.assertEqual([text.split()[:2] for text in job.outputs], [["steps", "300"]] * 2, job)


if __name__ == "__main__":
    unittest.main()
