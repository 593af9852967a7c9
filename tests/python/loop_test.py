"""A loop of numpy arrays: what every exchange promises holds from Python, too."""
import json
import os
import unittest

from support import JobCase, needs_mpi4py, needs_program

# Every rank pulls x to a point of its own; all together to the mean of the points, 0.5 (P − 1). Every exchange in turn,
# in one process each.
EVERY_EXCHANGE = """
    import json, os, sys
    import numpy as np, hearsay

    rank, said = int(os.environ["OMPI_COMM_WORLD_RANK"]), {}
    for name, plan in json.loads(sys.argv[1]).items():
        start = np.array([[1, 2], [3, 4]], np.float32)
        member = hearsay.join(
            {**plan, "report": {"directory": name}},
            {"w": start if rank == 0 else 0 * start, "b": np.zeros(3, np.float32)},
            learning_rate=0.03)
        first = member.parameters["w"].tolist()
        for k in range(400):
            with member.step(learning_rate=0.03) as step:
                error = 0.0
                for n, x in member.parameters.items():
                    member.gradients[n][...] = x - member.rank
                    error += float(((x - member.rank) ** 2).sum()) / 2
                step.loss = error
                step.exchange()
                for n, x in member.parameters.items():
                    x -= 0.03 * member.gradients[n]
        summary = member.summary()
        said[name] = {"x": [float(v) for x in member.parameters.values() for v in x.reshape(-1)],
                      "hash": member.replica_hash, "first": first, "messages": member.counts()["messages"],
                      "all": summary["messages"], "hashes": summary["replica_hash"]}
        member.leave()
    print(json.dumps({"rank": rank, "said": said}))
"""
HALF = {"selector": {"name": "topk", "density": 0.5}}
EXCHANGES = {
    "dpsgd": {"exchange": {"name": "dpsgd"}},
    "eventgrad": {"exchange": {"name": "eventgrad", "mixing": {"name": "arrival"}, "correction": {"name": "drift"}}},
    "quasi_global_momentum": {"exchange": {"name": "quasi_global_momentum"}},
    "gradient_tracking": {"exchange": {"name": "gradient_tracking"}},
    "momentum_tracking": {"exchange": {"name": "momentum_tracking", "momentum": 0.5}},
    "beer": {"exchange": {"name": "beer"}},
    "motef": {"exchange": {"name": "motef", "momentum": 0.5}},
    "cedas": {"exchange": {"name": "cedas"}},
    "push_sum": {"exchange": {"name": "push_sum"}},
    "allreduce": {"exchange": {"name": "allreduce"}},
    "topk": {"exchange": {"name": "topk"}, "sparsify": HALF},
    "gtopk": {"exchange": {"name": "gtopk"}, "sparsify": HALF},
    "lkgs": {"exchange": {"name": "lkgs"}, "sparsify": HALF},
    "hitopk": {"exchange": {"name": "hitopk"}, "sparsify": HALF},
    "gradient_dropping": {"exchange": {"name": "gradient_dropping"}},
    "powersgd": {"exchange": {"name": "powersgd", "dense_iterations": 0, "least_saving": 0}},
    "demo": {"exchange": {"name": "demo"}, "sparsify": {"selector": {"name": "topk", "density": 1}}},
    "diloco": {"exchange": {"name": "diloco", "local_steps": 4}},
    "sparseloco": {"exchange": {"name": "sparseloco", "local_steps": 4}, "sparsify": HALF},
    "noloco": {"exchange": {"name": "noloco", "local_steps": 4}},
    "gasloc": {"exchange": {"name": "gasloc", "local_steps": 4}},
    "gossip_outer": {"exchange": {"name": "gossip_outer", "local_steps": 4}},
    "gossip_outer at random": {"exchange": {"name": "gossip_outer", "local_steps": 4},
                               "trigger": {"name": "random", "probability": 0.5, "warmup_iterations": 0}},
    "fda": {"exchange": {"name": "fda", "threshold": 0.01}},
    "sparta": {"exchange": {"name": "sparta", "density": 0.5}},
}
GLOBAL = {"allreduce", "topk", "gtopk", "lkgs", "hitopk", "gradient_dropping", "powersgd", "demo", "diloco",
          "sparseloco"}


