"""hearsay.join(job=…): processes come to a loop that trains already, in a dead rank's place or a vacant one, and are in
all that the others do together from then on; whoever does not belong there is refused, and harms nobody."""
import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
from support import ENVIRONMENT, LONGEST_S, JobCase, needs_torch, unittest

# The loop goes on until there is a file "enough", which all ranks see after the same step. Then gradients are 0, and
# the mean of all models stays what it is.
LOOP = """
    import json, os, sys, time
    import numpy as np, hearsay
    config = {"exchange": {"name": "eventgrad", "schedule": "asynchronous", "mixing": {"name": "arrival"}},
              "trigger": {"name": "always"}, "topology": {"graph": {"name": "complete"}},
              "train": {"on_failure": "continue", "failure_timeout_s": 5, "joins": 4, "vacant": VACANT},
              "report": {"directory": "run", "every_iterations": 1}}
    member = hearsay.join(config, {"x": np.zeros(50, np.float32)}, learning_rate=0.1)
    x, g = member.parameters["x"], member.gradients["x"]
    process = hearsay.rank()
    told = {"rank": member.rank, "began": member.steps, "x": float(x[0]), "seen": {},
            "share": list(member.share(list(range(6))))}
    open(f"pid.{process}", "w").write(str(os.getpid()))

    def trained(trains):
        while True:
            with member.step():
                g[:] = (x - member.rank - 1) * trains
                time.sleep(0.002)
            x[:] -= 0.1 * g
            if member.steps % 20 == 0: return

    def settled_mean():
        told["summary"] = {**member.summary()}
        with member.averaged():
            return float(np.float64(x).mean())

    enough = False
    while not enough:
        trained(True)
        seen = member.evaluate(lambda: ({"loss": float(x[0]), "enough": float(os.path.exists("enough"))}, 1))
        with member.averaged() as distance:
            told["seen"][member.steps] = [seen["loss_mean_model"], seen["loss_rank_worst"], distance, float(x[0])]
        told["counted"] = len(told["seen"])
        open(f"at.{process}", "w").write(str(member.steps))
        enough = seen["enough_rank_mean"] > 0
    told["means"] = [settled_mean()]
    for _ in range(3): trained(False)
    told["means"].append(settled_mean())
    told["last"] = member.steps
    open(f"told.{process}", "w").write(json.dumps(told))
"""
# A model whose ranks begin with what nobody else has.
TORCH = """
    import json, os, time
    import torch, hearsay
    torch.manual_seed(os.getpid())
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1))
    for parameter in model[0].parameters(): parameter.requires_grad_(False)
    config = {"exchange": {"name": "dpsgd", "schedule": "asynchronous"}, "report": {"directory": "run"},
              "train": {"on_failure": "continue", "failure_timeout_s": 5, "joins": 2, "vacant": VACANT}}
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad])
    member = hearsay.join(config, model, optimizer=optimizer)
    process = hearsay.rank()
    told = {"began": model[2].weight.tolist(), "batches": int(model[1].num_batches_tracked)}
    data = torch.utils.data.DataLoader(list(torch.rand(60, 4)), batch_size=2, shuffle=True)
    open(f"pid.{process}", "w").write(str(os.getpid()))
    enough = False
    while not enough:
        for x in member.share(data):
            with member.step(optimizer) as step:
                step.loss = model(x).square().mean()
                step.loss.backward()
            if member.steps % 10 == 0:
                said = member.evaluate(lambda: ({"enough": float(os.path.exists("enough"))}, 1))
                open(f"at.{process}", "w").write(str(member.steps))
                enough = said["enough_rank_mean"] > 0
                if enough: break
    told["frozen"] = model[0].weight.tolist()
    member.summary()
    open(f"told.{process}", "w").write(json.dumps(told))
"""
HEARSAY = [sys.executable, "-m", "hearsay"]


