"""Collective calls: where some ranks call something else, go on or end, every one is told, within seconds."""
import time
import unittest

from support import JobCase, needs_mpi4py

# What each rank does stands in the arguments, a word a rank: calls, one after another. Who is told prints it.
PROGRAM = """
    import sys, time
    import numpy as np, hearsay
    schedule, *parts = sys.argv[1:]
    plan = {"exchange": {"name": "dpsgd", "schedule": schedule}, "report": {"directory": "run", "overwrite": True}}
    join = lambda: hearsay.join(plan, {"x": np.zeros(3, np.float32)})
    member = join()
    saved = member.state_dict()
    def step():
        with member.step(): pass
    def averaged():
        with member.averaged(): pass
    def evaluate(): member.evaluate(lambda: {"loss": 1.0})
    def load_state_dict(): member.load_state_dict(saved)
    def sleep(): time.sleep(1)
    try:
        for name in parts[member.rank].split(","): (globals().get(name) or getattr(member, name))()
    except hearsay.errors.RankLeft as error:
        print(f"rank {member.rank} is told: {error}\\n", end="", file=sys.stderr, flush=True)
        time.sleep(1)  # the others are told by themselves, not by this one's end
        raise
"""


class TogetherTest(JobCase):
    def told(self, schedule, *parts):
        """{rank: its sentence}"""
        job = self.job(PROGRAM, schedule, *parts, ranks=len(parts))
        self.assertEqual(job.code, 4, job)
        lines = [line.split(" is told: ", 1) for line in job.err.splitlines() if " is told: " in line]
        ends = [line for line in job.err.splitlines() if line.startswith("hearsay: [rank ")]
        self.assertTrue(ends, job)
        return {int(rank.split()[-1]): sentence for rank, sentence in lines}, ends[0]

    def test_every_call_says_which_rank_is_elsewhere(self):
        """Lockstep: against a rank that goes on stepping."""
        for call in ("evaluate", "averaged", "state_dict", "load_state_dict", "join"):
            with self.subTest(call=call):
                told, _ = self.told("lockstep", call, "sleep,step")
                name = f"hearsay.{call}()" if call == "join" else f"member.{call}() after 0 steps"
                self.assertIn(f"rank 1 is in step 1, and this rank waits for it in {name}; ", told[0])
                self.assertIn(f"rank 0 is in {name}, and this rank waits for it in step 1; ", told[1])
                for sentence in told.values():
                    self.assertIn(f"{name.split()[0]} is collective: call it on every rank", sentence)

    def test_what_has_settled_stays_as_it_is(self):
        """Asynchronous ranks that wait for one in a call send nothing of their own: all have what they know."""
        job = self.job(
            """
            import time, numpy as np, hearsay
            config = {"exchange": {"name": "eventgrad", "schedule": "asynchronous"}, "trigger": {"name": "always"},
                      "report": {"directory": "run", "overwrite": True}}
            member = hearsay.join(config, {"x": np.zeros(50, np.float32)})
            for k in range(20):
                with member.step(): pass
                member.parameters["x"] += member.rank
            seen = [member.summary()["replica_hash"]]
            for call in (member.summary, member.end, member.state_dict):
                if member.rank == 3: time.sleep(0.5)
                call()
                seen.append(member.summary()["replica_hash"])
            if member.rank == 0: print(len(seen), len({tuple(hashes) for hashes in seen}), len(set(seen[0])))
            """,
            ranks=4,
        )
        looks, states, models = map(int, job.out.split())
        self.assertEqual((looks, states), (4, 1), job)
        self.assertGreater(models, 1, "the ranks' models were the same anyway")

    def test_three_ranks_in_three_places(self):
        told, _ = self.told("lockstep", "summary", "evaluate", "step")
        elsewhere = r"rank \d is in {}, and this rank waits for it in member.{}"  # whoever of the two came first
        self.assertRegex(told[0], elsewhere.format(r"(member.evaluate\(\) after 0 steps|step 1)", "summary"))
        self.assertRegex(told[1], elsewhere.format(r"(member.summary\(\) after 0 steps|step 1)", "evaluate"))
        self.assertRegex(told[2], r"rank \d is in member.*, and this rank waits for it in step 1")
        told, _ = self.told("asynchronous", "state_dict", "step,end", "step,step,sleep,summary")
        self.assertEqual(len(told), 3)
        self.assertIn("rank 0 is in member.state_dict() after 0 steps, and this rank waits for it in member.e", told[1])
        self.assertIn("both are collective: call them on every rank, in the same order", told[2])

    def test_a_program_that_ends_meanwhile(self):
        for schedule in ("lockstep", "asynchronous"):
            told, ends = self.told(schedule, "step,summary", "step")
            sentence = "rank 1 is at the program's end after 1 steps, and this rank waits for it in member.summary()"
            self.assertIn(sentence, told[0])
            self.assertIn("member.summary() is collective: call it on every rank", told[0])
            sentence = "rank 0 is in member.summary() after 1 steps, and this rank waits for it at the program's end"
            self.assertIn(sentence, ends)

    def test_a_rank_that_joins_again_by_itself(self):
        told, ends = self.told("lockstep", "leave,join", "leave")
        self.assertIn("rank 1 is at the program's end, and this rank waits for it in hearsay.join(); ", told[0])
        self.assertIn("rank 0 is in hearsay.join(), and this rank waits for it at the program's end; ", ends)

    def first_join(self, rank_1, seconds, **options):
        program = f"""
            import time
            from mpi4py import MPI
            import numpy as np, hearsay
            rank = MPI.COMM_WORLD.rank
            config = {{"report": {{"directory": "run"}}}}
            join = lambda **more: hearsay.join(config, {{"x": np.zeros(3, np.float32)}}, **more)
            if rank == 1:
                {rank_1}
            join()
            """
        job = self.job(program, **options)
        self.assertLess(job.seconds, seconds, job)
        return job

    @needs_mpi4py
    def test_a_first_join_that_some_ranks_do_not_call(self):
        """mpi4py has started MPI, and no member knows of the others yet."""
        for rank_1 in ("raise SystemExit", "hearsay.rank(); raise SystemExit"):
            job = self.first_join(rank_1, 10, ranks=3)
            self.assertEqual(job.code, 4, job)
            sentence = r"rank 1 is at the program's end, and this rank waits for it in hearsay.join\(\), which is coll"
            self.assertRegex(job.err, rf"(?m)^hearsay: \[rank [02]\] .*RankLeft|program.py:\d+: {sentence}")

    @needs_mpi4py
    def test_a_first_join_that_some_ranks_call_late(self):
        job = self.first_join("time.sleep(12)", 30, ranks=3)
        self.assertEqual(job.code, 0, job)
        told = [line for line in job.err.splitlines() if "seconds in hearsay.join()" in line]
        self.assertRegex("\n".join(told), r"^hearsay: \[rank 0\] has waited 1\d seconds in .* for rank 1; every.*$")

    def test_a_slow_rank_is_waited_for(self):
        """And calls may come after different numbers of steps where no step waits."""
        calls = "step,evaluate,averaged,state_dict,step,end,summary,leave,join"
        job = self.job(PROGRAM, "lockstep", calls, calls.replace("evaluate", "sleep,evaluate"))
        self.assertEqual(job.code, 0, job)
        job = self.job(PROGRAM, "asynchronous", "step,evaluate,leave", "sleep,step,step,step,evaluate,sleep,leave")
        self.assertEqual(job.code, 0, job)


if __name__ == "__main__":
    unittest.main()
