"""Clocks are aligned and merged as they should be: on traces whose offsets and delays are known."""
import json
import random
import unittest

from support import FolderTest

import numpy as np
from hearsay_analysis.trace import clocks, timeline
from hearsay_analysis.trace.files import packets, read_traces
from hearsay_analysis.trace.merge import merge


def rank_events(rank, offset):
    """Metadata and one span an iteration on both threads, 100 µs each; the communication's second half is a wait's."""
    events = [{"name": "process_name", "ph": "M", "pid": rank, "tid": 0, "args": {"name": f"rank {rank}"}}]
    for k in range(10):
        at = 1000.0 * (k + 1) + offset
        events += [
            {
                "name": name,
                "cat": "phase",
                "ph": "X",
                "pid": rank,
                "tid": tid,
                "ts": at + shift,
                "dur": length,
                "args": {"iteration": k},
            }
            for name, tid, shift, length in (
                ("compute", 0, 0.0, 100.0),
                ("put", 1, 50.0, 100.0),
                ("wait", 0, 100.0, 50.0),
            )
        ]
    return events


def make_traces(folder, offsets, edges, delay, packets_an_edge=10, hosts=None):
    """delay(sender, receiver, number) → µs. Offsets are what each rank's clock is ahead. With hosts, ranks also tell
    what their host's clock read at their 0."""
    ranks = len(offsets)
    events = [rank_events(rank, offsets[rank]) for rank in range(ranks)]
    for i, j in edges:
        for number in range(packets_an_edge):
            sent = 1000.0 * (number + 1) + 60
            flow = {"name": "packet", "cat": "packet", "id": f"{i}-{j}-{number}"}
            events[i].append({**flow, "ph": "s", "pid": i, "tid": 1, "ts": sent + offsets[i]})
            events[j].append(
                {**flow, "ph": "f", "bp": "e", "pid": j, "tid": 0, "ts": sent + delay(i, j, number) + offsets[j]}
            )
    folder.mkdir()
    for rank in range(ranks):
        other = {"schema_version": 1, "rank": rank, "ranks": ranks, "clock": "steady, 0 at the start of training"}
        if hosts:
            other |= {"host": hosts[rank], "origin_us": 5e9 - offsets[rank]}
        text = json.dumps({"displayTimeUnit": "ms", "otherData": other, "traceEvents": events[rank]})
        (folder / f"trace.rank{rank:04d}.json").write_text(text)
    return read_traces(folder)


def ring(ranks):
    return sorted(
        {(i, (i + step) % ranks) for i in range(ranks) for step in (1, ranks - 1)} - {(i, i) for i in range(ranks)}
    )


class Clocks(FolderTest):
    def offsets(self, ranks):
        dice = random.Random(ranks)
        return [0.0, *(dice.uniform(-5e5, 5e5) for _ in range(ranks - 1))]

    def test_equal_smallest_delays_give_exact_offsets(self):
        for ranks in (2, 3, 4, 8):
            offsets, dice = self.offsets(ranks), random.Random(1)
            traces = make_traces(
                self.folder / str(ranks),
                offsets,
                ring(ranks),
                lambda i, j, number: 7.0 if number == 3 else 7.0 + 100 * dice.random(),
            )
            found = clocks.align(packets(traces)[0], ranks)
            np.testing.assert_allclose(found.offsets, offsets, atol=1e-6)
            self.assertEqual(found.unknown, ())
            self.assertEqual([b for b in clocks.backwards(packets(traces)[0], found.offsets) if b > 1e-6], [])

    def test_error_of_a_pair_is_at_most_half_the_asymmetry(self):
        for there, back in ((5.0, 45.0), (300.0, 20.0), (0.0, 10.0)):
            traces = make_traces(
                self.folder / f"{there}",
                [0.0, 1234.5],
                [(0, 1), (1, 0)],
                lambda i, j, number, there=there, back=back: there if i == 0 else back,
            )
            found = clocks.align(packets(traces)[0], 2)
            self.assertLessEqual(abs(found.offsets[1] - 1234.5), abs(there - back) / 2 + 1e-6)
            self.assertAlmostEqual(found.uncertainty, (there + back) / 2)
            self.assertEqual([b for b in clocks.backwards(packets(traces)[0], found.offsets) if b > 1e-6], [])

    def test_ranks_of_one_host_need_no_packets(self):
        offsets = self.offsets(4)
        apart = {"edges": [(0, 1), (1, 0)], "delay": lambda i, j, number: 5.0 if i == 0 else 500.0}
        together = make_traces(self.folder / "together", offsets, hosts=["here"] * 4, **apart)
        np.testing.assert_allclose(clocks.of_one_host(together).offsets, offsets, atol=1e-3)
        self.assertTrue(any("one host" in line for line in merge(together)[1]))
        self.assertIsNone(clocks.of_one_host(make_traces(self.folder / "apart", offsets, **apart)))
        two = make_traces(self.folder / "two", offsets, hosts=["here", "here", "there", "there"], **apart)
        self.assertIsNone(clocks.of_one_host(two))

    def test_a_path_adds_up_and_rank_0_keeps_its_clock(self):
        offsets = [0.0, 100.0, -300.0, 900.0]
        traces = make_traces(
            self.folder / "path", offsets, [(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2)], lambda *_: 4.0
        )
        np.testing.assert_allclose(clocks.align(packets(traces)[0], 4).offsets, offsets, atol=1e-6)

    def test_ranks_that_nothing_connects_are_named(self):
        traces = make_traces(self.folder / "apart", [0.0, 10.0, 20.0], [(0, 1), (1, 0), (1, 2)], lambda *_: 4.0)
        self.assertEqual(clocks.align(packets(traces)[0], 3).unknown, (2,))
        self.assertTrue(any("not aligned" in line and "ranks 2" in line for line in merge(traces)[1]))

    def test_drift_is_reported(self):
        traces = make_traces(
            self.folder / "drift",
            [0.0, 0.0],
            [(0, 1), (1, 0)],
            lambda i, j, number: 5.0 + (10 * number if i == 0 else -10 * number),
        )
        self.assertIn("arrive before they were sent, by up to", merge(traces)[1][-1])


