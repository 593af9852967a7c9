#!/usr/bin/env python3
"""scripts/launch --restarts: a rank is killed at an instant that is drawn; the job goes on from the newest complete
checkpoint, and ends with the bits of one that was not disturbed."""
import shutil
import time

import jobs

BASE = {
    "seed": 3,
    "model": {"name": "mlp", "hidden": [512, 256]},  # slow enough that it trains when the signal comes
    "data": {"name": "synthetic_digits", "train_size": 1536, "test_size": 64, "batch_size": 8},
    "train": {"epochs": 6, "evaluate_every_epochs": 3, "checkpoint": {"every_iterations": 40}},
    "report": {"every_iterations": 7},
}
NEIGHBOURS = {"name": "eventgrad", "mixing": {"name": "difference", "gamma": 0.4}}
ENDED_BY_A_SIGNAL = r"(?m)^launch: rank {} on .* signal 9"


class RestartTest(jobs.JobCase):
    BASE, RANKS = BASE, 3

    def killed(self, job):
        """A rank of it, in the next second."""
        victim = self.random.randrange(self.RANKS)
        time.sleep(self.random.random())
        job.kill(victim)
        return victim

    def test_it_goes_on_to_the_same_bits(self):
        for name, exchange in (("neighbours", NEIGHBOURS), ("global", {"name": "gtopk"})):
            config = self.write(f"{name}.yaml", BASE | {"exchange": exchange})
            whole = self.finish(f"whole-{name}", config=config).summary()
            job = self.begin(f"killed-{name}", config=config, launch=("--restarts", "3"), progress="lines").trains()
            victim = self.killed(job)
            with self.subTest(name, victim=victim):
                summary = job.ends_well()
                self.assertRegex(job.said(), ENDED_BY_A_SIGNAL.format(victim))
                self.assertRegex(job.said(), "2 restarts are left")
                self.assertEqual(summary["replica_hash"], whole["replica_hash"], job)

    def test_without_restarts_it_ends_and_goes_on_by_hand(self):
        whole = self.finish("whole").summary()
        job = self.begin("run").trains()
        victim = self.killed(job)
        self.assertNotEqual(job.ended(), 0, job)
        self.assertRegex(job.said(), ENDED_BY_A_SIGNAL.format(victim))
        self.assertEqual(job.summary()["status"], "killed", job)
        self.says(0, "killed", "watch", "run", "--once")

        job.path("summary.json").unlink()
        job = self.finish("run", "--continue", progress="lines")
        self.assertRegex(job.said(), "goes on from checkpoint|begins anew")
        self.assertEqual(job.summary()["replica_hash"], whole["replica_hash"], job)
        self.assertRegex(self.finish("run", "--continue", progress="lines").said(), "nothing to continue")
        self.refused(2, "another configuration", "seed=4", "--continue", folder="run")

    def test_a_run_that_left_nothing_begins_anew_and_is_closed(self):
        short = ("train.epochs=1", "--continue")
        job = self.finish("run", *short, ranks=1)
        shutil.rmtree(job.path("checkpoints"))
        job.path("summary.json").unlink()
        job = self.finish("run", *short, ranks=1, progress="lines")
        self.assertRegex(job.said(), "begins anew")
        self.says(0, "has a summary already", "close", "run")
        job.path("summary.json").unlink()
        self.says(0, "was killed", "close", "run")
        self.assertEqual(job.summary()["iterations"], 1536 // 8, "the last record's")

    def test_what_is_refused(self):
        self.says(2, "continue", "train", "base.yaml", "--overwrite", "--continue")
        self.says(2, "holds no run", "close", ".")
        for count, program, words in (("2", "true", "--restarts is for hearsay train"), ("x", "true", "whole number")):
            launch = [jobs.source_dir / "scripts/launch", "--restarts", count, "-n", 1, program]
            job = jobs.Job(self, "launch", launch, 1)
            self.assertEqual(job.ended(), 2, job)
            self.assertIn(words, job.said())


if __name__ == "__main__":
    jobs.main(__name__)
