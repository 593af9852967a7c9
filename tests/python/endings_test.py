"""How jobs end that do not end well: within seconds, with the rank and the line, with a summary that says so."""
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
import unittest

from support import ENVIRONMENT, MPIRUN, JobCase, needs_mpi4py, needs_torch

LOOP = """
    import os, sys, time
    import numpy as np, hearsay
    kind, schedule = sys.argv[1:]
    member = hearsay.join({"exchange": {"name": "dpsgd", "schedule": schedule}, "report": {"directory": "run"}},
                          {"x": np.zeros(1000, np.float32)})
    def happens():
        if kind == "raise": raise ValueError("a bug of mine")
        if kind == "exit": sys.exit(0)
        if kind == "nan": step.loss = float("nan")
        if kind == "hang": print("waiting", flush=True); time.sleep(600)
    for k in range(10 if (kind == "short" and member.rank == 1) else 100000):
        with member.step() as step:
            if k == 10 and member.rank == 1: happens()
        if k == 200 and kind in ("short", "between") and schedule == "asynchronous": break
        if k == 10 and kind == "between" and member.rank == 1: break
    member.summary()
"""


WARNED = """
    import os, signal, sys, threading, time
    import numpy as np, hearsay
    seen = []
    number = getattr(signal, sys.argv[1])
    if sys.argv[2] == "own": signal.signal(number, lambda *_: seen.append(1))
    member = hearsay.join({"exchange": {"name": "dpsgd"}, "report": {"directory": "run", "overwrite": True}},
                          {"x": np.zeros(3, np.float32)})
    for k in range(20):
        if k == 10 and member.rank == 1: time.sleep(1)  # rank 0 waits for it
        if k == 10 and member.rank == 0:
            if sys.argv[2] == "own": threading.Timer(0.3, os.kill, (os.getpid(), number)).start()
            else: os.kill(os.getpid(), number)
        with member.step(): member.parameters["x"] -= 1
    print("seen" if seen else "unseen", member.steps)
    """


