"""train.on_failure: continue in a loop of one's own: a rank dies wherever it is, and the others go on without it."""
import json
import os
import random
import subprocess
import sys
import textwrap
import time
import unittest

import numpy as np
from support import ENVIRONMENT, MPIRUN, JobCase

RANKS = 4
LOOP = """
    import json, os, signal, sys, time
    import numpy as np, hearsay
    victim, where, schedule = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    config = {"exchange": {"name": "eventgrad", "schedule": schedule}, "trigger": {"name": "always"},
              "train": {"on_failure": "continue", "failure_timeout_s": 1.5, "epochs": 3},
              "report": {"directory": "run", "every_iterations": 1}}
    x = np.zeros(50, np.float32)
    member = hearsay.join(config, {"x": x}, learning_rate=0.1)
    x, g = member.parameters["x"], member.gradients["x"]
    told = {"rank": member.rank}

    def is_at(place):
        if member.rank != victim or where != place: return
        if place == "stands still": print("stands still", flush=True); os.kill(os.getpid(), signal.SIGSTOP)
        else: os.kill(os.getpid(), signal.SIGKILL)

    def trained(steps):
        for k in range(steps):
            with member.step():
                g[:] = x - member.rank
                time.sleep(0.002)
                if k == 20: is_at("step")
                if k == 30: is_at("stands still")
            x[:] -= 0.1 * g

    scored = []
    def score():
        is_at(["own score", "score of the mean"][len(scored)] if len(scored) < 2 else "")
        scored.append(float(x[0]))
        return {"loss": float(np.mean((x - 1) ** 2))}, 1

    trained(60)
    told["evaluated"] = member.evaluate(score)
    trained(20)
    is_at("between")
    with member.averaged() as told["distance"]:
        told["mean"] = float(x[0])
        is_at("averaged")
    told["own"] = float(x[0])
    trained(20)
    state = member.state_dict()
    is_at("summary")
    told["summary"] = {**member.summary()}
    is_at("end")
    open(f"told.{member.rank}", "w").write(json.dumps(told))
"""
TOGETHER = """
    import json, os, signal, sys, threading, time
    import numpy as np, hearsay
    victim, after_s = int(sys.argv[1]), float(sys.argv[2])
    config = {"exchange": {"name": "dpsgd", "schedule": "asynchronous"}, "report": {"directory": "run"},
              "train": {"on_failure": "continue", "failure_timeout_s": 1.0}}
    member = hearsay.join(config, {"x": np.zeros(7, np.float32)})
    x = member.parameters["x"]
    if member.rank == victim:
        threading.Timer(after_s, os.kill, (os.getpid(), signal.SIGKILL)).start()
    seen = []
    for call in range(60):
        with member.step():
            x[:] += member.rank + call
        seen.append(member.evaluate(lambda: ({"loss": float(x[0])}, 1))["loss_mean_model"])
        with member.averaged():
            seen.append(float(x[0]))
    seen.append(member.summary()["replica_hash"])
    open(f"told.{member.rank}", "w").write(json.dumps(seen))
"""
# Rank 1 dies in the barrier in which all agree that they have done the first call, and rank 0 comes last: it finds that
# all are there, and goes on. The others have heard of the death by then, begin the call again, and meet nobody.
AGREED = """
    import json, os, signal, sys, time
    import numpy as np, hearsay
    config = {"exchange": {"name": "dpsgd", "schedule": "asynchronous"}, "report": {"directory": "run"},
              "train": {"on_failure": "continue", "failure_timeout_s": 8}}
    member = hearsay.join(config, {"x": np.zeros(7, np.float32)})
    x = member.parameters["x"]
    open(f"pid.{member.rank}", "w").write(str(os.getpid()))
    class Core:
        agreed = 0
        def __getattr__(self, name):
            return getattr(core, name)
        def agree(self):
            self.agreed += 1
            if self.agreed > 1: return core.agree()
            if member.rank == 0:
                time.sleep(0.5)
                os.kill(int(open("pid.1").read()), signal.SIGKILL)
                time.sleep(0.5)
            core.agree()
    core, member._core = member._core, Core()
    with member.step():
        x[:] += member.rank
    seen = []
    for call in range(3):
        with member.averaged():
            seen.append(float(x[0]))
        seen.append(member.evaluate(lambda: ({"loss": 1.0}, 1))["loss_mean_model"])
    member.summary()
    open(f"told.{member.rank}", "w").write(json.dumps(seen))
"""
LAUNCHERS = {
    "without MPI": [sys.executable, "-m", "hearsay", "launch", "--without-mpi", "--recover", "-n", str(RANKS)],
    "MPI": [*MPIRUN, "--enable-recovery", "-n", str(RANKS), sys.executable],
}


