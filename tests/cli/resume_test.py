#!/usr/bin/env python3
"""Runs that are killed, stopped and resumed, and what they leave; the laws over all algorithms are in
tests/runtime/state/resume_test.cpp."""
import json
import os
import re
import resource
import shutil
import signal

import jobs

BASE = {
    "seed": 3,
    "model": {"name": "mlp", "hidden": [128]},
    "data": {"name": "synthetic_digits", "train_size": 1536, "test_size": 64, "batch_size": 8},
    "train": {"epochs": 12, "evaluate_every_epochs": 3},
    "report": {"every_iterations": 7},
}
SETTINGS = {
    "delayed differences, adam": {
        "exchange": {"name": "eventgrad", "mixing": {"name": "difference", "gamma": 0.4}, "delay": 1},
        "optimizer": {"name": "adam", "learning_rate": 0.002},
    },
    # Dropout draws, and its draws go on, too.
    "lkgs, momentum, dropout": {
        "exchange": {"name": "lkgs"},
        "optimizer": {"name": "sgd", "momentum": 0.9, "learning_rate": 0.02, "schedule": {"name": "cosine"}},
        "model": {"name": "mnist_cnn"},
        "train": {"epochs": 3, "evaluate_every_epochs": 1},
    },
    "drift correction, amsgrad": {
        "exchange": {"name": "dpsgd", "correction": {"name": "drift"}},
        "optimizer": {"name": "adamw", "amsgrad": True, "learning_rate": 0.002},
    },
    "gtopk, adagrad": {"exchange": {"name": "gtopk"}, "optimizer": {"name": "adagrad"}},
}
SLOW = {"model": {"name": "mlp", "hidden": [1024, 512]}}  # enough that it has not ended when a signal comes
KEPT = ("record", "rank", "iteration", "epoch", "loss", "learning_rate", "events", "loss_mean_model",
        "accuracy_mean_model")


class Case(jobs.JobCase):
    BASE, RANKS = BASE, 3

    def records(self, job):
        """What the metrics say, but for times, and for what another thread had sent by then."""
        for file in sorted(job.path().glob("metrics.rank*.jsonl")):
            for line in file.read_text(encoding="utf-8").splitlines():
                record = json.loads(line)
                yield {key: record.get(key) for key in KEPT}

    def same_end(self, whole, resumed):
        a, b = whole.summary(), resumed.summary()
        for key in ("replica_hash", "events", "messages", "payload_bytes"):
            self.assertEqual(a[key], b[key], f"{key}: {resumed}")
        self.assertEqual(list(self.records(whole)), list(self.records(resumed)), "no gap and no repetition")

    def writes_checkpoint(self, job):
        """Waits for the first one of all ranks."""
        def complete():
            folders = job.path("checkpoints").glob("*")
            return any(len(list(folder.glob("rank*.json"))) == self.RANKS for folder in folders)

        jobs.until(lambda: complete() or job.process.poll() is not None)
        job.pids = job.ranks()
        self.assertEqual(len(job.pids), self.RANKS, f"it trains: {job}")
        return job

    def resumed(self, folder, *settings, ranks=None):
        options = [word for setting in settings for word in self.option(setting)]
        command = [jobs.MPIRUN, "-n", ranks or self.RANKS, jobs.hearsay, "train", "--resume", folder, *options]
        job = jobs.Job(self, folder, [*command, "--progress", "lines"], ranks or self.RANKS)
        self.assertEqual(job.ended(), 0, job)
        return job

    def newest(self, job):
        return max(job.path("checkpoints").iterdir())


