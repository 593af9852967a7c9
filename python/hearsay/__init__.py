"""Hearsay: a training loop of one's own in a decentralised, event-triggered job.

Every process of an MPI job holds a full model and trains it on its part of the data. It tells its neighbours in a graph
what has changed enough to be worth a message, and never waits for them if you do not want to:

    import hearsay, torch

    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    member = hearsay.join("gossip.yaml", model)          # or a dictionary
    for batch in member.share(loader):                   # this rank's part
        with member.step(optimizer) as step:             # sends, …, mixes, calls the optimizer
            step.loss = criterion(model(batch.x), batch.y)
            step.loss.backward()
    print(member.summary())                              # messages, bytes, staleness

started by `python3 -m hearsay launch -n 4 train.py`, by `mpirun -n 4 python3 train.py`, under Slurm, or after
`from mpi4py import MPI`.

    gossip.yaml:   exchange: {name: eventgrad, schedule: asynchronous, mixing: {name: arrival}}
                   topology: {graph: {name: ring}}
                   trigger:  {name: adaptive, horizon: 1.0}

A loop with `optimizer.step()` in it may stay as it is: `member = hearsay.wrap(model, optimizer, "gossip.yaml")` in
place of `DDP(model)`. `hearsay.transformers` and `hearsay.lightning` do that for these trainers. Replicas may be
several processes, of `fully_shard` or of DDP within a machine: `mesh=` of `join` and `wrap` says which of them gossip.

In the order in which one needs them: `rank` and `size`, `join`, `Member.share`, `Member.step`, `Member.evaluate`,
`Member.summary`, `report`. `help(hearsay.Member)` and `help(hearsay.join)` say the rest; `hearsay.errors` has what can
go wrong. A configuration of the program `hearsay` is one of `join`, too: what it says of model, data, optimizer and
training is left to the loop.

On the command line, `python3 -m hearsay list` and `… describe NAME` explain the algorithms and their keys, `… compare`,
`… report` and `… watch` look at run folders. docs/guide/python.md is the guide.
"""
from . import _mpi

_mpi.prefer_own()  # before the core is loaded

from . import errors
from ._core import Observation, version as __version__
from ._member import Member, Step, join
from ._process import rank, size
from ._reporting import report
from ._summary import Summary
from ._wrap import wrap

__all__ = ["join", "wrap", "rank", "size", "Member", "Step", "Summary", "Observation", "report", "errors"]