class DeathsTest(JobCase):
    def survivors_of(self, launcher, victim, where, schedule="asynchronous"):
        """What they have told."""
        (self.folder / "program.py").write_text(textwrap.dedent(LOOP), encoding="utf-8")
        began = time.monotonic()
        job = self.command(*LAUNCHERS[launcher], "program.py", victim, where, schedule)
        self.assertLess(time.monotonic() - began, 60, job)
        told = [json.loads(file.read_text()) for file in sorted(self.folder.glob("told.*"))]
        self.assertEqual(sorted(one["rank"] for one in told), [r for r in range(RANKS) if r != victim], job)
        self.assertNotIn("Traceback", job.err, job)
        return job, told

    def goes_on(self, launcher, victim, where):
        job, told = self.survivors_of(launcher, victim, where)
        summary = self.summary()
        self.assertEqual(summary["status"], "finished", job)
        self.assertEqual([lost["rank"] for lost in summary["ranks_lost"]], [victim], job)
        self.assertEqual(len(summary["replica_hash"]), RANKS - 1, job)
        rows = [row.split(",")[0] for row in (self.folder / "run/ranks.csv").read_text().splitlines()[1:]]
        self.assertEqual(sorted(rows), [str(rank) for rank in range(RANKS) if rank != victim], job)
        records = "".join(file.read_text() for file in (self.folder / "run").glob("metrics.rank*.jsonl"))
        self.assertLessEqual(records.count('"record":"evaluation"'), 1, "an evaluation is recorded once")
        for one in told:
            for key, same in (("mean", told[0]["mean"]), ("evaluated", told[0]["evaluated"])):
                self.assertEqual(one[key], same, job)
            self.assertEqual(one["summary"]["replica_hash"], summary["replica_hash"], job)
        # The average is that of the living: of those who were in the call to its end.
        if where != "averaged":
            own = [one["own"] for one in told]
            if where in ("summary", "end"):
                return
            self.assertAlmostEqual(told[0]["mean"], float(np.mean(own)), 5, job)
            distance = np.sqrt(np.mean([50 * (x - told[0]["mean"]) ** 2 for x in own]))
            self.assertAlmostEqual(told[0]["distance"], distance, 4, job)

    def test_wherever_a_rank_dies_the_others_go_on(self):
        for number, where in enumerate(("step", "own score", "score of the mean", "between", "averaged", "summary")):
            for victim in (0, 2):
                launcher = list(LAUNCHERS)[(number + victim // 2) % 2]
                with self.subTest(where, victim=victim, launcher=launcher):
                    self.goes_on(launcher, victim, where)
                self.setUp()  # a folder of its own

    def test_whenever_a_rank_dies_all_others_see_the_same(self):
        """Every call is of the same ranks on all of them, the one within which a rank dies, too."""
        seed = int(os.environ.get("HEARSAY_TEST_SEED") or random.SystemRandom().randrange(10**6))
        draws = random.Random(seed)
        (self.folder / "program.py").write_text(textwrap.dedent(TOGETHER), encoding="utf-8")
        for number in range(6):
            victim, after_s = draws.randrange(RANKS), draws.uniform(0.0, 0.7)
            with self.subTest(seed=seed, victim=victim, after_s=after_s):
                folder = self.folder / str(number)
                folder.mkdir()
                job = self.command(*LAUNCHERS["without MPI"], "../program.py", victim, after_s, cwd=folder)
                told = {int(file.suffix[1:]): json.loads(file.read_text()) for file in folder.glob("told.*")}
                self.assertLessEqual({r for r in range(RANKS) if r != victim}, set(told), job)
                for seen in told.values():
                    self.assertEqual(seen, told[(victim + 1) % RANKS], job)

    def test_who_hears_of_a_death_when_the_others_have_agreed_keeps_what_they_have(self):
        (self.folder / "program.py").write_text(textwrap.dedent(AGREED), encoding="utf-8")
        job = self.command(*LAUNCHERS["without MPI"], "program.py")
        told = {file.suffix[1:]: json.loads(file.read_text()) for file in self.folder.glob("told.*")}
        self.assertEqual(set(told), {"0", "2", "3"}, job)
        self.assertEqual(told["2"], told["0"], job)
        self.assertEqual(told["3"], told["0"], job)

    def test_a_rank_that_stands_still_for_too_long_ends_alone(self):
        (self.folder / "program.py").write_text(textwrap.dedent(LOOP), encoding="utf-8")
        ends = '\ntry: trained(60)\nfinally: member.summary()\n'  # which says so again, and harms nobody
        (self.folder / "program.py").write_text(
            (self.folder / "program.py").read_text().replace("\ntrained(60)\n", ends), encoding="utf-8")
        words = [*LAUNCHERS["without MPI"], "program.py", "1", "stands still", "asynchronous"]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        with subprocess.Popen(words, cwd=self.folder, env={**os.environ, **ENVIRONMENT}, **pipes) as job:
            files = [self.folder / f"told.{rank}" for rank in (0, 2, 3)]
            end = time.monotonic() + 60
            while not all(file.exists() for file in files) and time.monotonic() < end:
                time.sleep(0.1)
            subprocess.run(["pkill", "-CONT", "-P", str(job.pid)], check=False)
            out, err = job.communicate(timeout=60)
        self.assertTrue(all(file.exists() for file in files), err)
        self.assertRegex(err, r"hearsay: \[rank 1\] .*program.py:\d+: .*(without|stopped|stood)")
        self.assertFalse((self.folder / "told.1").exists(), err)
        self.assertEqual([lost["rank"] for lost in self.summary()["ranks_lost"]], [1], err)

    def ended(self, program, code, sentence, *arguments):
        """Without MPI, by a launcher that ends nobody: every rank ends by itself, and soon."""
        (self.folder / "program.py").write_text(textwrap.dedent(program), encoding="utf-8")
        began = time.monotonic()
        job = self.command(*LAUNCHERS["without MPI"], "program.py", *arguments)
        self.assertLess(time.monotonic() - began, 40, job)
        self.assertEqual(job.code, code, job)
        self.assertRegex(job.err, sentence)

    def test_without_the_word_a_death_ends_the_job(self):
        for schedule in ("asynchronous", "lockstep"):
            program = LOOP.replace('"on_failure": "continue", "failure_timeout_s": 1.5, ', "")
            with self.subTest(schedule):
                self.ended(program, 137, "rank 1 .*is gone|rank 1 has ended the job", 1, "step", schedule)
            self.setUp()

    def test_a_death_in_join_ends_the_job(self):
        dies = 'if os.environ["HEARSAY_RANK"] == "2": hearsay._core.Member = lambda *_, **__: os.kill(os.getpid(), 9)'
        program = LOOP.replace("    x = np.zeros", f"    {dies}\n    x = np.zeros")
        self.ended(program, 137, "rank 2 .*is gone|died before", RANKS, "", "asynchronous")

    def test_a_death_in_join_ends_the_job_of_mpi_too(self):
        """Its launcher would leave the others waiting: before they know of each other, and when they do."""
        for where in ("_core.Job", "_core.Meetings", "_core.Member"):
            dies = f"hearsay.{where} = lambda *_, **__: os.kill(os.getpid(), 9)"
            dies = f'if os.environ["OMPI_COMM_WORLD_RANK"] == "2": {dies}'
            program = LOOP.replace("    x = np.zeros", f"    {dies}\n    x = np.zeros")
            (self.folder / "program.py").write_text(textwrap.dedent(program), encoding="utf-8")
            with self.subTest(where):
                began = time.monotonic()
                job = self.command(*LAUNCHERS["MPI"], "program.py", RANKS, "", "asynchronous")
                self.assertLess(time.monotonic() - began, 60, job)
                self.assertRegex(job.err, "hearsay: rank 2 has died before training began")
                self.assertFalse(list(self.folder.glob("told.*")), job)

    def test_who_leaves_a_call_by_an_exception_is_not_waited_for(self):
        """Its score fails, the loop catches that, and the program ends: in another call than the others are."""
        program = TOGETHER + """
    try: member.evaluate(lambda: ({"loss": 1.0} if member.rank != 2 else {}, 1))
    except TypeError: pass
    """
        self.ended(program, 4, "rank 2 is (at|in) (the program's end|member)", RANKS, "0")

    def test_a_value_that_is_no_number_is_told_by_all(self):
        for call in ("member.averaged().__enter__()", "member.end()", "member.summary()"):
            program = TOGETHER + f"""
    if member.rank == 1: x[0] = np.nan
    try: {call}
    except hearsay.errors.DivergenceError: print("told", flush=True); raise
    """
            with self.subTest(call):
                (self.folder / "program.py").write_text(textwrap.dedent(program), encoding="utf-8")
                job = self.command(*LAUNCHERS["without MPI"], "program.py", RANKS, "0")
                self.assertEqual(job.code, 5, job)
                self.assertRegex(job.err, "not finite|nan")
                self.assertNotIn("each of them finite", job.err)
            self.setUp()

    def test_lockstep_ranks_cannot_go_on(self):
        job = self.job(LOOP, RANKS, "", "lockstep", ranks=2)
        self.assertEqual(job.code, 2, job)
        self.assertRegex(job.err, "on_failure: continue needs ranks that wait for nobody")

    def test_a_death_at_the_very_end_harms_nobody(self):
        job, told = self.survivors_of("without MPI", 1, "end")
        self.assertEqual(self.summary()["status"], "finished", job)
        self.assertEqual(len(told), RANKS - 1)

    def test_nobody_dies(self):
        for launcher in LAUNCHERS:
            with self.subTest(launcher):
                job, told = self.survivors_of(launcher, RANKS, "")
                self.assertEqual((job.code, len(told)), (0, RANKS), job)
                self.assertEqual((self.summary()["status"], self.summary()["ranks_lost"]), ("finished", []), job)
            self.setUp()


if __name__ == "__main__":
    unittest.main()
