#!/usr/bin/env python3
"""train.spares. Ranks are killed; spares take their places, with a neighbour's model, and train and mix there."""
import csv
import signal
import time

import jobs
import survive_test as survive

TRAIN = survive.BASE["train"] | {"epochs": 120, "evaluate_every_epochs": 50, "spares": 1}
BASE, DPSGD, ROUNDS = (config | {"train": TRAIN} for config in (survive.BASE, survive.DPSGD, survive.ROUNDS))
SPARE = 4  # MPI's number of the spare


class Case(jobs.JobCase):
    BASE = BASE


class ReturnTest(Case):
    def test_a_spare_takes_the_place(self):
        configs = {"events": BASE, "dpsgd": DPSGD, "rounds": ROUNDS}
        for (name, config), victim in zip(configs.items(), self.victims(len(configs))):
            nap = self.random.random()
            with self.subTest(name, victim=victim, after=nap):
                job = self.begin(name, config=self.write(f"{name}.yaml", config), ranks=5).trains(4)
                time.sleep(nap)
                job.kill(victim)
                self.has_returned(job, victim, survive.iterations(config))

    def has_returned(self, job, victim, iterations):
        summary = job.ends_well()
        self.assertEqual((summary["status"], summary["ranks"]), ("finished", 4), job)
        (lost,), (joined,) = summary["ranks_lost"], summary["ranks_joined"]
        self.assertEqual((lost["rank"], lost["process"]), (victim, victim), job)
        self.assertEqual((joined["rank"], joined["process"]), (victim, SPARE), job)
        self.assertLessEqual(lost["at_s"], joined["at_s"], job)
        self.assertLess(joined["at_s"], summary["wall_time_s"], job)
        self.assertGreater(joined["iterations"], 20, f"it trains: {job}")
        with open(job.path("staleness.csv"), newline="", encoding="utf-8") as file:
            mixed = [int(row["samples"]) for row in csv.DictReader(file) if row["rank"] == str(victim)]
        self.assertEqual(len(mixed), 2)
        self.assertTrue(all(mixed), f"it mixes on both edges: {mixed}")
        self.assertGreaterEqual(summary["iterations"], iterations, job)
        self.assertGreater(summary["accuracy_mean_model"], 0.8, job)
        self.assertGreater(summary["accuracy_rank_min"], 0.6, job)
        self.assertEqual(len(summary["replica_hash"]), 4, job)
        rows = [row.split(",")[0] for row in job.path("ranks.csv").read_text().splitlines()[1:]]
        self.assertEqual(sorted(rows), ["0", "1", "2", "3"])
        self.assertIn('"loss"', job.path(f"metrics.rank{SPARE:04}.jsonl").read_text(), "a file of its own")
        self.assertRegex(job.said(), rf"joined .*\b{SPARE}\b.*\b{victim}\b", "the report says so")
        self.assertRegex(job.said(), rf"\[rank {SPARE}\] .*\b{victim}\b.* it mixes since", "and the spare, at once")


class NobodyDiesTest(Case):
    def test_a_spare_that_is_not_needed_writes_nothing(self):
        summary = (job := self.finish("run", "train.epochs=8", ranks=5)).summary()
        self.assertEqual((summary["ranks_joined"], len(summary["replica_hash"])), ([], 4))
        self.assertFalse(job.path(f"metrics.rank{SPARE:04}.jsonl").exists())
        self.says(0, "finished", "watch", "run", "--once")

    def test_a_signal_ends_the_job(self):
        job = self.begin("run", ranks=5).trains(4)
        job.process.send_signal(signal.SIGTERM)
        self.assertEqual(job.ended(), 143, job)
        self.assertEqual(job.summary()["status"], "stopped")

    def test_what_it_needs(self):
        dry = ("train", "base.yaml", "--dry-run", "-n", "5")
        said = self.says(0, "ring of 4 ranks", *dry)
        self.assertRegex(said, r"spares +1 more")
        self.says(2, "train.spares: 5 of 5 processes would wait", *dry, "--set", "train.spares=5")
        train = ("train", "base.yaml", "--output", "refused", "--set")
        self.says(2, "they need on_failure: continue", *train, "train.on_failure=abort")
        self.says(2, "continue needs ranks that wait for nobody", *train, "exchange.schedule=lockstep")


if __name__ == "__main__":
    jobs.main(__name__)
