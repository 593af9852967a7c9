#!/usr/bin/env python3
"""A rank is killed while the job starts: before MPI is there, in MPI_Init, before the first iteration. Whether the
launcher leaves the others alone (train.on_failure: continue) or not: the job ends soon and says which rank it was, or,
where training had begun, goes on without it. Nothing hangs."""
import subprocess
import time

import jobs

BASE = {
    "seed": 3,
    "model": {"name": "mlp", "hidden": [64]},
    "data": {"name": "synthetic_digits", "train_size": 6000, "test_size": 64, "batch_size": 16},
    "optimizer": {"name": "sgd", "learning_rate": 0.05},
    "topology": {"graph": {"name": "ring"}, "weights": {"name": "uniform"}},
    "exchange": {"name": "eventgrad", "schedule": "asynchronous", "mixing": {"name": "arrival"}},
    "trigger": {"name": "adaptive", "horizon": 1.0, "maximum_silence": 10},
    # All instants are within it.
    "train": {"epochs": 100000, "seconds": 3.5, "evaluate_every_epochs": 0, "failure_timeout_s": 3,
              "on_failure": "continue"},
}
INSTANTS_S = ((0.0, 0.0), (0.0, 0.2), (0.2, 0.6), (0.6, 2.0))  # one is drawn within each, after the rank is there
MPI_GAVE_UP = "launch: MPI could not start"
# Open MPI's launcher of a rank that died before it had told the launcher of itself; our ranks were ended before they
# could look (a third of those killed as soon as they are there).
NAMELESS = r"1 process returned\s+a non-zero exit code"
WHOLE = ("train.epochs=1",)


class StartTest(jobs.JobCase):
    BASE = BASE

    def killed(self, mode, after_s, victim, folder):
        """The exit code of a job whose rank `victim` is killed so long after it was there, and the job."""
        job = self.begin(folder, f"train.on_failure={mode}")
        job.pids = jobs.until(lambda: job.ranks() if victim in job.ranks() else job.process.poll() is not None,
                              every_s=0.005)
        self.assertIsInstance(job.pids, dict, f"rank {victim} begins: {job}")
        time.sleep(after_s)
        job.kill(victim)
        return job.ended(), job

    def test_it_ends_or_goes_on_without_the_rank(self):
        codes = []
        for mode in ("continue", "abort"):
            for number, instants in enumerate(INSTANTS_S):
                after_s, victim = self.random.uniform(*instants), self.random.randrange(4)
                with self.subTest(mode, victim=victim, after_s=after_s):
                    code, job = self.killed(mode, after_s, victim, f"{mode}-{number}")
                    codes.append((mode, code))
                    expected = {
                        ("continue", 0): rf"lost .*\b{victim}\b",
                        # Or MPI itself, in another rank, cannot find whom it is to reach, and ends the job before that
                        # rank is missed.
                        ("continue", 4): rf"rank {victim} has died before training began|{MPI_GAVE_UP}",
                        ("abort", 4): rf"rank {victim} ",
                        ("abort", 137): rf"rank {victim} |{NAMELESS}",
                    }
                    self.assertIn((mode, code), expected, job)
                    self.assertRegex(job.said(), expected[mode, code])
        print(f"exit codes: {codes}")
        # Neither instants nor machines are so slow that nobody dies at the start.
        self.assertIn(("continue", 4), codes)

    def test_nobody_dies(self):
        job = self.finish("run", *WHOLE)
        self.assertEqual(job.summary()["status"], "finished")
        self.assertNotIn("died", job.said())
        job = self.refused(2, "already holds a run", *WHOLE, folder="run")
        self.assertNotIn("died", job.said())

    def test_mpi_itself_cannot_start(self):
        """Certain where two processes have nothing to reach each other by."""
        job = self.refused(4, MPI_GAVE_UP, *WHOLE, launch=("--mca", "btl", "self"))
        self.assertNotIn("terminate", job.said())

    def test_processes_of_others_come_and_go(self):
        """Each rank looks at what runs on its host, and other processes end in the middle of that."""
        passing = [subprocess.Popen(["bash", "-c", "while :; do /bin/true; done"]) for _ in range(4)]
        try:
            for number in range(3):
                job = self.finish(f"run-{number}", *WHOLE)
                self.assertNotRegex(job.said(), "died|terminate")
        finally:
            for process in passing:
                process.kill()
                process.wait()


if __name__ == "__main__":
    jobs.main(__name__)