class ResumeTest(Case):
    def test_a_killed_run_ends_with_the_bits_of_one_that_was_not(self):
        for number, (name, sections) in enumerate(SETTINGS.items()):
            with self.subTest(name):
                config = self.write(f"{number}.yaml", BASE | sections)
                whole = self.finish(f"whole-{number}", config=config)
                # A checkpoint costs time here: the run is still going on when it is killed.
                job = self.begin(f"run-{number}", "train.checkpoint.every_iterations=40", config=config)
                self.writes_checkpoint(job).kill(self.random.randrange(self.RANKS))
                self.assertNotEqual(job.ended(), 0, job)
                job = self.resumed(f"run-{number}")
                self.assertRegex(job.said(), r"goes on from checkpoint \d+, iteration \d+")
                self.same_end(whole, job)
        self.on_more_ranks(f"run-{number}")
        self.from_a_damaged_checkpoint("run-1")

    def on_more_ranks(self, folder):
        job = self.resumed(folder, "train.epochs=14", ranks=4)
        self.assertRegex(job.said(), "is of 3 ranks, and there are 4")
        self.assertRegex(job.said(), "residuals")

    def from_a_damaged_checkpoint(self, folder):
        train = ("train", "--progress", "off")
        self.copied(folder, "damaged")
        newest = max(self.folder.joinpath("damaged", "checkpoints").iterdir())
        with open(newest / "rank0001.state", "r+b") as file:
            file.seek(3000)
            file.write(b"x")
        number = int(newest.name.split("-")[1])
        job = self.resumed("damaged")
        self.assertRegex(job.said(), rf"goes on from checkpoint {number - 1}, ", "the damaged one is passed over")
        shutil.rmtree(job.path("checkpoints"))
        self.says(3, "there is no checkpoint.*--overwrite", *train, "--resume", "damaged")
        outside = self.folder / "outside"
        outside.mkdir()
        job.path("checkpoints").symlink_to(outside)
        link = "damaged/checkpoints: is a link"
        self.says(2, link, *train, "base.yaml", "--output", "damaged", "--overwrite")
        self.says(2, link, *train, "--resume", "damaged")
        self.assertEqual(list(outside.iterdir()), [], "no link is followed")

    def copied(self, folder, copy):
        shutil.copytree(self.folder / folder, self.folder / copy)

    def test_a_stopped_run_goes_on_and_leaves_a_model(self):
        config = self.write("slow.yaml", BASE | SLOW)
        whole = self.finish("whole", config=config)
        job = self.begin("run", "train.checkpoint.every_s=0.5", config=config)
        self.writes_checkpoint(job).process.send_signal(signal.SIGTERM)
        job.ended()
        self.assertEqual(job.summary()["status"], "stopped", job)
        iteration = json.loads((self.newest(job) / "rank0000.json").read_text())["iteration"]
        job = self.resumed("run")
        self.assertRegex(job.said(), rf"iteration {iteration}\b", "nothing is done twice")
        self.same_end(whole, job)
        self.assertEqual(job.summary()["resumed_at_iterations"], [iteration])
        self.assertLessEqual(len(list(job.path("checkpoints").glob("*/rank0000.json"))), 2, "old checkpoints go")
        self.model_of(whole, config)
        self.refused_where_a_run_is(job)

    def model_of(self, whole, config):
        accuracy = whole.summary()["accuracy_mean_model"]
        code, said = self.command("evaluate", "whole", "--json")
        self.assertEqual(code, 0, said)
        self.assertAlmostEqual(json.loads(said)["metrics"]["accuracy"], accuracy, places=9)
        train = ("train", "base.yaml", "--progress", "off", "--set", "train.iterations=1", "--set")
        self.says(0, "finished", "train", config, *train[2:], "optimizer.learning_rate=1e-30", "--set",
                  "train.initial_model=whole/model.pt", "--output", "from-model")
        moved = json.loads((self.folder / "from-model/summary.json").read_text())
        self.assertEqual(moved["accuracy_mean_model"], accuracy, "it starts where the other ended")
        (self.folder / "file").touch()
        self.says(3, "file: is damaged, or no model", *train, "train.initial_model=file", "--output", "from-nothing")
        self.says(3, "other parameters|not a model", *train, "train.initial_model=whole/model.pt", "--output", "other")
        try:
            import torch  # pylint: disable=import-outside-toplevel
        except ImportError:
            return
        one = torch.load(whole.path("state_dict.pt"))
        other = torch.jit.load(str(whole.path("model.pt"))).state_dict()
        self.assertTrue(list(one) and all(torch.equal(one[name], other[name]) for name in other))

    def refused_where_a_run_is(self, job):
        self.says(2, "seed=4: a run that is resumed keeps its configuration", "train", "--resume", "whole", "--set",
                  "seed=4")
        self.says(2, "go on with it with --resume", "train", "base.yaml", "--output", "whole")
        self.says(0, "finished", "train", "base.yaml", "--progress", "off", "--overwrite", "--set", "train.epochs=1",
                  "--output", "run")
        self.assertFalse(job.path("checkpoints").exists(), "an overwritten run takes its checkpoints along")

    def test_asynchronous_on_other_numbers_of_ranks_and_longer(self):
        exchange = {"name": "eventgrad", "schedule": "asynchronous", "mixing": {"name": "arrival"}}
        config = self.write("asynchronous.yaml", BASE | {"exchange": exchange})
        job = self.begin("run", "train.checkpoint.every_iterations=60", config=config)
        self.writes_checkpoint(job).process.send_signal(signal.SIGTERM)
        job.ended()
        job.path("checkpoints/checkpoint-900000000").mkdir()  # somebody's, empty
        job = self.resumed("run")
        self.assertRegex(job.said(), "goes on from checkpoint")
        self.assertEqual(job.summary()["status"], "finished")
        job = self.resumed("run", "train.epochs=14", ranks=2)
        self.assertRegex(job.said(), "is of 3 ranks, and there are 2: all ranks start from the mean")


