#!/usr/bin/env python3
"""One rank of a job that cannot do without it is stopped. For less than train.failure_timeout_s it is slow, and the run
is what it would have been; for longer the job ends and names it."""
import signal

import jobs

BASE = {
    "seed": 3,
    "model": {"name": "mlp", "hidden": [128]},
    "data": {"name": "synthetic_digits", "train_size": 1536, "test_size": 64, "batch_size": 8},
    "train": {"epochs": 60, "evaluate_every_epochs": 0, "failure_timeout_s": 3},
    "report": {"every_iterations": 7},
}
EXCHANGES = (
    "{name: dpsgd}", "{name: eventgrad}", "{name: allreduce}", "{name: gtopk}", "{name: allreduce, method: library}",
    "{name: lkgs}", "{name: diloco, local_steps: 5}", "{name: noloco, local_steps: 5}",
)
SHORT = "train.epochs=8"


class StillTest(jobs.JobCase):
    BASE, RANKS = BASE, 3

    def test_for_good(self):
        """While a job waits for the rank that stands still, the next one starts."""
        stopped = []
        for number, exchange in enumerate(EXCHANGES):
            victim = self.random.randrange(self.RANKS)
            job = self.begin(f"run-{number}", f"exchange={exchange}").trains()
            job.signal(signal.SIGSTOP, victim)
            stopped.append((exchange, victim, job))
            if number % 2 == 1:  # no more than two at a time
                self.end(stopped)
        self.end(stopped)

    def end(self, stopped):
        while stopped:
            exchange, victim, job = stopped.pop(0)
            with self.subTest(exchange=exchange, victim=victim):
                self.assertEqual(job.ended(), 4, job)
                self.assertRegex(job.said(), rf"rank {victim}\b.*train\.failure_timeout_s")

    def test_for_less_than_the_time_out_it_is_slow(self):
        for name in ("dpsgd", "allreduce"):
            with self.subTest(exchange=name):
                settings = (f"exchange.name={name}", SHORT)
                whole = self.finish(f"whole-{name}", *settings).summary()
                job = self.begin(f"slow-{name}", *settings, "train.failure_timeout_s=20").trains()
                job.stands_still(1, 3)
                summary = job.ends_well()
                self.assertEqual(summary["replica_hash"], whole["replica_hash"], job)
                self.assertEqual(summary["payload_bytes"], whole["payload_bytes"], job)

    def test_the_launcher_goes_on_from_a_checkpoint(self):
        settings = ("exchange.name=dpsgd", SHORT)
        whole = self.finish("whole", *settings).summary()
        job = self.begin("run", *settings, "train.checkpoint.every_iterations=100", launch=("--restarts", "1")).trains()
        job.signal(signal.SIGSTOP, self.random.randrange(self.RANKS))
        summary = job.ends_well()
        self.assertRegex(job.said(), "0 restarts are left")
        self.assertEqual(summary["replica_hash"], whole["replica_hash"], job)


if __name__ == "__main__":
    jobs.main(__name__)
