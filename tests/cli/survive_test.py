#!/usr/bin/env python3
"""train.on_failure: continue. Ranks are killed and stopped at instants that are drawn; the others finish, soon, and the
report says who has died."""
import json
import re
import signal
import time

import jobs

EXAMPLES_OF_A_RANK, BATCH = 2048 // 4, 16
BASE = {
    "seed": 3,
    "model": {"name": "mlp", "hidden": [256, 128]},
    "data": {"name": "synthetic_digits", "train_size": 2048, "test_size": 256, "batch_size": BATCH},
    "optimizer": {"name": "sgd", "learning_rate": 0.05},
    "topology": {"graph": {"name": "ring"}, "weights": {"name": "uniform"}},
    "exchange": {"name": "eventgrad", "schedule": "asynchronous", "mixing": {"name": "arrival"},
                 "correction": {"name": "drift"}},
    "trigger": {"name": "adaptive", "horizon": 1.0, "maximum_silence": 10},
    "train": {"epochs": 60, "evaluate_every_epochs": 25, "on_failure": "continue", "failure_timeout_s": 1.5},
    "report": {"every_iterations": 7},
}
LOCAL_STEPS = 5
DPSGD = {name: section for name, section in BASE.items() if name != "trigger"} | {
    "exchange": {"name": "dpsgd", "schedule": "asynchronous"},
    "optimizer": {"name": "sgd", "learning_rate": 0.2},
    "train": BASE["train"] | {"epochs": 120},  # with 60 it is in the midst of learning: 84 to 96 %
}
ROUNDS = BASE | {"exchange": {"name": "gossip_outer", "schedule": "asynchronous", "local_steps": LOCAL_STEPS}}
TCP = ("--mca", "pml", "ob1", "--mca", "btl", "tcp,self", "--mca", "osc", "pt2pt")


def iterations(config):
    """How many of the job's budget must be done: ranks begin no round that is less than half paid for."""
    unbegun = (config["exchange"].get("local_steps", 1) - 1) // 2
    return config["train"]["epochs"] * EXAMPLES_OF_A_RANK // BATCH - unbegun


class Case(jobs.JobCase):
    BASE = BASE

    def has_learnt(self, summary, worst=None):
        self.assertGreater(summary["accuracy_mean_model"], 0.8, summary)
        if worst:
            self.assertGreater(summary["accuracy_rank_min"], worst, summary)

    def lost(self, summary):
        return [rank["rank"] for rank in summary["ranks_lost"]]