class RefusedTest(Case):
    def test_what_does_not_fit(self):
        (self.folder / "empty").mkdir()
        self.says(2, "empty: there is no config.yaml", "train", "--resume", "empty")
        said = self.says(2, "CONFIG", "train", "base.yaml", "--resume", "empty")
        self.assertIn("--resume", said)
        self.says(2, "no CONFIG", "train")
        self.says(2, "either by time or by iterations", "train", "base.yaml", "--set",
                  "train.checkpoint={every_s: 1, every_iterations: 5}")

    def test_no_room_for_checkpoints(self):
        (self.folder / "file").touch()
        said = self.says(3, "could not be written: .*training goes on", "train", "base.yaml", "--progress", "off",
                         "--set", "train.epochs=1", "--output", "nowhere", "--set",
                         "train.checkpoint={every_iterations: 50, directory: file}")
        self.assertRegex(said, "not all of its files")
        self.assertRegex(said, "finished")

    def test_a_disk_that_is_full_from_now_on(self):
        """No file grows beyond 100 kB."""
        config = self.write("full.yaml", BASE | {
            "train": {"epochs": 12, "evaluate_every_epochs": 3, "checkpoint": {"every_iterations": 10}},
            "report": {"every_iterations": 50, "save_model": False},
        })
        without_signal = ["bash", "-c", "trap '' XFSZ && exec \"$@\"", "bash"]
        train = [jobs.hearsay, "train", config, "--progress", "off", "--output", "run"]
        job = jobs.Job(self, "run", [*without_signal, *train], 1)
        jobs.until(lambda: job.path("metrics.rank0000.jsonl").exists())
        resource.prlimit(job.process.pid, resource.RLIMIT_FSIZE, (100000, 100000))
        self.assertEqual(job.ended(), 3, job)
        self.assertEqual(len(re.findall("warning: a checkpoint could not be written", job.said())), 1, job)
        (told,) = job.summary()["not_written"]
        self.assertRegex(told, "a checkpoint: .*File too large.*, and [0-9]+ more like it")
        empty = [folder for folder, folders, files in os.walk(job.path()) if not folders and not files]
        self.assertEqual(empty, [], "no empty folder stays")


if __name__ == "__main__":
    jobs.main(__name__)
