"""state_dict and load_state_dict: a loop that is stopped and goes on ends with the bits of one that was not."""
import json
import unittest

from support import JobCase, needs_torch

# Trains up to step 8 and saves, or goes on from there, or does all 20 steps.
TORCH = """
    import json, os, sys, torch, hearsay
    part, exchange = sys.argv[1], json.loads(sys.argv[2])
    rank = int(os.environ["OMPI_COMM_WORLD_RANK"])
    torch.manual_seed(5)
    net = torch.nn.Sequential(torch.nn.Linear(6, 20), torch.nn.BatchNorm1d(20), torch.nn.Tanh(), torch.nn.Linear(20, 3))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    x, y = torch.randn(96, 6), torch.randint(3, (96,))
    plan = {"report": {"directory": "run-" + part, "overwrite": True}, **exchange}
    member = hearsay.join(plan, net, optimizer=optimizer)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=8, shuffle=True)
    file = f"checkpoint.{rank}.pt"
    if part == "second":
        saved = torch.load(file)
        net.load_state_dict(saved["model"]); optimizer.load_state_dict(saved["optimizer"])
        member.load_state_dict(saved["member"])
    batches = member.share(loader)
    assert len(batches) == 4  # 32 examples of a rank in an epoch
    for epoch in range({"whole": 5, "first": 2, "second": 3}[part]):
        for inputs, labels in batches:
            with member.step(optimizer):
                torch.nn.functional.cross_entropy(net(inputs), labels).backward()
    if part == "first":
        state = {"member": member.state_dict(), "model": net.state_dict(), "optimizer": optimizer.state_dict()}
        torch.save(state, file)
    member.summary()
    if part != "first":
        counts = member.counts()
        print(json.dumps({"rank": rank, "hash": member.replica_hash, "steps": member.steps,
                          "messages": counts["messages"], "payload": counts["payload_bytes"]}))
"""
EXCHANGES = (
    {"exchange": {"name": "dpsgd", "correction": {"name": "drift"}}},
    {
        "exchange": {"name": "eventgrad", "mixing": {"name": "arrival"}},
        "trigger": {"name": "adaptive", "warmup_iterations": 2, "maximum_silence": 6},
        "sparsify": {"selector": {"name": "topk", "density": 0.2}},
    },
    {"exchange": {"name": "gtopk"}, "sparsify": {"selector": {"name": "topk", "density": 0.1}}},
    {"exchange": {"name": "gradient_dropping"}, "sparsify": {"selector": {"name": "sampled", "density": 0.2}}},
    {"exchange": {"name": "lkgs"}, "sparsify": {"selector": {"name": "topk", "density": 0.1}}},
    {"exchange": {"name": "gossip_outer", "local_steps": 3}},
)
# Numpy on two ranks; {} is code between the join and the steps.
NUMPY = """
    import pickle, sys, numpy as np, hearsay
    member = hearsay.join({{"exchange": {{"name": "{exchange}"}}, "topology": {{"graph": {{"name": "{graph}"}}}},
                           "report": {{"directory": "run", "overwrite": True}}}}, {{"w": np.ones({n}, np.float32)}})
    file = f"state.{{member.rank}}"
    {code}
    for k in range(3):
        with member.step(lambda: None):
            member.gradients["w"][...] = 1
    pickle.dump(member.state_dict(), open(file, "wb"))
"""


def numpy_job(code="", exchange="eventgrad", graph="ring", n=4):
    return NUMPY.format(code=code, exchange=exchange, graph=graph, n=n)


LOAD = "member.load_state_dict(pickle.load(open(file, 'rb')))"


class StateTest(JobCase):
    @needs_torch
    def test_a_stopped_loop_ends_with_the_bits_of_one_that_was_not(self):
        for exchange in EXCHANGES:
            with self.subTest(exchange=exchange):
                whole, first, second = (
                    self.good_job(TORCH, part, json.dumps(exchange), ranks=3) for part in ("whole", "first", "second")
                )
                self.assertEqual(first.said, [])
                self.assertEqual([one["steps"] for one in whole.said], [20, 20, 20])
                self.assertEqual(whole.said, second.said)
                both = [self.summary(run)["events"] for run in ("run-whole", "run-second")]
                self.assertEqual(both[0], both[1], "counts are of the whole training")

    @needs_torch
    def test_asynchronous_ranks_go_on(self):
        exchange = {"exchange": {"name": "eventgrad", "schedule": "asynchronous", "mixing": {"name": "arrival"}}}
        self.good_job(TORCH, "first", json.dumps(exchange), ranks=3)
        second = self.good_job(TORCH, "second", json.dumps(exchange), ranks=3)
        self.assertEqual([one["steps"] for one in second.said], [20, 20, 20])

    def test_what_does_not_fit_is_refused_with_a_sentence(self):
        self.good_job(numpy_job())
        other = "state = pickle.load(open(f'state.{1 - member.rank}', 'rb')); member.load_state_dict(state)"
        short = "s = pickle.load(open(file, 'rb')); s['state'] = s['state'][:-9]; member.load_state_dict(s)"
        later = f"\n    with member.step(lambda: None): pass\n    {LOAD}"
        for program, ranks, sentence in (
            (numpy_job(LOAD), 3, "was saved by 2 ranks, and this job has 3"),
            (numpy_job(other), 2, "here: 0 of 2; in the saved state: 1 of 2"),
            (numpy_job(LOAD, exchange="dpsgd"), 2, "here: dpsgd, lockstep; in the saved state: eventgrad, lockstep"),
            (numpy_job(LOAD, n=5), 2, "here: w 5"),
            (numpy_job(later), 2, "after 1 steps; load between hearsay.join and the first step"),
            (numpy_job("member.load_state_dict({'model': 1})"), 2, "it has no epochs, ranks, state"),
            (numpy_job(short), 2, "the member's state"),
        ):
            with self.subTest(sentence=sentence):
                if ranks == 3:
                    program = program.replace("{member.rank}", "{member.rank % 2}")
                job = self.job(program, ranks=ranks)
                self.assertNotEqual(job.code, 0, job)
                self.assertIn(sentence, job.err)
                self.good_job(numpy_job())


if __name__ == "__main__":
    unittest.main()
