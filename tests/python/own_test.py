"""Graphs that are Python functions."""
import unittest

from support import JobCase


class OwnTest(JobCase):
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


if __name__ == "__main__":
    unittest.main()
