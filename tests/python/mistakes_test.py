"""Loops that train their ranks alone, or twice, without meaning to: noticed and said once, by rank 0."""
import unittest

from support import JobCase, needs_torch

LOOPS = """
    import copy, sys, numpy as np, torch, hearsay
    from torch.utils.data import DataLoader, TensorDataset
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(24, 3))
    loader = DataLoader(data, batch_size=2)
    def joined():
        torch.manual_seed(1)
        net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 1))
        plan = {"exchange": {"name": "allreduce"}, "report": {"directory": "run", "overwrite": True}}
        member = hearsay.join(plan, net)
        return member, net, torch.optim.SGD(net.parameters(), lr=0.01)
    def backward(net, x): net(x).square().mean().backward()
    def forgets_the_step(member, net, optimizer):
        for x, in member.share(loader): optimizer.zero_grad(); backward(net, x); optimizer.step()
    def forgets_the_step_in_numpy(member, *_):
        member.leave()
        member = hearsay.join({"report": {"directory": "run", "overwrite": True}}, {"x": np.zeros(3, np.float32)})
        for batch in member.share(list(range(4))): member.parameters["x"][0] -= batch
        member.leave()
    def steps_before_the_exchange(member, net, optimizer):
        for x, in member.share(loader):
            with member.step(): backward(net, x); optimizer.step()
    def steps_outside(member, net, optimizer):
        for x, in member.share(loader):
            with member.step(): backward(net, x)
            optimizer.step()
    def one_step_of_many(member, net, optimizer):
        for k, (x,) in enumerate(member.share(loader)):
            if k == 0:
                with member.step(optimizer): backward(net, x)
            else: backward(net, x); optimizer.step()
    def forgets_to_share(member, net, optimizer):
        for x, in loader:
            with member.step(optimizer): backward(net, x)
    def forgets_to_share_with_dropout(member, net, optimizer):
        torch.manual_seed(member.rank)
        for x, in loader:
            with member.step(optimizer):
                torch.nn.functional.dropout(net(x), 0.5).square().mean().backward()
    def forgets_to_share_what_is_shuffled(member, net, optimizer):
        torch.manual_seed(5)
        for x, in DataLoader(data, batch_size=2, shuffle=True):
            with member.step(optimizer): (net(x).square().mean() * (1 + member.rank)).backward()
    def shares_and_forgets_it(member, net, optimizer):
        member.share(loader)
        forgets_to_share(member, net, optimizer)
"""
MISTAKES = {
    "forgets_the_step": "member.step was never called",
    "forgets_the_step_in_numpy": "member.step was never called",
    "steps_before_the_exchange": "the parameters have changed inside of a step before its gradients were exchanged",
    "steps_outside": "all parameters change between the steps of member.step",
    "one_step_of_many": "all parameters change between the steps of member.step",
    "forgets_to_share": "they train on the same data; deal it out: for batch in member.share(loader)",
    "forgets_to_share_with_dropout": "all ranks had the same inputs: they train on the same data; deal it out",
    "forgets_to_share_what_is_shuffled": "all ranks had the same inputs: they train on the same data; deal it out",
    "shares_and_forgets_it": "they train on the same data; go through what member.share(loader) returns",
}