class JoinsTest(JobCase):
    def setUp(self):
        super().setUp()
        self.processes_begun = []
        self.addCleanup(self.end_all)
        self.environment = {**os.environ, "OMP_NUM_THREADS": "1", **ENVIRONMENT, "TMPDIR": str(self.folder)}

    def end_all(self):
        for process in self.processes_begun:
            process.kill()
            process.communicate()
        for file in self.folder.glob("pid.*"):
            try:
                os.kill(int(file.read_text()), signal.SIGKILL)
            except (ProcessLookupError, ValueError):
                pass

    def write(self, program, vacant=0):
        text = textwrap.dedent(program).replace("VACANT", str(vacant))
        (self.folder / "program.py").write_text(text, encoding="utf-8")

    def start(self, *words, **variables):
        process = subprocess.Popen(
            [*HEARSAY, "launch", *map(str, words)], cwd=self.folder, env={**self.environment, **variables}, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.processes_begun.append(process)
        return process

    def begin(self, program, ranks, vacant=0):
        """A job that trains."""
        self.write(program, vacant)
        job = self.start("--without-mpi", "--recover", "--job", "night", "-n", ranks, "program.py")
        self.trains(*range(ranks), job=job)
        return job

    def joins(self, program="program.py", job="night", **variables):
        return self.start("--join", job, program, **variables)

    def until(self, ready, what, job=None):
        end = time.monotonic() + LONGEST_S
        while not ready():
            ended = job is not None and job.poll() is not None
            self.assertFalse(ended, f"{what}: {job.communicate()[0] if ended else ''}")
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.02)

    def steps(self, process):
        """At which the process was last seen."""
        file = self.folder / f"at.{process}"
        return int((file.read_text() if file.exists() else "") or 0)

    def trains(self, *processes, job=None):
        """They all have evaluated once more."""
        before = {process: self.steps(process) for process in processes}
        self.until(lambda: all(self.steps(p) > before[p] for p in processes), f"{processes} train", job)

    def kill(self, process):
        os.kill(int((self.folder / f"pid.{process}").read_text()), signal.SIGKILL)

    def ended(self, process):
        said = process.communicate(timeout=LONGEST_S)[0]
        return process.returncode, said

    def finish(self, *processes):
        """All of them end well. What those have told that are processes 0, 1 …, by their numbers."""
        (self.folder / "enough").write_text("")
        for process in processes:
            code, said = self.ended(process)
            self.assertEqual(code, 0, said)
            self.assertNotIn("Traceback", said)
        return {int(file.suffix[1:]): json.loads(file.read_text()) for file in self.folder.glob("told.*")}

    def agree(self, told):
        """Whoever was in a call has seen the same in it, and the mean of all models has stayed."""
        summary = self.summary()
        for one in told.values():
            for other in told.values():
                both = one["seen"].keys() & other["seen"].keys()
                self.assertTrue(both)
                for step in both:
                    self.assertEqual(one["seen"][step], other["seen"][step], step)
                self.assertEqual((one["last"], one["means"]), (other["last"], other["means"]))
            # Each is in all calls that follow its first step.
            expected = range(one["began"] // 20 * 20 + 20, int(max(one["seen"], key=int)) + 1, 20)
            self.assertEqual([int(step) for step in one["seen"]], list(expected))
            self.assertAlmostEqual(one["means"][0], one["means"][1], 5)
            self.assertEqual(one["summary"]["replica_hash"], summary["replica_hash"])
        self.assertEqual((summary["status"], len(summary["replica_hash"])), ("finished", len(told)))
        return summary

    def test_a_newcomer_takes_a_dead_ranks_place(self):
        job = self.begin(LOOP, ranks=3)
        self.kill(1)
        self.trains(0, 2)
        late = self.joins()
        self.trains(0, 2, 3)
        self.trains(0, 2, 3)
        told = self.finish(job, late)
        summary = self.agree(told)
        self.assertEqual(set(told), {0, 2, 3})
        self.assertEqual((told[3]["rank"], told[3]["share"]), (1, [1, 4]))
        self.assertGreater(told[3]["began"], 20)
        self.assertGreater(told[3]["x"], 0.5, "it begins with a neighbour's model")
        self.assertEqual([lost["rank"] for lost in summary["ranks_lost"]], [1])
        joined = summary["ranks_joined"]
        self.assertEqual([(one["rank"], one["process"]) for one in joined], [(1, 3)])
        self.assertGreaterEqual(told[3]["last"] - told[3]["began"], joined[0]["iterations"])
        self.assertGreater(joined[0]["iterations"], 20)
        self.assertGreater(joined[0]["at_s"], summary["ranks_lost"][0]["at_s"])
        rows = [row.split(",")[0] for row in (self.folder / "run/ranks.csv").read_text().splitlines()[1:]]
        self.assertEqual(sorted(rows), ["0", "1", "2"])
        times = [one["time_s"] for one in map(json.loads, self.records(3)) if one.get("record") == "iteration"]
        self.assertGreaterEqual(times[0], joined[0]["at_s"] - 1.0, "its records go by the job's clock")
        self.assertEqual(list(self.folder.glob("hearsay-*/night/*")), [], "something stays where they have met")
        compared = self.command(*HEARSAY, "compare", "run")
        self.assertIn("in the places of dead ranks came process 3 (rank 1)", compared.out)

    def records(self, process):
        return (self.folder / f"run/metrics.rank{process:04}.jsonl").read_text().splitlines()

    def test_whoever_dies_is_replaced_the_newcomer_and_the_first_rank_too(self):
        job = self.begin(LOOP, ranks=3)
        self.kill(1)
        first = self.joins()
        self.trains(0, 2, 3, job=job)
        self.kill(0)
        second = self.joins()
        self.trains(2, 3, 4, job=job)
        self.kill(3)
        self.trains(2, 4, job=job)
        third = self.joins()
        self.trains(2, 4, 5, job=job)
        told = self.finish(job, second, third)
        self.assertEqual(self.ended(first)[0], -signal.SIGKILL)
        summary = self.agree(told)
        self.assertEqual({process: one["rank"] for process, one in told.items()}, {2: 2, 4: 0, 5: 1})
        self.assertEqual([(one["rank"], one["process"]) for one in summary["ranks_joined"]], [(1, 3), (0, 4), (1, 5)])
        self.assertEqual(sorted(one["process"] for one in summary["ranks_lost"]), [0, 1, 3])

    def test_a_vacant_vertex_waits_and_who_finds_none_is_told(self):
        job = self.begin(LOOP, ranks=2, vacant=1)
        late = self.joins()
        self.trains(0, 1, 3, job=job)
        too_many = self.joins()
        self.until(lambda: list(self.folder.glob("hearsay-*/night/inside-*-4")), "it is in the job")
        self.trains(0, 1, 3, job=job)
        told = self.finish(job, late)
        summary = self.agree(told)
        self.assertEqual({process: one["rank"] for process, one in told.items()}, {0: 0, 1: 1, 3: 2})
        for one in told.values():
            self.assertEqual(one["share"], [one["rank"], one["rank"] + 3])
        self.assertEqual((summary["ranks"], summary["ranks_lost"]), (3, []))
        code, said = self.ended(too_many)
        self.assertEqual(code, 4, said)
        self.assertRegex(said, "no vertex of it was free")
        self.assertNotIn("Traceback", said)
        code, said = self.ended(self.joins(HEARSAY_START_TIMEOUT="0.5"))  # the job has ended
        self.assertEqual(code, 4, said)
        self.assertIn("no job 'night'", said)

    @needs_torch
    def test_what_is_not_trained_comes_with_the_model(self):
        job = self.begin(TORCH, ranks=2, vacant=1)
        late = self.joins()
        self.trains(0, 1, 3, job=job)
        told = self.finish(job, late)
        self.assertEqual(told[3]["frozen"], told[0]["frozen"])
        self.assertEqual(told[1]["frozen"], told[0]["frozen"])
        self.assertGreater(told[3]["batches"], 0, "buffers of the first rank")

    def refused(self, code, words, process):
        found, said = self.ended(process)
        self.assertEqual(found, code, said)
        self.assertRegex(said, words)
        self.assertRegex(said, r"^hearsay: ")
        self.assertNotIn("Traceback", said)

    def other(self, before, after, **options):
        """One that joins with another program."""
        text = (self.folder / "program.py").read_text()
        self.assertIn(before, text)
        (self.folder / "other.py").write_text(text.replace(before, after))
        return self.joins("other.py", **options)

    def test_who_does_not_belong_there_harms_nobody(self):
        job = self.begin(LOOP, ranks=2, vacant=1)
        token = {"HEARSAY_JOB_TOKEN": "a token of somebody else"}
        self.refused(2, "another configuration", self.other('"always"', '"constant"'))
        self.refused(2, "another model", self.other("zeros(50", "zeros(51"))
        self.refused(2, "another token", self.joins(**token))
        self.refused(4, "no job 'day'", self.joins(job="day", HEARSAY_START_TIMEOUT="0.5"))
        self.refused(2, "train.joins in its configuration", self.other('"joins": 4, "vacant": 1', '"joins": 0'))
        self.refused(2, "ranks that wait for nobody", self.other('"asynchronous"', '"lockstep"'))
        self.refused(2, "ranks that wait for nobody", self.other(
            '"eventgrad", "schedule": "asynchronous", "mixing": {"name": "arrival"}', '"allreduce"'))
        self.refused(2, "no number there before", self.other("member =", "hearsay.rank(); member ="))
        self.refused(2, "graph=… is not for", self.other("learning_rate", "graph=lambda n: [(0, 1)], learning_rate"))
        told = self.finish(job)
        self.assertEqual(self.summary()["ranks_joined"], [])
        self.assertEqual(self.summary()["ranks_lost"], [])
        self.agree(told)

    def test_a_program_that_names_the_job_itself(self):
        job = self.begin(LOOP, ranks=2, vacant=1)
        text = (self.folder / "program.py").read_text().replace("learning_rate", 'job="night", learning_rate')
        (self.folder / "other.py").write_text(text)
        late = subprocess.Popen([sys.executable, "other.py"], cwd=self.folder, env=self.environment, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.processes_begun.append(late)
        self.trains(0, 1, 3, job=job)
        self.agree(self.finish(job, late))

    def test_jobs_that_nobody_can_join(self):
        program = LOOP.replace("VACANT", "0")
        job = self.job(program, ranks=2)
        self.assertEqual(job.code, 2, job)
        self.assertRegex(job.err, "train.joins: others can join a job that is started without MPI")
        job = self.command(*HEARSAY, "launch", "--job", "night", "-n", "2", "program.py")
        self.assertEqual(job.code, 2, job)
        self.assertRegex(job.err, "--without-mpi")
        job = self.command(*HEARSAY, "launch", "--join", "night")
        self.assertEqual(job.code, 2, job)
        self.assertRegex(job.err, "which job is to be joined, and by which program")

    def test_whoever_comes_at_any_moment_and_is_killed_at_any_harms_nobody(self):
        seed = int(os.environ.get("HEARSAY_TEST_SEED") or random.SystemRandom().randrange(10**6))
        draws = random.Random(seed)
        with self.subTest(seed=seed):
            job = self.begin(LOOP.replace('"joins": 4', '"joins": 40'), ranks=3, vacant=1)
            comers, end = [], time.monotonic() + 12
            while time.monotonic() < end:
                self.assertIsNone(job.poll(), "the job goes on")
                comers.append(self.joins(HEARSAY_START_TIMEOUT="20"))
                time.sleep(draws.uniform(0.1, 1.2))
                if draws.random() < 0.5:
                    draws.choice(comers).kill()
            told = self.finish(job)
            self.agree(told)
            self.assertLessEqual({0, 1, 2}, set(told))
            for comer in comers:
                code, said = self.ended(comer)
                if code != -signal.SIGKILL:
                    self.assertIn(code, (0, 2, 4), said)
                    self.assertNotIn("Traceback", said)


if __name__ == "__main__":
    unittest.main()