class LoopTest(JobCase):
    def test_every_exchange_pulls_the_ranks_to_the_minimum_of_the_sum(self):
        for ranks in (1, 2, 3):
            with self.subTest(ranks=ranks):
                job = self.good_job(EVERY_EXCHANGE, json.dumps(EXCHANGES), ranks=ranks, cwd=self.fresh(ranks))
                ended = [one["said"] for one in job.said]
                self.assertEqual(len(ended), ranks, job)
                for name in EXCHANGES:
                    at_rank = [said[name] for said in ended]
                    for one in at_rank:
                        self.assertEqual(one["first"], [[1, 2], [3, 4]], "all ranks begin with rank 0's x")
                        self.assertEqual(one["hashes"], [other["hash"] for other in at_rank])
                    self.assertEqual(sum(one["messages"] for one in at_rank), at_rank[0]["all"])
                    self.assertEqual(at_rank[0]["all"] > 0, ranks > 1, name)
                    if name in GLOBAL:
                        self.assertEqual(len(set(at_rank[0]["hashes"])), 1, f"{name}: replicas differ")
                    mean = [sum(values) / ranks for values in zip(*(one["x"] for one in at_rank))]
                    for value in mean:
                        self.assertAlmostEqual(value, 0.5 * (ranks - 1), delta=0.1, msg=f"{name} on {ranks} ranks")

    def fresh(self, ranks):
        folder = self.folder / str(ranks)
        folder.mkdir()
        return folder

    def test_arrays_are_views_of_one_block_and_outlive_the_member(self):
        self.good_job(
            """
            import numpy as np, hearsay
            a = np.ones((2, 3), np.float32)
            member = hearsay.join({}, [a, np.zeros(5, np.float32)])
            x, y = member.parameters.values()
            assert x.shape == (2, 3) and (x == 1).all()
            start = x.__array_interface__["data"][0]
            assert y.__array_interface__["data"][0] == start + 6 * 4, "one block, without gaps"
            assert not np.shares_memory(a, x)
            with member.step():
                assert all((g == 0).all() for g in member.gradients.values())
                member.gradients["x1"][...] = 7
            with member.step():
                assert (member.gradients["x1"] == 0).all(), "a step begins with gradients of 0"
            for what in (member.parameters, member.gradients):
                view = what["x1"]
                what["x1"] = view - 1  # in place of what["x1"] -= 1
                for entered in (member.step, member.averaged):
                    try:
                        with entered(): pass
                    except hearsay.errors.ConfigError as error: assert "['x1'][...] = values" in str(error), error
                    else: assert False
                what["x1"] = view
            member.leave()
            x += 1
            assert (x == 2).all()
            """
        )

    def test_an_asynchronous_loop_waits_for_nobody(self):
        """One rank sleeps; the other one makes its steps meanwhile, and hears of all its news in the end."""
        job = self.good_job(
            """
            import json, time
            import numpy as np, hearsay
            member = hearsay.join(
                {"exchange": {"name": "dpsgd", "schedule": "asynchronous"}, "report": {"directory": "run"}},
                {"x": np.zeros(100, np.float32)})
            start = time.perf_counter()
            for k in range(50):
                with member.step() as step:
                    if member.rank == 1: time.sleep(0.05)
            took = time.perf_counter() - start
            print(json.dumps({"rank": member.rank, "took": took}))
            summary = member.summary()
            assert summary["schedule"] == "asynchronous" and summary["wait_s"] == 0
            """
        )
        self.assertLess(job.said[0]["took"], job.said[1]["took"] / 2)

    def test_the_older_calls_do_what_the_context_manager_does(self):
        job = self.good_job(
            """
            import json
            import numpy as np, hearsay
            hashes = []
            for way in ("with", "calls"):
                member = hearsay.join({"exchange": {"name": "gtopk"}, "report": {"directory": way}},
                                      {"x": np.arange(50, dtype=np.float32), "y": np.ones(3, np.float32)})
                def gradient():
                    for name, x in member.parameters.items(): member.gradients[name][...] = x * (member.rank + 1)
                def update():
                    for name, x in member.parameters.items(): x -= 0.1 * member.gradients[name]
                for k in range(20):
                    if way == "with":
                        with member.step(update, learning_rate=0.1): gradient()
                    else:
                        member.start(); gradient(); member.gradient_ready("y"); member.finish(0.1); update()
                        member.stepped(loss=1.0)
                hashes.append(member.replica_hash)
                member.leave()
            print(json.dumps({"rank": 0, "hashes": hashes}))
            """
        )
        for said in job.said:
            self.assertEqual(said["hashes"][0], said["hashes"][1])

    def test_evaluation_is_of_the_mean_and_leaves_the_replica_alone(self):
        job = self.good_job(
            """
            import json
            import numpy as np, hearsay
            member = hearsay.join({"exchange": {"name": "dpsgd"}, "report": {"directory": "run"}},
                                  {"x": np.zeros(4, np.float32)})
            x = member.parameters["x"]
            x[...] = [2 * member.rank, 1, 1, 1]
            before = member.replica_hash
            score = lambda: {"accuracy": float(x[0]) / 10, "loss": float(x.sum())}
            said = member.evaluate(score)
            assert member.replica_hash == before
            try:
                with member.averaged():
                    with member.step(): pass
            except RuntimeError as error: assert "a step inside of member.averaged()" in str(error)
            else: assert False
            assert member.replica_hash == before
            member.summary()
            print(json.dumps({"rank": member.rank, **said}))
            """,
            ranks=3,
        )
        for said in job.said:
            self.assertAlmostEqual(said["accuracy_mean_model"], 0.2, places=6)
            self.assertAlmostEqual(said["loss_mean_model"], 5, places=5)
            self.assertAlmostEqual(said["accuracy_rank_min"], 0.0, places=6)
            self.assertAlmostEqual(said["accuracy_rank_mean"], 0.2, places=6)
            self.assertAlmostEqual(said["consensus_distance"], (8 / 3) ** 0.5, places=5)
        summary = self.summary()
        self.assertAlmostEqual(summary["accuracy_mean_model"], 0.2, places=6)
        self.assertAlmostEqual(summary["consensus_distance"], (8 / 3) ** 0.5, places=5)

    def test_an_asynchronous_loop_with_local_steps_ends_with_the_last_rounds_model(self):
        job = self.good_job(
            """
            import json
            import numpy as np, hearsay
            member = hearsay.join(
                {"exchange": {"name": "gossip_outer", "schedule": "asynchronous", "local_steps": 3,
                              "outer": {"learning_rate": 1, "momentum": 0}}, "trigger": {"name": "always"}},
                {"x": np.zeros(4, np.float32)},
            )
            x = member.parameters["x"]
            def update(): x[...] += 1
            for k in range(5):
                with member.step(update): pass
            member.end()
            print(json.dumps({"rank": member.rank, "x": x.tolist()}))
            """,
            ranks=2,
        )
        self.assertAlmostEqual(sum(said["x"][0] for said in job.said), 2 * 3, places=5)  # mixing keeps the sum

    def test_the_time_of_a_step_is_without_evaluations(self):
        """Wherever they stand: before the first step, between two, after the last."""
        job = self.good_job(
            """
            import json, time
            import numpy as np, hearsay
            member = hearsay.join({"report": {"directory": "run"}}, {"x": np.zeros(4, np.float32)})
            def score():
                time.sleep(0.1)
                return {"loss": 1.0}
            for k in range(9):
                if k in (0, 5): member.evaluate(score)
                with member.step(): time.sleep(0.01)
            member.evaluate(score)
            member.summary()
            """
        )
        summary = self.summary()
        self.assertGreaterEqual(summary["time_per_iteration_s"], 0.01, job)
        self.assertLessEqual(9 * summary["time_per_iteration_s"], summary["wall_time_s"] - 0.2 * 2, job)
        self.assertLessEqual(summary["compute_s"] + summary["wait_s"], 9 * summary["time_per_iteration_s"], job)

    @needs_program
    def test_the_program_compares_and_repeats_the_run_folder(self):
        program = """
            import sys
            import numpy as np, hearsay
            member = hearsay.join(sys.argv[1], {"x": np.zeros(9, np.float32)}, set={"report.directory": sys.argv[2]})
            for k in range(120):
                with member.step() as step:
                    step.loss = 1 / (k + 1)
            member.summary()
            """
        (self.folder / "gossip.yaml").write_text("exchange: {name: eventgrad}\nreport: {segments: true}\n")
        self.good_job(program, "gossip.yaml", "a")
        self.good_job(program, "a/config.yaml", "b")
        # The first line is the run's name.
        a, b = ((self.folder / run / "config.yaml").read_text().split("\n", 1)[1] for run in "ab")
        self.assertEqual(a.replace("directory: a", "directory: b"), b, "config.yaml gives the same run")
        self.assertEqual(self.summary("a")["replica_hash"], self.summary("b")["replica_hash"])
        done = self.command(os.environ["HEARSAY"], "compare", "a", "b")
        self.assertEqual(done.code, 0, done)
        self.assertRegex(done.out, r"\na .*\nb ")

    def test_the_page_shows_runs_of_python(self):
        self.good_job(
            """
            import sys
            import numpy as np, hearsay
            folders = []
            for name in ("dpsgd", "eventgrad", "allreduce"):
                member = hearsay.join({"exchange": {"name": name}, "report": {"directory": name, "segments": True}},
                                      {"x": np.zeros(9, np.float32)})
                for k in range(60):
                    with member.step() as step: pass
                folders.append(member)
                member.leave()
            if member.rank == 0:
                try:
                    page = hearsay.report(folders, "page.html")
                except ImportError as error:
                    assert "python3-pandas" in str(error)
                else:
                    text = page.read_text()
                    assert "eventgrad" in text and "dpsgd" in text and "<svg" in text
            """
        )

    @needs_mpi4py
    def test_after_mpi4py_on_some_of_the_ranks(self):
        job = self.good_job(
            """
            import json
            from mpi4py import MPI
            import numpy as np, hearsay
            world = MPI.COMM_WORLD
            half = world.Split(world.rank % 2)
            if world.rank % 2 == 1:
                member = hearsay.join({"exchange": {"name": "allreduce"}, "report": {"directory": "half"}},
                                      {"x": np.full(3, world.rank, np.float32)}, communicator=half)
                with member.step(): member.gradients["x"][...] = world.rank
                print(json.dumps({"rank": world.rank, "ranks": member.ranks, "x": member.parameters["x"].tolist(),
                                  "g": member.gradients["x"].tolist()}))
                member.leave()
            assert world.allreduce(1) == 4
            """,
            ranks=4,
        )
        self.assertEqual([said["rank"] for said in job.said], [1, 3])
        for said in job.said:
            self.assertEqual(said["ranks"], 2)
            self.assertEqual(said["x"], [1] * 3, "of the half's first rank")
            self.assertEqual(said["g"], [2] * 3, "the mean of the half's gradients")


if __name__ == "__main__":
    unittest.main()
