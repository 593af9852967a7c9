"""Triggers and graphs that are Python functions."""
import unittest

from support import JobCase, have


class OwnTest(JobCase):
    def test_a_trigger_of_ones_own_decides(self):
        """Thresholds and bools; of one segment and not of another; what the policy of the same rule in C++ sends."""
        job = self.good_job(
            """
            import json
            import numpy as np, hearsay
            seen = []
            def every_third(o):
                seen.append((o.segment, o.iteration, o.length, round(o.norm, 3), o.silence))
                return o.segment == 0 and o.iteration % 3 == 0
            def run(directory, trigger, plan):
                member = hearsay.join({"exchange": {"name": "eventgrad"}, "report": {"directory": directory},
                                       "trigger": {"warmup_iterations": 0, **plan}},
                                      {"a": np.ones(4, np.float32), "b": np.zeros(9, np.float32)}, trigger=trigger)
                fired = []
                for k in range(12):
                    with member.step():
                        fired.append(list(member.events().values()))
                    for x in member.parameters.values(): x += 0.5 + member.rank
                hash = member.replica_hash
                member.leave()
                return fired, hash
            bools, _ = run("bools", every_third, {})
            assert len(seen) == 24 and seen[0] == (0, 0, 4, 2.0, 1), seen[:3]
            number = run("number", lambda o: 2.5, {})
            same = run("same", None, {"name": "constant", "threshold": 2.5})
            print(json.dumps({"rank": 0, "bools": bools, "number": number, "same": same}))
            """
        )
        for said in job.said:
            self.assertEqual(said["bools"], [[k % 3 == 0, False] for k in range(12)])
            self.assertEqual(said["number"], said["same"])
            fired = [segment for step in said["number"][0] for segment in step]
            self.assertTrue(any(fired) and not all(fired))
        self.assertIn("name: own", (self.folder / "bools/config.yaml").read_text())

    def test_a_trigger_of_ones_own_in_the_place_of_another(self):
        (self.folder / "gossip.yaml").write_text("trigger: {name: adaptive, horizon: 2, warmup_iterations: 0}\n")
        job = self.good_job(
            """
            import numpy as np, hearsay
            member = hearsay.join("gossip.yaml", {"a": np.ones(4, np.float32)}, trigger=lambda o: False)
            with member.step(): assert member.events() == {"a": False}
            """
        )
        self.assertIn("horizon", job.err, "what is dropped is said")

    def test_a_bool_is_a_bool_whoever_made_it(self):
        """Comparisons with numpy's and torch's numbers do not give Python's bool."""
        answers = {"numpy.bool_({})": "numpy", "numpy.array({})": "numpy", "torch.tensor({})": "torch"}
        for answer, module in answers.items():
            if have(module):
                self.good_job(
                    f"""
                    import {module}, numpy as np, hearsay
                    member = hearsay.join({{"exchange": {{"name": "eventgrad"}}, "trigger": {{"warmup_iterations": 0}},
                                           "report": {{"directory": "run", "overwrite": True}}}},
                                          {{"a": np.ones(4, np.float32), "b": np.ones(4, np.float32)}},
                                          trigger=lambda o: {answer.format("o.segment == 1")})
                    for k in range(5):
                        with member.step(): assert member.events() == {{"a": False, "b": True}}
                    """
                )

    def test_an_answer_that_is_no_threshold(self):
        for answer, why in (("None", "TypeError: .* returned None; return a threshold, or a bool"),
                            ("'much'", "TypeError: .* returned 'much'; "), ("o.norm * float('nan')", "returned NaN; ")):
            job = self.job(
                f"""
                import numpy as np, hearsay
                member = hearsay.join({{"exchange": {{"name": "eventgrad"}}, "trigger": {{"warmup_iterations": 0}},
                                       "report": {{"directory": "run", "overwrite": True}}}},
                                      {{"a": np.ones(4, np.float32)}}, trigger=lambda o: {answer})
                with member.step(): pass
                """
            )
            self.assertEqual(job.code, 1, job)
            self.assertRegex(job.err, rf"hearsay: \[rank \d\] .*program.py:6: .*{why}")

    def test_what_a_trigger_raises_is_the_programs_exception(self):
        job = self.job(
            """
            import numpy as np, hearsay
            def wrong(o): return 1 / 0
            member = hearsay.join({"exchange": {"name": "eventgrad"}, "trigger": {"warmup_iterations": 0}},
                                  {"a": np.ones(4, np.float32)}, trigger=wrong)
            with member.step(): pass
            """
        )
        self.assertEqual(job.code, 1, job)
        self.assertRegex(job.err, r"hearsay: \[rank \d\] .*program.py:3: ZeroDivisionError: division by zero")

    def test_a_trigger_where_nothing_asks_for_one_is_an_error(self):
        job = self.job(
            "import numpy as np, hearsay\n"
            "hearsay.join({'exchange': {'name': 'dpsgd'}}, [np.zeros(3, np.float32)], trigger=lambda o: True)\n"
        )
        self.assertEqual(job.code, 2, job)
        self.assertIn("trigger", job.err)

    def test_a_graph_of_ones_own(self):
        """A star; its run folder gives the same run."""
        job = self.good_job(
            """
            import json
            import numpy as np, hearsay
            star = lambda ranks: [(0, i) for i in range(1, ranks)]
            said = {}
            for name, arguments in {"own": ({}, star), "table": ({"graph": {"name": "star"}}, None)}.items():
                topology, graph = arguments
                member = hearsay.join({"exchange": {"name": "dpsgd"}, "topology": topology,
                                       "report": {"directory": name}}, {"x": np.zeros(9, np.float32)}, graph=graph)
                said["rank"] = member.rank
                member.parameters["x"][...] = member.rank
                for k in range(5):
                    with member.step(): pass
                said[name] = [member.neighbours, member.replica_hash]
                member.leave()
            print(json.dumps(said))
            """,
            ranks=4,
        )
        self.assertEqual([said["own"][0] for said in job.said], [[1, 2, 3], [0], [0], [0]])
        for said in job.said:
            self.assertEqual(said["own"], said["table"])
        self.assertIn("path: graph.txt", (self.folder / "own/config.yaml").read_text())
        self.good_job(
            """
            import numpy as np, hearsay
            member = hearsay.join("own/config.yaml", {"x": np.zeros(9, np.float32)}, set={"report.directory": "again"})
            assert member.neighbours == ([1, 2, 3] if member.rank == 0 else [0])
            """,
            ranks=4,
        )

    def test_a_run_whose_graph_is_a_function_may_be_replaced(self):
        """As one whose graph has a name; a configuration that somebody has changed may not."""
        program = """
            import sys, numpy as np, hearsay
            ring = lambda ranks: [(i, (i + 1) % ranks) for i in range(ranks)]
            complete = lambda ranks: [(i, j) for i in range(ranks) for j in range(i)]
            for graph in (ring, complete):
                plan = {"topology": {}, "report": {"directory": "run", "overwrite": True}}
                hearsay.join(plan, {"x": np.zeros(9, np.float32)}, graph=graph).leave()
            """
        for _ in range(2):
            self.good_job(program, ranks=3)
        run, *edges = (self.folder / "run/graph.txt").read_text().splitlines()
        self.assertEqual(run, (self.folder / "run/config.yaml").read_text().splitlines()[0])
        self.assertEqual(edges, ["0 1", "0 2", "1 2"])
        with open(self.folder / "run/config.yaml", "a", encoding="utf-8") as config:
            config.write("# mine\n")
        job = self.job(program, ranks=3)
        self.assertEqual(job.code, 2, job)
        self.assertRegex(job.err, "run/config.yaml: no run has written this, or it was changed since")

    def test_a_graph_is_kept_where_it_replaces_nothing_of_others(self):
        """Only a run's own is replaced; what cannot be written is warned of, and the run goes on."""
        ring = """
            import numpy as np, hearsay
            plan = {"topology": {}, "report": {"directory": "run", "overwrite": True}}
            ring = lambda ranks: [(i, (i + 1) % ranks) for i in range(ranks)]
            member = hearsay.join(plan, {"x": np.zeros(9, np.float32)}, graph=ring)
            with member.step(): pass
            member.summary()
            print("steps", member.steps)
            """
        graph = self.folder / "run/graph.txt"
        graph.parent.mkdir()
        for text in ("0 1\n", "# mine\n", "# run hearsay-mine\n0 1\n"):
            graph.write_text(text)
            job = self.job(ring, ranks=3)
            self.assertEqual(job.code, 2, job)
            self.assertIn("run/graph.txt: no run has written this, and graph=… would replace it", job.err)
            self.assertEqual((graph.read_text(), list(graph.parent.iterdir())), (text, [graph]))
        graph.unlink()
        graph.mkdir()
        job = self.job(ring, ranks=3)
        self.assertEqual(job.code, 3, job)
        self.assertEqual([text.strip() for text in job.outputs], ["steps 1"] * 3, job)
        self.assertEqual(job.err.count("warning: run/graph.txt: cannot be written (Is a directory)"), 1, job)
        self.assertIn("not all of its files could be written:\n  run/graph.txt: cannot be written (Is", job.err)
        self.assertEqual([file.name for file in graph.parent.iterdir() if "tmp" in file.name], [])
        self.assertEqual(self.summary()["status"], "finished")

    def test_a_graph_leaves_nothing_in_the_temporary_folder(self):
        """Whether the job begins or is refused."""
        temporary = self.folder / "temporary"
        temporary.mkdir()
        for plan, code in (({"exchange": {"name": "dpsgd"}}, 0), ({"exchange": {"name": "allreduce"}}, 2)):
            job = self.job(
                f"""
                import numpy as np, hearsay
                hearsay.join({plan}, [np.zeros(3, np.float32)], graph=lambda ranks: [])
                """,
                ranks=None, environment={"TMPDIR": str(temporary)},
            )
            self.assertEqual(job.code, code, job)
            self.assertEqual([file for file in temporary.iterdir() if "graph" in file.name], [])

    def test_a_graph_that_is_none_is_refused_in_the_functions_words(self):
        job = self.job(
            """
            import numpy as np, hearsay
            for edges, why in (([(0, 1), (1, 1)], r"(1, 1): a rank is no neighbour of its own"),
                               ([(0, 3)], "(0, 3): there are 3 ranks, from 0 to 2"), ([(0, -1)], "(0, -1): there are"),
                               ([(0, 1)], "do not reach rank 2"), ([], "do not reach rank 1"),
                               ([(0, 1, 2)], "pairs of ranks (i, j), not (0, 1, 2)"), ([5], "not 5")):
                try: hearsay.join({}, [np.zeros(3, np.float32)], graph=lambda ranks: edges)
                except hearsay.errors.ConfigError as error: assert why in str(error), error
                else: assert False, edges
            """,
            ranks=3,
        )
        self.assertEqual(job.code, 0, job)


if __name__ == "__main__":
    unittest.main()