class KilledTest(Case):
    def test_the_others_do_its_share(self):
        configs = {"events": BASE, "dpsgd": DPSGD, "rounds": ROUNDS, "tcp": BASE}
        for (name, config), victim in zip(configs.items(), self.victims(len(configs))):
            nap = self.random.random()
            with self.subTest(name, victim=victim, after=nap):
                job = self.begin(name, config=self.write(f"{name}.yaml", config), launch=TCP if name == "tcp" else ())
                job.trains()
                time.sleep(nap)
                job.kill(victim)
                killed_s = job.seconds()
                summary = job.ends_well()
                self.assertEqual((summary["status"], summary["ranks"]), ("finished", 4), job)
                self.assertEqual(self.lost(summary), [victim], job)
                # Training began after the job, and a death is known soon, be it when the budget has just been spent.
                known_s = summary["ranks_lost"][0]["at_s"]
                self.assertGreater(known_s, 0, job)
                self.assertLess(known_s, killed_s + BASE["train"]["failure_timeout_s"] + jobs.SLACK_S, job)
                budget = iterations(config)
                self.assertGreaterEqual(summary["iterations"], budget, job)
                self.assertGreater(summary["rank_iterations_max"], budget, f"its share is done by others: {job}")
                self.has_learnt(summary, worst=0.6)
                self.assertEqual(len(summary["replica_hash"]), 3, job)
                rows = [row.split(",")[0] for row in job.path("ranks.csv").read_text().splitlines()[1:]]
                self.assertEqual(sorted(rows), [str(rank) for rank in range(4) if rank != victim])
                self.assertRegex(job.said(), rf"lost .*\b{victim}\b")
                if config["exchange"].get("local_steps"):
                    self.assertRegex(job.said(), rf"lost .*round \d+ of {LOCAL_STEPS} local steps")
                self.assertNotRegex(job.said(), "PMIX|disconnected|failed to TCP|btl-tcp", "mpirun has nothing to say")
                if name == "events":
                    self.says(0, "test examples", "evaluate", name)
                    self.says(0, "finished", "watch", name, "--once")

    def test_what_rank_0_alone_does_is_handed_on(self):
        began = time.monotonic()
        self.command("list", "exchange")
        seconds = 6 + 8 * (time.monotonic() - began)  # longer where programs take long to start
        job = self.begin("run", "train.epochs=100000", f"train.seconds={seconds}", "train.evaluate_every_epochs=50",
                         "train.checkpoint.every_s=0.5", progress="lines")
        lock = job.path("run.lock")

        def owner():
            found = re.search(r"^process (\d+)$", lock.read_text() if lock.exists() else "", re.MULTILINE)
            return found and int(found[1])

        job.trains()
        self.assertTrue(jobs.until(lambda: owner() == job.pids[0]), "rank 0 owns the folder")
        job.kill(0)
        before = len(re.findall(r"^iter ", job.said(), re.MULTILINE))
        busy = r"run is being written by the run hearsay-[0-9a-f]{16} \(process \d+ on "
        self.says(2, busy, "train", "base.yaml", "--output", "run", "--overwrite", "--progress", "off")
        self.assertTrue(jobs.until(lambda: owner() == job.pids[1]), "the next rank owns it")
        self.says(2, rf"\(process {job.pids[1]} on ", "train", "--resume", "run", "--progress", "off")
        summary = job.ends_well()
        self.assertGreater(len(re.findall(r"^iter ", job.said(), re.MULTILINE)), before + 2, "progress goes on")
        self.assertIn('"record":"evaluation"', job.path("metrics.rank0001.jsonl").read_text())
        self.assertEqual((summary["status"], self.lost(summary), summary["not_written"]), ("finished", [0], []))
        self.assertTrue(0 < summary["spectral_gap"] < 1, summary)
        self.assertFalse(lock.exists(), "the folder is free")
        self.assertEqual(list(job.path("checkpoints").glob("*/rank0000.*")), [], "the dead rank's old checkpoints go")
        self.assertEqual(list(job.path().rglob("snapshots.*")), [], "and its models")
        self.says(0, "finished|run", "compare", "run")

    def test_the_ring_falls_into_two_parts(self):
        job = self.begin("run").trains()
        job.kill(0)
        time.sleep(self.random.random())
        job.kill(2)
        summary = job.ends_well()
        self.assertEqual(sorted(self.lost(summary)), [0, 2], job)
        self.assertEqual(summary["status"], "finished")
        self.assertIn("in 2 parts", summary["message"])

    def test_nobody_survives(self):
        job = self.begin("run").trains()
        job.kill(0, 1, 2, 3)
        self.assertEqual(job.ended(), 137, job)
        self.assertEqual(job.summary()["status"], "killed")

    def test_nobody_survives_the_second_attempt_either(self):
        job = self.begin("run", launch=("--restarts", "1")).trains()
        first = job.pids
        job.kill(0, 1, 2, 3)

        def again():
            now = job.ranks()
            return len(now) == 4 and not set(now.values()) & set(first.values()) and now

        job.pids = jobs.until(again)
        job.kill(0, 1, 2, 3)
        self.assertEqual(job.ended(), 137, job)


class StoppedTest(Case):
    def test_a_slow_rank_is_not_lost(self):
        job = self.begin("run", "train.failure_timeout_s=10").trains()
        job.stands_still(1, 2)
        summary = job.ends_well()
        self.assertEqual((summary["status"], summary["ranks_lost"]), ("finished", []), job)

    def test_a_rank_that_stands_still_for_too_long_is_lost(self):
        job = self.begin("run", "train.epochs=120").trains()
        job.stands_still(1, 4)
        summary = job.ends_well()
        self.assertEqual((summary["status"], self.lost(summary)), ("finished", [1]), job)
        self.has_learnt(summary)  # its late writes harm nobody
        self.assertRegex(job.said(), r"rank 1 .*train\.failure_timeout_s", "it finds out")