class EndingsTest(JobCase):
    def ends(self, kind, schedule, code, sentence):
        job = self.job(LOOP, kind, schedule, ranks=3)
        self.assertEqual(job.code, code, job)
        said = [line for line in job.err.splitlines() if line.startswith("hearsay: ")]
        self.assertTrue(said, job)
        self.assertRegex(said[0], sentence)
        return job

    def starts(self, program):
        (self.folder / "program.py").write_text(textwrap.dedent(program), encoding="utf-8")

    def started(self, *line, ranks):
        return subprocess.Popen(
            [*MPIRUN, "-n", str(ranks), sys.executable, *line],
            cwd=self.folder,
            env={**os.environ, **ENVIRONMENT, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def line_of(self, words):
        text = (self.folder / "program.py").read_text().splitlines()
        return next(number for number, line in enumerate(text, 1) if words in line)

    def test_an_exception_ends_the_job_with_rank_and_line(self):
        for schedule in ("lockstep", "asynchronous"):
            with self.subTest(schedule=schedule):
                sentence = r"^hearsay: \[rank 1\] .*program.py:\d+: ValueError: a bug of mine$"
                job = self.ends("raise", schedule, 1, sentence)
                self.assertIn(f"program.py:{self.line_of('a bug of mine')}: ", job.err)
                self.assertIn("Traceback", job.err)
                self.assertEqual(self.summary()["status"], "stopped")
                self.assertIn("a bug of mine", self.summary()["message"])
                (self.folder / "run" / "summary.json").rename(self.folder / "kept.json")
                for file in (self.folder / "run").iterdir():
                    file.unlink()

    def test_leaving_inside_of_a_step(self):
        sentence = r"\[rank 1\] .*program.py:\d+: the program ended inside of step 11 \(sys.exit\)"
        self.ends("exit", "lockstep", 1, sentence)

    def test_a_loss_that_is_no_number(self):
        self.ends("nan", "asynchronous", 5, r"\[rank 1\] .*diverged in step 11: the loss is nan")
        self.assertEqual(self.summary()["status"], "diverged")

    def test_an_averaged_model_whose_loss_is_no_number(self):
        for loss, words in (("nan", "not a number"), ("inf", "infinite")):
            with self.subTest(loss):
                job = self.job(
                    f"""
                    import numpy as np, hearsay
                    config = {{"exchange": {{"name": "dpsgd"}}, "report": {{"directory": "run", "overwrite": True}}}}
                    member = hearsay.join(config, {{"x": np.zeros(3, np.float32)}})
                    with member.step(): pass
                    member.evaluate(lambda: {{"loss": float("{loss}"), "accuracy": 0.5}})
                    member.summary()
                    """
                )
                self.assertEqual(job.code, 5, job)
                self.assertRegex(job.err, f"averaged model diverged after 1 steps: .* a loss that is {words}; lower")
                self.assertEqual(self.summary()["status"], "diverged")

    def test_a_gradient_that_is_no_number_is_told_with_rank_iteration_and_segment(self):
        job = self.job(
            """
            import numpy as np, hearsay
            member = hearsay.join({"exchange": {"name": "dpsgd"}, "report": {"directory": "run"}},
                                  {"first": np.zeros(5, np.float32), "second": np.zeros(5, np.float32)})
            for k in range(6):
                with member.step() as step:
                    step.exchange()
                    if member.rank == 1 and k == 2: member.gradients["second"][3] = np.nan
                    for name, x in member.parameters.items(): x -= np.float32(0.1) * member.gradients[name]
            member.summary()
            """,
            ranks=2,
        )
        self.assertEqual(job.code, 5, job)
        self.assertRegex(job.err, r"\[rank 1\] .*rank 1 diverged at iteration 2: value 3 of parameter 'second' is nan")
        self.assertEqual(self.summary()["status"], "diverged")

    def test_no_exchange_finishes_with_what_is_no_number(self):
        job = self.job(
            """
            import numpy as np, hearsay
            graph = {"topology": {"graph": {"name": "ring"}}}
            models = ["dpsgd", "eventgrad", "quasi_global_momentum", "gradient_tracking", "momentum_tracking",
                      "beer", "motef", "cedas", "push_sum", "gasloc", "gossip_outer"]
            cases = [({"name": name}, graph) for name in models]
            cases += [({"name": name}, {}) for name in ("sparta", "allreduce", "topk", "diloco", "gradient_dropping")]
            cases += [({"name": name, "schedule": "asynchronous"}, graph) for name in ("dpsgd", "push_sum")]
            cases += [({"name": "gradient_dropping", "schedule": "asynchronous"}, {})]
            def average(member):
                with member.averaged(): pass
            collective = [lambda m: m.summary(), average, lambda m: m.end(), lambda m: m.state_dict(),
                          lambda m: m.evaluate(lambda: {"loss": 1.0}), lambda m: m.leave()]
            said = []
            for case, (exchange, more) in enumerate(cases):
                member = hearsay.join({"exchange": exchange, **more, "report": {"directory": f"run{case}"}},
                                      {"first": np.zeros(5, np.float32), "second": np.zeros(5, np.float32)})
                for k in range(3):
                    with member.step(learning_rate=0.1) as step:
                        step.exchange()
                        for name, x in member.parameters.items(): x -= np.float32(0.1) * member.gradients[name]
                if member.rank == 1: member.parameters["second"][3] = np.nan
                for call in collective:
                    try:
                        call(member)
                        # Asynchronous servers and push_sum put what they serve in the place of such a value.
                        whole = all(np.isfinite(x).all() for x in member.parameters.values())
                        serves = "schedule" in exchange and exchange["name"] != "dpsgd"
                        if not (serves and whole): said.append(f"{exchange}: nothing")
                    except hearsay.errors.DivergenceError as error: said.append(str(error))
            assert len(set(said)) == 1, set(said)
            print(said[0] + "\\n", end="", flush=True)
            """,
            ranks=3,
        )
        self.assertEqual(job.code, 5, job)
        sentence = "rank 1 diverged at iteration 2: value 3 of parameter 'second' is nan"
        self.assertEqual(sum(line.startswith(sentence) for line in job.out.splitlines()), 3, job)
        finished = set()
        for path in self.folder.glob("run*/summary.json"):
            summary = json.loads(path.read_text())
            if summary["status"] == "finished": finished.add((summary["exchange"], summary["schedule"]))
        self.assertLessEqual(finished, {("push_sum", "asynchronous"), ("gradient_dropping", "asynchronous")})

    def test_asynchronous_servers_serve_until_all_are_done(self):
        job = self.job(
            """
            import json, time
            import numpy as np, hearsay
            member = hearsay.join({"exchange": {"name": "gradient_dropping", "schedule": "asynchronous"},
                                   "sparsify": {"selector": {"name": "topk", "density": 1.0}},
                                   "report": {"directory": "run"}}, {"x": np.zeros(6, np.float32)})
            for _ in range(50):
                time.sleep(0.001 * (1 + 2 * member.rank))
                with member.step(learning_rate=0.02) as step:
                    member.gradients["x"][...] = 1
                    step.exchange()
                    member.parameters["x"] -= np.float32(0.02) * member.gradients["x"]
            with member.averaged():
                average = member.parameters["x"].tolist()
            member.summary()
            print(json.dumps({"average": average, "x": member.parameters["x"].tolist()}) + "\\n", end="", flush=True)
            """,
            ranks=3,
        )
        self.assertEqual(job.code, 0, job)
        self.assertEqual(len(job.said), 3, job)
        for said in job.said:
            self.assertEqual(said, job.said[0])
            for value in said["x"]:
                self.assertAlmostEqual(value, -1.0, places=5)

    def test_push_sum_outlives_a_rank_that_pauses(self):
        job = self.job(
            """
            import json, time
            import numpy as np, hearsay
            for graph in ("directed_ring", "directed_exponential"):
                for pause in (0.02, 0.06, 0.3):
                    member = hearsay.join({"exchange": {"name": "push_sum", "schedule": "asynchronous"},
                                           "topology": {"graph": {"name": graph}, "weights": {"name": "uniform"}},
                                           "report": {"directory": f"{graph}{pause}"}}, {"x": np.zeros(4, np.float32)})
                    target = np.float32(member.rank - 1)
                    for k in range(200):
                        time.sleep(0.0005)
                        if member.rank == 2 and k == 50: time.sleep(pause)
                        with member.step(learning_rate=0.05) as step:
                            member.gradients["x"][...] = member.parameters["x"] - target
                            step.exchange()
                            member.parameters["x"] -= np.float32(0.05) * member.gradients["x"]
                        assert np.abs(member.parameters["x"]).max() < 1.001, (k, member.parameters["x"])
                    member.leave()
            """,
            ranks=3,
        )
        self.assertEqual(job.code, 0, job)

    def test_a_rank_that_makes_fewer_steps(self):
        sentence = r"rank 1 is in member.summary\(\) after 10 steps, and this rank waits for it in step 11; make"
        self.ends("short", "lockstep", 4, sentence)
        self.assertEqual(self.summary()["status"], "stopped")

    def test_asynchronous_ranks_may_make_fewer_steps(self):
        job = self.job(LOOP, "short", "asynchronous", ranks=3)
        self.assertEqual(job.code, 0, job)
        self.assertEqual(self.summary()["message"], "the ranks made 10 to 201 steps")

    def test_an_exception_that_the_loop_catches_breaks_the_member(self):
        job = self.job(
            """
            import numpy as np, hearsay
            member = hearsay.join({}, {"x": np.zeros(10, np.float32)})
            try:
                with member.step(): raise KeyError("mine")
            except KeyError: pass
            with member.step(): pass
            """
        )
        self.assertEqual(job.code, 1, job)
        self.assertRegex(job.err, r"program.py:7: RuntimeError: step 1 was left by KeyError")

    def test_signals_end_the_job_within_seconds(self):
        self.starts(LOOP)
        for sent in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
            with self.subTest(signal=sent), self.started("program.py", "hang", "lockstep", ranks=3) as job:
                self.assertEqual(job.stdout.readline(), "waiting\n")  # ranks 0 and 2 wait for rank 1 now
                time.sleep(0.2)
                job.send_signal(sent)
                _, words = job.communicate(timeout=60)
                self.assertNotEqual(job.returncode, 0)
                self.assertRegex(words, r"stopped by (SIGTERM|Ctrl-C|SIGUSR1)")
                self.assertEqual(words.count("hearsay: "), 1, words)
                self.assertEqual(self.summary()["status"], "stopped")
                for file in (self.folder / "run").iterdir():
                    file.unlink()

    def test_a_clusters_warning_ends_a_program_unless_it_has_a_handler_of_its_own(self):
        """Each with its own exit code; a handler that goes on is no end, not even of a wait for other ranks."""
        for sent in (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGXCPU):
            with self.subTest(signal=sent):
                job = self.job(WARNED, sent.name, "default", ranks=None)
                self.assertEqual(job.code, 128 + sent, job)
                self.assertIn(f"stopped by {sent.name}", job.err)
                self.assertEqual(self.summary()["status"], "stopped")
        job = self.good_job(WARNED, "SIGUSR1", "own")
        self.assertEqual(sorted(text.split() for text in job.outputs), [["seen", "20"], ["unseen", "20"]], job)

    @needs_torch
    def test_signals_end_workers_too_and_are_what_is_said(self):
        """mpirun sends them to a DataLoader's workers as well, and torch raises where a worker is killed."""
        self.starts(
            """
            import time, torch, hearsay
            from torch.utils.data import DataLoader
            class Slow(torch.utils.data.Dataset):
                def __len__(self): return 100000
                def __getitem__(self, i): time.sleep(0.01); return torch.zeros(3)
            net = torch.nn.Linear(3, 1)
            member = hearsay.join({"report": {"directory": "run"}}, net)
            for k, x in enumerate(member.share(DataLoader(Slow(), batch_size=2, num_workers=2))):
                with member.step(): net(x).sum().backward()
                if k == 3 and member.rank == 1: print("waiting", flush=True)
            """
        )
        with self.started("program.py", ranks=2) as job:
            self.assertEqual(job.stdout.readline(), "waiting\n")
            job.send_signal(signal.SIGINT)
            _, words = job.communicate(timeout=60)
        said = [line for line in words.splitlines() if line.startswith("hearsay: ")]
        self.assertEqual(len(said), 1, words)
        self.assertRegex(said[0], r"program.py:\d+: stopped by (SIGTERM|Ctrl-C)")
        self.assertNotIn("Traceback", words)
        self.assertEqual(self.summary()["status"], "stopped")

    @needs_torch
    def test_an_exception_in_a_worker_is_told_in_a_line(self):
        job = self.job(
            """
            import torch, hearsay
            from torch.utils.data import DataLoader
            class Broken(torch.utils.data.Dataset):
                def __len__(self): return 100
                def __getitem__(self, i): return torch.zeros(3) if i != 77 else {}["mine"]
            net = torch.nn.Linear(3, 1)
            member = hearsay.join({"report": {"directory": "run"}}, net)
            for x in member.share(DataLoader(Broken(), batch_size=2, num_workers=2)):
                with member.step(): net(x).sum().backward()
            """
        )
        self.assertEqual(job.code, 1, job)
        sentence = r"hearsay: \[rank 1\] .*program.py:9: KeyError: Caught KeyError .* … KeyError: 'mine'\n"
        self.assertRegex(job.err, sentence)
        self.assertNotIn("\n", self.summary()["message"])

    @needs_mpi4py
    def test_an_exception_before_join_where_mpi_runs_already(self):
        job = self.job(
            """
            from mpi4py import MPI
            import numpy as np, hearsay
            if MPI.COMM_WORLD.rank == 1: raise ValueError("too early")
            hearsay.join({}, [np.zeros(3, np.float32)])
            """
        )
        self.assertEqual(job.code, 1, job)
        self.assertRegex(job.err, r"hearsay: \[rank 1\] .*program.py:4: ValueError: too early")

    def test_a_hook_that_calls_the_one_before_it(self):
        """Set between the import and `join`: both speak, and the job ends once."""
        job = self.job(
            """
            import sys, numpy as np, hearsay
            before = sys.excepthook
            def hook(*what): print("mine", file=sys.stderr); before(*what)
            sys.excepthook = hook
            member = hearsay.join({}, [np.zeros(3, np.float32)])
            if member.rank == 1: raise ValueError("a bug")
            with member.step(): pass
            """
        )
        self.assertEqual(job.code, 1, job)
        self.assertEqual(job.err.count("mine\n"), 1, job)
        self.assertEqual(job.err.count("Traceback"), 1, job)
        self.assertRegex(job.err, r"hearsay: \[rank 1\] .*program.py:7: ValueError: a bug")

    def test_errors_of_the_configuration_come_as_one(self):
        (self.folder / "wrong.yaml").write_text(
            "exchange: {name: eventgrad, schedul: asynchronous}\ntrigger:\n  name: adaptive\n  horizon: -3\nmodle: 3\n"
        )
        job = self.good_job(
            """
            import numpy as np, hearsay
            try:
                hearsay.join("wrong.yaml", {"x": np.zeros(3, np.float32)})
            except hearsay.errors.ConfigError as error:
                found = [(p.file, p.line, p.column) for p in error.problems]
                assert found == [("wrong.yaml", 1, 29), ("wrong.yaml", 4, 12), ("wrong.yaml", 5, 1)], error.problems
                assert "did you mean 'schedule'?" in error.problems[0].message and error.code == 2
            else: assert False
            try:
                hearsay.join({"exchange": {"name": "gosip"}}, {"x": np.zeros(3, np.float32)})
            except hearsay.errors.ConfigError as error:
                assert error.problems[0].file == "configuration" and "exchange.name" in str(error), error
            else: assert False
            try:
                hearsay.join({}, {"x": np.zeros(3, np.float32)}, set={"trigger.horizon": "much"})
            except hearsay.errors.ConfigError as error:
                assert "set={'trigger.horizon': " in str(error), error
                assert error.problems[0][:3] == ("set", None, None) and "expected a number" in error.problems[0].message
            else: assert False
            try:
                hearsay.join("nowhere.yaml", {"x": np.zeros(3, np.float32)})
            except hearsay.errors.DataError as error:
                assert "nowhere.yaml" in str(error)
            else: assert False
            try:
                hearsay.join({}, {"x": np.zeros(3)})
            except hearsay.errors.ConfigError as error:
                assert "'x' is float64" in str(error)
            else: assert False
            """,
            ranks=None,
        )
        job = self.job("import numpy as np, hearsay\nhearsay.join('wrong.yaml', [np.zeros(3, np.float32)])\n", ranks=2)
        self.assertEqual(job.code, 2, job)
        self.assertEqual(job.err.count("invalid configuration (3 errors)"), 1, job)
        self.assertNotIn("Traceback", job.err)

    def test_what_does_not_fit_the_ranks_has_a_place_too(self):
        (self.folder / "cube.yaml").write_text("topology:\n  weights: {name: uniform}\n  graph: {name: hypercube}\n")
        (self.folder / "groups.yaml").write_text("exchange:\n  name: hitopk\n  node_size: 2\n")
        self.good_job(
            """
            import numpy as np, hearsay
            for file, line, column, why in (("cube.yaml", 3, 3, "3 is not a power of two"), ("groups.yaml", 2, 3, "3")):
                try: hearsay.join(file, [np.zeros(3, np.float32)])
                except hearsay.errors.ConfigError as error:
                    (problem,) = error.problems
                    assert problem[:3] == (file, line, column) and why in problem.message, error
                else: assert False, file
            """,
            ranks=3,
        )

    def test_a_run_folder_that_cannot_be_is_told_to_all_ranks(self):
        """Whoever catches it does not leave the others waiting."""
        (self.folder / "file").write_text("in the way")
        job = self.good_job(
            """
            import json, numpy as np, hearsay
            try: hearsay.join({"report": {"directory": "file"}}, [np.zeros(3, np.float32)])
            except hearsay.errors.DataError as error: said = str(error)
            member = hearsay.join({"report": {"directory": "run"}}, [np.zeros(3, np.float32)])
            print(json.dumps({"rank": member.rank, "said": said}))
            """
        )
        self.assertRegex(job.said[0]["said"], r"^file: cannot be used as the run folder \(Not a directory\)")
        self.assertIn("rank 0 cannot use file as the run folder", job.said[1]["said"])

    def test_ranks_that_differ_are_named(self):
        for what, why in (
            ("{'seed': rank}, {'x': np.zeros(3, np.float32)}", "the configuration of rank 1"),
            ("{}, {'x': np.zeros(3 + rank, np.float32)}", "the parameters of rank 1"),
        ):
            job = self.job(
                "import os, numpy as np, hearsay\n"
                f"rank = int(os.environ['OMPI_COMM_WORLD_RANK'])\nhearsay.join({what})\n"
            )
            self.assertEqual(job.code, 2, job)
            self.assertIn(why, job.err)
            self.assertFalse((self.folder / "runs").exists(), "what does not fit leaves no run folder")

    @needs_torch
    def test_ranks_that_differ_may_all_catch_it(self):
        """Nobody waits for a rank that does, and the next `join` is one of all."""
        job = self.good_job(
            """
            import json, numpy as np, hearsay, torch
            rank = hearsay.rank()
            def said(config, model):
                try: hearsay.join(config, model)
                except hearsay.errors.ConfigError as error: return str(error)
            odd = torch.nn.BatchNorm1d(3), torch.nn.BatchNorm1d(3)
            odd[1].extra = torch.nn.Parameter(torch.zeros(2), requires_grad=False)
            all_said = [said({"seed": rank}, {"x": np.zeros(3, np.float32)}),
                        said({}, {"x": np.zeros(3 + rank, np.float32)}), said({}, odd[rank])]
            member = hearsay.join({"report": {"directory": "run"}}, [np.zeros(3, np.float32)])
            print(json.dumps({"rank": member.rank, "said": all_said}))
            """
        )
        self.assertEqual(job.said[0]["said"], job.said[1]["said"])
        for said, what in zip(job.said[0]["said"], ("configuration", "parameters", "frozen parameters or buffers")):
            self.assertTrue(said.startswith(f"the {what} of rank 1 "), said)

    def test_a_forked_process_is_no_rank(self):
        job = self.good_job(
            """
            import os, sys
            import numpy as np, hearsay
            member = hearsay.join({"report": {"directory": "run"}}, {"x": np.zeros(3, np.float32)})
            child = os.fork()
            if child == 0:
                for act in (lambda: member.step().__enter__(), member.summary, lambda: hearsay.join({}, {})):
                    try: act()
                    except RuntimeError as error: assert "forked process" in str(error)
                    else: os._exit(7)
                sys.exit(0)  # with all that Python does at its end
            assert os.waitpid(child, 0)[1] == 0
            with member.step(): pass
            assert member.summary()["iterations"] == 1
            """
        )
        self.assertEqual(self.summary()["status"], "finished", job)


if __name__ == "__main__":
    unittest.main()
