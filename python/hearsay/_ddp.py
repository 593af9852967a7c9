"""torch's DistributedDataParallel within a machine, gossip between machines.

    machines = init_device_mesh("cuda", (2, 8), mesh_dim_names=("machine", "local"))
    ddp = DDP(model, process_group=machines["local"].get_group())
    member = hearsay.wrap(ddp, optimizer, "gossip.yaml", mesh=machines["machine"])

DDP's communication hook, its own or one that was registered, makes the gradients one within the machine, bucket by
bucket during the backward pass. Every process of a machine owns some of the parameters, whole tensors of about the same
size together. In `optimizer.step()` it

    mixes its own   with those of the processes that own the same on other machines, as any member does
    steps its own   the optimizer's state of a parameter is that of its owner alone
    hands them on   to the others of its machine

Hence everything is sent between machines once, whatever the exchange does, and the processes of a machine have the same
parameters, to the last bit.
"""
from __future__ import annotations

import sys
from contextlib import contextmanager

from . import _shards
from ._torch_block import TorchBlock
from .errors import ConfigError


def is_ddp(model):
    """Whether it is a DistributedDataParallel; torch is not imported for that."""
    parallel = getattr(sys.modules.get("torch"), "nn", None)
    return parallel is not None and isinstance(model, parallel.parallel.DistributedDataParallel)


class OwnPart(TorchBlock):
    """The block of one process of a machine: the parameters that it owns. The others stay where they are."""

    def __init__(self, ddp):
        import torch

        machine = _shards.group_of(ddp.process_group, "the process_group of DistributedDataParallel")
        trained = {name: tensor for name, tensor in ddp.module.named_parameters() if tensor.requires_grad}
        _require_parts(torch, trained, len(machine.ranks))
        parts = _balanced({name: tensor.numel() for name, tensor in trained.items()}, len(machine.ranks))
        self.others = [trained[name] for owner, part in enumerate(parts) if owner != machine.rank for name in part]
        super().__init__(ddp.module, parts[machine.rank])
        self.machine, self.process_group = machine, ddp.process_group
        self.owned = [[trained[name] for name in part] for part in parts]

    def on_gradient(self, ready):
        """Nobody: gradients are this process's until DDP has summed them."""
        return False

    def assign(self):
        super().assign()
        self.spread()

    def spread(self):
        """Every process of the machine has the values of all owners. Collective within the machine."""
        distributed = self.torch.distributed
        if not distributed.is_initialized():
            return  # the program has ended that, and needs them no more
        for owner, tensors in zip(self.machine.ranks, self.owned):
            for alike in _by_kind(tensors):
                flat = self.torch.cat([tensor.data.reshape(-1) for tensor in alike])
                distributed.broadcast(flat, owner, group=self.process_group)
                if tensors is not self.owned[self.machine.rank]:
                    for tensor, values in zip(alike, flat.split([tensor.numel() for tensor in alike])):
                        tensor.data.copy_(values.view_as(tensor))

    @contextmanager
    def applying(self):
        with self._without_others(), super().applying():
            yield

    def step_alone(self, apply):
        with self._without_others():
            found = apply()
        self.spread()
        return found

    @contextmanager
    def _without_others(self):
        """Optimizers leave parameters alone that have no gradient."""
        gradients = [tensor.grad for tensor in self.others]
        for tensor in self.others:
            tensor.grad = None
        try:
            yield
        finally:
            for tensor, gradient in zip(self.others, gradients):
                tensor.grad = gradient


def _balanced(lengths, parts):
    """Names, by part: the longest tensors first, each to whom has least; in the model's order."""
    owner, held = {}, [0] * parts
    for name in sorted(lengths, key=lengths.get, reverse=True):
        owner[name] = held.index(min(held))
        held[owner[name]] += lengths[name]
    return [[name for name in lengths if owner[name] == part] for part in range(parts)]


def _by_kind(tensors):
    kinds = {}
    for tensor in tensors:
        kinds.setdefault((tensor.dtype, tensor.device), []).append(tensor)
    return kinds.values()


def _require_parts(torch, trained, processes):
    if len(trained) < processes:
        raise ConfigError(
            f"the model has {len(trained)} tensors that are trained, and the machine {processes} processes, of which "
            f"each owns at least one: give DistributedDataParallel a smaller process_group"
        )
    for name, tensor in trained.items():
        if tensor.dtype in (torch.bfloat16, torch.float16):
            raise ConfigError(
                f"the parameter '{name}' is {tensor.dtype}, whose master copy DistributedDataParallel would lose sight "
                f"of: keep it float32, and compute in {tensor.dtype} by torch.autocast"
            )
