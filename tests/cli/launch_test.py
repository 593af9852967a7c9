#!/usr/bin/env python3
"""Jobs without MPI: by `hearsay launch`, by a shell loop, under torchrun's variables and under Slurm without PMI. They
end with MPI's bits; what cannot be a job is refused with a sentence; and a process that dies is noticed at once."""
import os
import signal
import subprocess
import time

import jobs

BASE = {
    "seed": 3,
    "model": {"name": "mlp", "hidden": [16]},
    "data": {"name": "synthetic_digits", "train_size": 640, "test_size": 64, "batch_size": 16},
    "optimizer": {"name": "sgd", "learning_rate": 0.05},
    "topology": {"graph": {"name": "ring"}},
    "exchange": {"name": "eventgrad"},
    "trigger": {"name": "adaptive", "horizon": 1.0, "maximum_silence": 10},
    "train": {"epochs": 2},
}
LONG = ("train.epochs=100000", "train.seconds=60", "train.evaluate_every_epochs=0")
ALONE = ("exchange.schedule=asynchronous", "exchange.mixing.name=arrival", "topology.weights.name=uniform",
         "train.on_failure=continue", "train.failure_timeout_s=60")
TORCHRUN = {"WORLD_SIZE": "3", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29512"}


class LaunchTest(jobs.JobCase):
    BASE, RANKS = BASE, 3

    def each(self, folder, *settings, variables):
        """A process for every mapping of variables, all at once; their exit codes and what they have said."""
        environment = {**os.environ, **jobs.ENVIRONMENT, "TMPDIR": str(self.folder)}
        words = list(map(str, self.train(folder, *settings)))
        processes = [
            subprocess.Popen(words, cwd=self.folder, env={**environment, **own}, text=True, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            for own in variables
        ]
        said = [process.communicate(timeout=jobs.LONGEST_S)[0] for process in processes]
        return [process.returncode for process in processes], said

    def test_all_that_starts_a_job_ends_with_the_same_bits(self):
        self.finish("mpi")
        self.finish("launch", mpi=False)
        starts = {
            "loop": [{"HEARSAY_RANK": str(r), "HEARSAY_RANKS": "3"} for r in range(3)],
            "torchrun": [{"RANK": str(r), "LOCAL_RANK": str(r), **TORCHRUN} for r in range(3)],
            "slurm": [{"SLURM_JOBID": "7", "SLURM_JOB_ID": "7", "SLURM_STEPID": "0", "SLURM_STEP_ID": "0",
                       "SLURM_NTASKS": "3", "SLURM_STEP_NUM_TASKS": "3", "SLURM_STEP_NUM_NODES": "1",
                       "SLURM_NODEID": "0", "SLURM_LOCALID": str(r), "SLURM_PROCID": str(r)} for r in range(3)],
        }
        for name, variables in starts.items():
            with self.subTest(name):
                codes, said = self.each(name, variables=variables)
                self.assertEqual(codes, [0, 0, 0], said)
        said = self.says(0, ".", "compare", "mpi", "launch", *starts)
        self.assertEqual(said.count("ended with the replicas of the first run, to the last bit"), 4, said)
        self.assertEqual(list(self.folder.glob("hearsay-*/*")), [], "something stays where they have met")

    def test_what_cannot_be_a_job_is_refused(self):
        anywhere = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "29512"}
        cases = [
            (2, r"HEARSAY_RANK=1, HEARSAY_RANKS=: .*needs both", {"HEARSAY_RANK": "1"}),
            (2, r"HEARSAY_RANK=2, HEARSAY_RANKS=2: .*below it", {"HEARSAY_RANK": "2", "HEARSAY_RANKS": "2"}),
            (2, r"HEARSAY_RANK=x, HEARSAY_RANKS=2: ", {"HEARSAY_RANK": "x", "HEARSAY_RANKS": "2"}),
            (2, r"RANK=2, WORLD_SIZE=2: .*from 0 .*`env -u WORLD_SIZE -u RANK PROGRAM …` is alone",
             {"RANK": "2", "WORLD_SIZE": "2", "MASTER_ADDR": "localhost"}),
            (2, r"RANK=one, WORLD_SIZE=2: ", {"RANK": "one", "WORLD_SIZE": "2"}),
            (2, r"RANK=0, WORLD_SIZE=99999999999: WORLD_SIZE is a number from 1 to 1000000,",
             {"RANK": "0", "WORLD_SIZE": "99999999999"}),
            (2, r"LOCAL_RANK=2, WORLD_SIZE=2: ", {"LOCAL_RANK": "2", "WORLD_SIZE": "2", "MASTER_ADDR": "localhost"}),
            (2, r"SLURM_PROCID=2, SLURM_STEP_NUM_TASKS=2: ",
             {"SLURM_PROCID": "2", "SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_NUM_NODES": "1"}),
            (2, r"torchrun .* may be on several hosts\. .*HEARSAY_RENDEZVOUS .*`mpirun -n 2 ", anywhere),
            (2, r"cannot be the name of a job", {"HEARSAY_RANK": "0", "HEARSAY_RANKS": "2", "HEARSAY_JOB": "a/b"}),
            (2, r"HEARSAY_START_TIMEOUT=soon: it is a number of seconds",
             {"HEARSAY_RANK": "0", "HEARSAY_RANKS": "2", "HEARSAY_START_TIMEOUT": "soon"}),
            (4, r"after 1 s not every rank has come to the folder .*: 1 of 2 are missing \(0\)",
             {"HEARSAY_RANK": "1", "HEARSAY_RANKS": "2", "HEARSAY_START_TIMEOUT": "1"}),
            (3, r"/proc/none", {"HEARSAY_RANK": "0", "HEARSAY_RANKS": "2", "HEARSAY_RENDEZVOUS": "/proc/none"}),
        ]
        for code, words, variables in cases:
            with self.subTest(variables):
                codes, said = self.each("refused", variables=[variables])
                self.assertEqual(codes, [code], said)
                self.assertRegex(said[0], words)
        own = [{"HEARSAY_RANK": str(r), "HEARSAY_RANKS": "2"} for r in range(2)]
        for words, variables in (
            ("has another token", [own[0], {**own[1], "HEARSAY_JOB_TOKEN": "0123456789abcdef0123"}]),
            ("two processes say that they are rank 1|is another process on", [own[1], own[1]]),
            ("belongs to a job of 3 ranks", [own[0], {"HEARSAY_RANK": "1", "HEARSAY_RANKS": "3"}]),
        ):
            with self.subTest(words):
                variables = [{**each, "HEARSAY_START_TIMEOUT": "10"} for each in variables]
                codes, said = self.each("refused", variables=variables)
                self.assertNotIn(0, codes, said)
                self.assertRegex("".join(said), words)
        self.assertFalse((self.folder / "refused").exists(), "something was written")

    def test_the_launcher_says_what_is_wrong(self):
        self.says(2, "launch -n 2: which program", "launch", "-n", 2)
        self.says(2, "'none-such' cannot be started: No such file", "launch", "-n", 2, "none-such")
        self.says(2, "at least 1 rank", "launch", "-n", 0, "true")
        self.says(7, "^$", "launch", "-n", 3, "sh", "-c", "exit $((7 * (HEARSAY_RANK == 1)))")
        self.says(128 + 9, "^$", "launch", "-n", 2, "sh", "-c", "kill -9 $$")
        for code, ends in ((0, "kill -9 $$"), (0, "exit 4"), (3, "exit 3")):  # a death fails nobody, a failure does
            one = f'if [ "$HEARSAY_RANK" = 1 ]; then {ends}; fi'
            self.says(code, "^$", "launch", "--recover", "-n", 3, "sh", "-c", one)
        said = self.says(2, "unknown key", "launch", "-n", 2, "hearsay", "train", "base.yaml", "--set", "train.x=1")
        self.assertEqual(said.count("unknown key"), 1, said)

    def test_a_death_ends_the_others_by_name(self):
        job = self.begin("run", *LONG, mpi=False).trains()
        victim = self.random.randrange(3)
        job.kill(victim)
        self.assertEqual(job.ended(), 128 + 9, job)
        self.assertRegex(job.said(), rf"rank {victim} on \S+ is gone: its connection has ended")

    def test_the_others_go_on_where_they_may(self):
        job = self.begin("run", *LONG, *ALONE, "train.seconds=8", mpi=False, launch=["--recover"]).trains()
        victim = self.random.randrange(3)
        time.sleep(0.5)
        job.kill(victim)
        summary = job.ends_well()
        self.assertEqual(summary["status"], "finished", job)
        self.assertEqual([lost["rank"] for lost in summary["ranks_lost"]], [victim], job)
        self.assertLess(job.seconds(), 40, f"a death is known at once, not after the time-out: {job}")

    def test_what_ends_the_job_ends_it_where_others_go_on(self):
        """The last rank's share has numbers of which no loss is finite."""
        rows = [f"{i % 7},{i % 5},{1 if i < 400 else 1e30}\n" for i in range(600)]
        (self.folder / "rows.csv").write_text("a,b,target\n" + "".join(rows), encoding="utf-8")
        (self.folder / "test.csv").write_text("a,b,target\n" + "".join(rows[:50]), encoding="utf-8")
        data = {"name": "csv", "path": "rows.csv", "test_path": "test.csv", "partition": {"name": "contiguous"}}
        self.write("rows.yaml", {**BASE, "data": {**data, "batch_size": 16}})
        job = self.begin("run", *LONG, *ALONE, config="rows.yaml", mpi=False, launch=["--recover"])
        self.assertEqual(job.ended(), 5, job)
        self.assertLess(job.seconds(), 40, f"the others do not train on: {job}")
        self.assertEqual(job.summary()["status"], "diverged", job)

    def test_a_death_while_all_save_what_they_have_hangs_nobody(self):
        """The victim is killed while it writes its last checkpoint: the others have met it before, and wait for it."""
        job = self.begin("run", *LONG, *ALONE, "model.hidden=[6000]", mpi=False, launch=["--recover"]).trains()
        victim = self.random.randrange(3)
        job.process.send_signal(signal.SIGTERM)
        writes = jobs.until(lambda: list(job.path().rglob(f"checkpoint-*/rank{victim:04}*.tmp")), every_s=0.001)
        job.kill(victim)
        self.assertTrue(writes, job)
        self.assertIn(job.ended(), (128 + 9, 128 + 15), job)
        self.assertEqual(job.summary()["status"], "stopped", job)
        self.assertIn("a rank has died meanwhile", job.summary()["message"], job)

    def test_signals_reach_all_and_nobody_outlives_the_launcher(self):
        job = self.begin("run", *LONG, "train.checkpoint.every_iterations=100000", mpi=False).trains()
        job.process.send_signal(signal.SIGTERM)
        self.assertEqual(job.ended(), 128 + 15, job)
        self.assertEqual(job.summary()["status"], "stopped")
        job = self.begin("killed", *LONG, mpi=False).trains()
        job.process.kill()
        job.process.wait()
        self.assertTrue(jobs.until(lambda: not job.ranks(), 30), f"the ranks stay: {job}")


if __name__ == "__main__":
    jobs.main(__name__)