class Merge(FolderTest):
    def setUp(self):
        super().setUp()
        self.run = self.folder / "run"
        self.offsets = [0.0, -4000.0, 2500.0]
        self.traces = make_traces(self.run, self.offsets, ring(3), lambda *_: 20.0)

    def test_every_event_is_there_once_and_in_order(self):
        self.expect(0, "0 of 60 packets arrive before", "trace", self.run)
        merged = json.loads((self.run / "trace.json").read_text())
        before = [event for trace in self.traces for event in trace.events]
        self.assertEqual(len(merged["traceEvents"]), len(before))
        times = [event["ts"] for event in merged["traceEvents"] if "ts" in event]
        self.assertEqual(times, sorted(times))
        self.assertGreaterEqual(times[0], 0)

        def stripped(events):
            return sorted(json.dumps({k: v for k, v in e.items() if k != "ts"}, sort_keys=True) for e in events)

        self.assertEqual(stripped(merged["traceEvents"]), stripped(before))

    def test_what_happened_at_once_is_at_once(self):
        spans = [e for e in merge(self.traces)[0]["traceEvents"] if e["ph"] == "X" and e["name"] == "compute"]
        for k in range(10):
            starts = [e["ts"] for e in spans if e["args"]["iteration"] == k]
            self.assertEqual(len(starts), 3)
            self.assertAlmostEqual(max(starts), min(starts), places=5)

    def test_errors(self):
        self.expect(3, "no run folder", "trace", self.folder / "nowhere")
        self.expect(3, "report.trace=true", "trace", self.folder)
        file = self.run / "trace.rank0002.json"
        whole = file.read_text()
        file.write_text(whole[:200])
        self.expect(3, "trace.rank0002.json is not whole JSON", "trace", self.run)
        file.write_text(whole.replace('"ranks": 3', '"ranks": 4'))
        self.expect(3, "files of two runs are mixed", "trace", self.run)
        file.unlink()
        self.expect(3, "trace.rank0002.json", "trace", self.run)


class Overlap(FolderTest):
    def setUp(self):
        super().setUp()
        self.run = self.folder / "run"
        make_traces(self.run, [0.0, 300.0], [(0, 1), (1, 0)], lambda *_: 20.0)

    def test_hidden_fraction(self):
        """A put of 100 µs, of which 50 lie behind computing and 50 behind waiting."""
        trace, _ = merge(read_traces(self.run))
        self.assertAlmostEqual(timeline.hidden_fraction(trace, *timeline.window(trace, 2, 4)), 0.5)

    def test_intervals(self):
        self.assertEqual(timeline.union([(5, 6), (1, 3), (2, 4)]), [[1, 4], [5, 6]])
        self.assertEqual(timeline.shared([[0, 10]], [[2, 4], [9, 12]]), 3)

    def test_picture(self):
        self.expect(0, "50.0 %", "overlap", self.run, "--iterations", "2-4", "-o", self.folder / "picture.svg")
        self.assertIn("rank 1", (self.folder / "picture.svg").read_text())

    def test_usage(self):
        self.expect(
            2,
            "the trace has iterations 0 to 9",
            "overlap",
            self.run,
            "--iterations",
            "50-51",
            "-o",
            self.folder / "p.svg",
        )
        self.expect(2, "two whole numbers", "overlap", self.run, "--iterations", "5")
        self.expect(2, "must end in", "overlap", self.run, "-o", "picture.bmp")


if __name__ == "__main__":
    unittest.main()
