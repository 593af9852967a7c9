#!/usr/bin/env python3
"""train.joins: processes come to a job that trains already, at a vertex that was vacant or in a dead rank's place; and
whoever does not belong there is refused, and harms nobody."""
import os
import subprocess
import time
import unittest.mock

import jobs
import survive_test as survive

BASE = survive.BASE | {
    "train": {"epochs": 100000, "seconds": 20, "evaluate_every_epochs": 0, "on_failure": "continue",
              "failure_timeout_s": 3, "joins": 3, "vacant": 1},
}
JOB = ("--recover", "--job", "night")


class JoinTest(jobs.JobCase):
    BASE, RANKS = BASE, 3

    def setUp(self):
        super().setUp()
        own = unittest.mock.patch.dict(os.environ, TMPDIR=str(self.folder))
        own.start()
        self.addCleanup(own.stop)

    def joins(self, *settings, job="night", config="base.yaml", **variables):
        """A process that comes."""
        process = subprocess.Popen(
            [*map(str, self.train("run", *settings, config=config)), "--join", job], cwd=self.folder, text=True,
            env={**os.environ, **jobs.ENVIRONMENT, **variables}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def ended(self, process):
        said = process.communicate(timeout=jobs.LONGEST_S)[0]
        return process.returncode, said

    def mixes(self, number):
        """Waits until the process of this number has trained."""
        path = self.folder / "run" / f"metrics.rank{number:04}.jsonl"
        self.assertTrue(jobs.until(lambda: path.exists() and path.stat().st_size > 0), f"process {number} trains")

    def test_a_job_grows_and_replaces_its_dead(self):
        began = time.monotonic()
        job = self.begin("run", mpi=False, launch=JOB).trains()
        first = self.joins()
        self.mixes(4)
        killed = self.joins()  # no vertex is free: it waits, and is killed
        self.assertTrue(jobs.until(lambda: list(self.folder.glob("hearsay-*/night/inside-*-5"))), "it is in the job")
        killed.kill()
        job.kill(0)
        third = self.joins()
        self.mixes(6)
        self.assertLess(time.monotonic() - began, 20, "it all happened while the job trained")
        summary = job.ends_well()
        for late in (first, third):
            code, said = self.ended(late)
            self.assertEqual(code, 0, said)
            self.assertRegex(said, r"takes the place of rank \d, .* it mixes since", said)
        self.assertEqual((summary["status"], summary["ranks"], len(summary["replica_hash"])), ("finished", 4, 4), job)
        joined = [(one["rank"], one["process"]) for one in summary["ranks_joined"]]
        self.assertEqual(joined, [(3, 4), (0, 6)], job)
        self.assertEqual(sorted(one["process"] for one in summary["ranks_lost"]), [0, 5], job)
        self.assertTrue(all(one["iterations"] > 20 for one in summary["ranks_joined"]), job)
        self.assertGreater(summary["accuracy_mean_model"], 0.8, job)
        self.assertGreater(summary["accuracy_rank_min"], 0.6, job)
        self.assertEqual(list(self.folder.glob("hearsay-*/night/*")), [], "something stays where they have met")

    def test_who_does_not_belong_there_harms_nobody(self):
        job = self.begin("run", "train.seconds=12", mpi=False, launch=JOB).trains()
        with self.subTest("another configuration"):
            code, said = self.ended(self.joins("train.seconds=12", "seed=4"))
            self.assertEqual(code, 2, said)
            self.assertIn("another configuration", said)
        with self.subTest("another name"):
            code, said = self.ended(self.joins("train.seconds=12", job="day", HEARSAY_START_TIMEOUT="0.5"))
            self.assertEqual(code, 4, said)
            self.assertIn("no job 'day'", said)
        with self.subTest("another token"):
            code, said = self.ended(self.joins("train.seconds=12", HEARSAY_JOB_TOKEN="a token of somebody else"))
            self.assertEqual(code, 2, said)
            self.assertIn("another token", said)
        summary = job.ends_well()
        self.assertEqual((summary["status"], summary["ranks_joined"]), ("finished", []), job)
        self.assertEqual(summary["ranks_lost"], [], job)

    def test_whoever_comes_at_any_moment_and_is_killed_at_any_harms_nobody(self):
        settings = ("train.seconds=8", "train.joins=40")
        job = self.begin("run", *settings, mpi=False, launch=JOB)
        comers = []
        while job.process.poll() is None and job.seconds() < jobs.LONGEST_S:
            comers.append(self.joins(*settings, HEARSAY_START_TIMEOUT="3"))
            time.sleep(self.random.uniform(0.2, 1.2))
            if self.random.random() < 0.4:
                self.random.choice(comers).kill()
        summary = job.ends_well()
        self.assertEqual((summary["status"], summary["ranks"]), ("finished", 4), job)
        ends = {"0": "takes the place|was not needed", "2": "no place left", "4": "no job|has ended|was not heard of"}
        for comer in comers:
            code, said = self.ended(comer)
            if code != -9:
                self.assertRegex(said, ends.get(str(code), "no such end"), f"{code}: {said}")

    def test_what_it_needs(self):
        self.says(2, "has train.joins in its configuration", "train", "base.yaml", "--join", "night", "--set",
                  "train.joins=0", "--set", "train.vacant=0")
        self.says(2, "who comes later needs on_failure: continue", "train", "base.yaml", "--set",
                  "train.on_failure=abort")
        self.says(2, "let train.joins be as many", "train", "base.yaml", "--set", "train.vacant=4")
        self.says(2, "a job that is started without MPI", "train", "base.yaml", "--output", "alone")
        self.says(0, "ring of 4 ranks", "train", "base.yaml", "--dry-run", "-n", "3")


if __name__ == "__main__":
    jobs.main(__name__)