class MistakesTest(JobCase):
    @needs_torch
    def test_each_is_said_once_by_rank_0(self):
        run = """
    for loop in sys.argv[1:]:
        print(f"\\nloop {loop}", file=sys.stderr, flush=True)
        member, net, optimizer = joined()
        globals()[loop](member, net, optimizer)
        if "numpy" not in loop: print(member.summary()); member.summary(); member.leave()
            """
        job = self.good_job(LOOPS + run, *MISTAKES)
        warnings = [line for line in job.err.splitlines() if line.startswith("hearsay: warning: ")]
        self.assertEqual(len(warnings), len(MISTAKES), job)
        for warning, words in zip(warnings, MISTAKES.values()):
            self.assertIn(words, warning)
        self.assertIn("allreduce (lockstep) on 2 ranks: 0 steps", job.out)

    @needs_torch
    def test_the_optimizer_is_not_called_twice(self):
        for call in ("optimizer.step()", "step.exchange(); optimizer.step()",
                     "torch.cuda.amp.GradScaler(enabled=False).step(optimizer)"):
            job = self.job(
                LOOPS + f"""
    member, net, optimizer = joined()
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    with member.step(optimizer) as step:
        backward(net, data[:2][0]); {call}
            """,
                ranks=None,
            )
            self.assertEqual(job.code, 1, job)
            self.assertRegex(job.err, r"program.py:\d+: RuntimeError: optimizer.step\(\) was called inside of member")

    @needs_torch
    def test_what_is_legitimate_is_let_be(self):
        job = self.good_job(
            LOOPS + """
    import warnings; warnings.simplefilter("error")
    def accumulation(member, net, optimizer):
        for x, in member.share(loader):
            with member.step(optimizer, backward_passes=2): backward(net, x); backward(net, x)
    def closure(member, net, optimizer):
        optimizer = torch.optim.LBFGS(net.parameters(), lr=0.01, max_iter=2)
        for x, in member.share(loader):
            def again():
                optimizer.zero_grad(); loss = net(x).square().mean(); loss.backward(); return loss
            with member.step(lambda: optimizer.step(again)): backward(net, x)
    def scaler(member, net, optimizer):
        scaler = torch.cuda.amp.GradScaler(enabled=False)
        for x, in member.share(loader):
            with member.step(lambda: scaler.step(optimizer)): scaler.scale(net(x).square().mean()).backward()
    def schedule(member, net, optimizer):
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
        for x, in member.share(loader):
            with member.step(optimizer): backward(net, x)
            schedule.step()
    def exchanged(member, net, optimizer):
        for x, in member.share(loader):
            with member.step() as step:
                backward(net, x); step.exchange()
                torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0); optimizer.step()
    def loads(member, net, optimizer):
        state = copy.deepcopy(net.state_dict())
        for k, (x,) in enumerate(member.share(loader)):
            with member.step(optimizer): backward(net, x)
            if k % 2: net.load_state_dict(state)
        net.load_state_dict(state); net.load_state_dict(state)
    def edits(member, net, optimizer):
        for k, (x,) in enumerate(member.share(loader)):
            with member.step(optimizer):
                with torch.no_grad(): net[0].weight.clamp_(-1, 1)
                backward(net, x)
            with torch.no_grad(): net[1].bias.zero_()
    def only_evaluates(member, net, optimizer):
        net.load_state_dict(net.state_dict())
        member.evaluate(lambda: {"loss": float(net(data[:][0]).sum())})
    def deals_by_itself(member, net, optimizer):
        for k in range(member.rank, 24, member.ranks):
            with member.step(optimizer): backward(net, data[k][0][None])
    def draws_by_itself(member, net, optimizer):
        torch.manual_seed(member.rank)
        for x, in DataLoader(data, batch_size=2, shuffle=True):
            with member.step(optimizer): backward(net, x)
    def is_given_no_data(member, net, optimizer):  # the inputs are the same for ever; ranks differ elsewhere
        for k in range(9):
            with member.step(optimizer): (net(torch.ones(1, 3)).square().mean() * (1 + member.rank)).backward()
    def evaluates_between(member, net, optimizer):
        for k, (x,) in enumerate(member.share(loader)):
            with member.step(optimizer): backward(net, x)
            net(torch.full((1, 3), float(k)))  # on all ranks the same, and no step
    loops = (accumulation, closure, scaler, schedule, exchanged, loads, edits, only_evaluates, deals_by_itself,
             draws_by_itself, is_given_no_data, evaluates_between)
    for loop in loops:
        member, net, optimizer = joined()
        loop(member, net, optimizer)
        member.summary(); member.leave()
            """
        )
        self.assertNotIn("warning", job.err)


if __name__ == "__main__":
    unittest.main()