class CheckpointsTest(Case):
    @staticmethod
    def complete(job):
        """(parts, dead, settled) of every checkpoint that has a part of every rank that lived."""
        for folder in sorted(job.path("checkpoints").glob("checkpoint-*")):
            try:
                parts = [json.loads(file.read_text()) for file in folder.glob("rank*.json")]
            except FileNotFoundError:  # it has just been replaced by a newer one
                continue
            lost = {rank for part in parts for rank in part["lost"]}
            if parts and {part["rank"] for part in parts} | lost == set(range(4)):
                yield len(parts), lost, {part["settled"] for part in parts}

    def test_a_job_goes_on_from_parts_that_living_ranks_wrote_alone(self):
        epochs = 100
        for due in ("every_s=0.4", "every_iterations=150"):
            with self.subTest(due):
                name = due.split("=")[0]
                job = self.begin(name, f"train.epochs={epochs}", f"train.checkpoint.{due}", launch=("--restarts", "1"),
                                 progress="lines").trains()
                job.kill(2)
                without_it = (3, {2}, {False})
                found = jobs.until(lambda j=job: without_it in self.complete(j))
                self.assertTrue(found, f"a checkpoint is complete without it: {job}")
                job.kill(0, 1, 3)
                summary = job.ends_well()
                self.assertRegex(job.said(), r"0 restarts are left")
                self.assertRegex(job.said(), r"3 ranks that .*from the mean .*at iteration [1-9]")
                self.assertEqual((summary["status"], summary["ranks_lost"]), ("finished", []), job)
                self.assertGreaterEqual(summary["iterations"], epochs * EXAMPLES_OF_A_RANK // BATCH)
                self.assertEqual(len(summary["replica_hash"]), 4)
                self.has_learnt(summary)


class NobodyDiesTest(Case):
    def test_a_job_ends_as_any_other(self):
        job = self.finish("run", "train.epochs=4")
        summary = job.summary()
        self.assertEqual((summary["status"], summary["ranks_lost"]), ("finished", []))
        self.assertEqual(len(summary["replica_hash"]), 4)
        self.assertNotRegex(job.said(), r"lost +rank")
        self.refused(2, "already holds a run", ranks=3, folder="run")
        self.assertEqual(self.finish("one", "train.epochs=1", ranks=1).summary()["status"], "finished")

    def test_divergence_is_an_error(self):
        self.refused(5, "diverged", "optimizer.learning_rate=1e30", ranks=3)  # mpirun itself says 0

    def test_a_signal_ends_the_job(self):
        job = self.begin("run").trains()
        job.process.send_signal(signal.SIGTERM)
        self.assertEqual(job.ended(), 143, job)
        self.assertEqual(job.summary()["status"], "stopped")

    def test_mpirun_must_allow_it(self):
        train = [jobs.hearsay, "train", "base.yaml", "--progress", "lines", "--set", "train.epochs=1"]
        job = jobs.Job(self, "run", [jobs.MPIRUN, "-n", 2, *train, "--output", "run"], 2)
        self.assertEqual(job.ends_well()["status"], "finished")
        self.assertIn("--enable-recovery", job.said())

    def test_what_it_needs(self):
        train = ("train", "base.yaml", "--output", "refused", "--set")
        self.says(2, "continue needs ranks that wait for nobody", *train, "exchange.schedule=lockstep")
        self.says(2, "continue needs budget: job", *train, "train.budget=rank")
        for seconds in ("0", "1e300"):
            self.says(2, r"failure_timeout_s: must be in \[0.5, ", *train, f"train.failure_timeout_s={seconds}")


if __name__ == "__main__":
    jobs.main(__name__)
