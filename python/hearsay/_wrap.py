"""A loop that stays as it is: each `optimizer.step()` is a step of the member.

    a step begins   in lockstep with its first gradient, which is when nothing moves and there is time to send; where
                    ranks are asynchronous before the model is gone through, since what is sent may move parameters, and
                    so where nobody tells when there is a gradient (shards); at the latest in optimizer.step()
    it ends         in optimizer.step(): the exchange, then what the optimizer does

So several backward passes, clipped gradients, schedules and groups need no word. Gradients are the loop's: they are not
set to 0 here, and what leaves is what they are when `optimizer.step()` is called.

A GradScaler that has found a gradient that is not finite calls no optimizer. Of one that says it can deal with that
(`_step_supports_amp_scaling`, torch 2), it asks the step all the same and says what it has found. Then this rank's
gradient is 0, and its optimizer steps only if something has come from others: under global exchanges all ranks make the
same step, elsewhere this one makes none.
"""
from __future__ import annotations

import functools
import os
import types
from typing import Any, Mapping, Optional, Union

from . import _blocks, _ddp, _member
from .errors import ConfigError


def wrap(
    model: Any,
    optimizer: Any,
    config: Union[str, "os.PathLike[str]", Mapping[str, Any]],
    *,
    backward_passes: Optional[int] = None,
    **join: Any,
) -> _member.Member:
    """In place of `DDP(model)`: from here on each `optimizer.step()` is a step of the job, in a loop that stays as it
    is. Collective, as `hearsay.join`. Model and optimizer stay the objects that they are::

        member = hearsay.wrap(model, optimizer, "gossip.yaml")
        for x, y in member.share(loader):
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()

    A step is an optimizer's: gradients may be accumulated over several backward passes, clipped and scaled before it.
    Schedules may be made before or after. Passes in evaluation mode or without gradients are none of a step.

    model            a torch.nn.Module; one that is compiled, too. Of a DistributedDataParallel, whose process_group is
                     that of one machine, and with `mesh`, the processes with this one's place on the other machines:
                     each process gossips and steps some of the parameters, whole tensors, and hands them on within the
                     machine, where all have the same parameters after each step. Its optimizer has the state of its own
                     ones, and `member.parameters` are these. Gradients are those that DDP's communication hook makes
    optimizer        a torch optimizer of its parameters, or of some of them. LBFGS goes through the model several
                     times a step: use `member.step` for it
    config           as for `hearsay.join`
    backward_passes  that make one gradient, each of them final: layer-wise exchanges (`allreduce`, `lkgs`) then send
                     during the last one. Gradients must not be clipped or scaled after it. Default: they leave in
                     `optimizer.step()`
    join             what else `hearsay.join` takes: set, name, data, iterations, log, mesh …

    With a GradScaler (torch 2), a step whose gradient is not finite on this rank counts as one with a gradient of
    0; the optimizer then steps only by what has come from others. `member.loss = loss` before `optimizer.step()`,
    and the run folder has it. `evaluate`, `summary` and the like between a backward pass and its step make a step
    without a gradient of what has begun. After `member.leave()` the optimizer's steps are its own.

    Raises what `hearsay.join` raises, and ConfigError where the optimizer has no parameter of the model, and for a
    DistributedDataParallel without `mesh`, with parameters of two bytes, or of more processes than trained tensors.
    """
    if not _blocks.lies_in_torch(model):
        raise ConfigError(f"hearsay.wrap takes a torch.nn.Module, not a {type(model).__name__}; use hearsay.join")
    if backward_passes is not None and backward_passes < 1:
        raise ValueError(f"backward_passes is a whole number from 1 up, not {backward_passes}")
    _require_steps_of(model, optimizer)
    if _ddp.is_ddp(model):
        model, join = _part_of(model, backward_passes, join)
    member = _member.join(config, model, optimizer=optimizer, **join)
    step_by(member, optimizer, backward_passes)
    return member


def _part_of(ddp, backward_passes, join):
    """(what this process exchanges, what `hearsay.join` is told besides)"""
    if join.get("mesh") is None:
        raise ConfigError(
            "hearsay.wrap of a DistributedDataParallel needs mesh=…, the processes with this one's place on the other "
            "machines, such as mesh['machine']; where every process is a replica, wrap the model itself"
        )
    if backward_passes is not None:
        raise ConfigError(
            "backward_passes=… sends during the backward pass, and gradients of a DistributedDataParallel are ready "
            "after it: leave it out"
        )
    known = {"name": type(ddp.module).__name__, "data_mesh": ddp.process_group}
    return _ddp.OwnPart(ddp), {**known, **join}


def step_by(member: _member.Member, optimizer: Any, backward_passes: Optional[int] = None) -> None:
    """From here on each `optimizer.step()` is a step of this member."""
    loop = _Loop(member, optimizer, backward_passes)
    member._begin_step = loop.begin
    if not (member.lockstep and member._block.on_gradient(member._gradient_arrived)):
        member._block.on_training_pass(loop.begin)
    member._watch.expects_input = True  # the first one comes before the first step


class _Loop:
    """One that knows of no step."""

    def __init__(self, member, optimizer, backward_passes):
        self.member, self.optimizer, self.backward_passes = member, optimizer, backward_passes
        self.apply = optimizer.step  # a schedule's, perhaps, which counts

        @functools.wraps(self.apply)
        def step(_, closure=None):
            return self.step(closure)

        del step.__wrapped__  # is bound: torch asks this one for its signature
        step.applies = self.apply
        optimizer.step = types.MethodType(step, optimizer)  # schedules want a method
        if hasattr(optimizer, "register_step_pre_hook"):  # torch 2
            optimizer._step_supports_amp_scaling = True

    def begin(self):
        """A pass is gone through, whatever for."""
        if self.member._open_step is None and not self.member._averages and not self.member._left:
            self.open()

    def open(self):
        return _member.Step(self.member, self.optimizer, None, self.backward_passes, outside=True).__enter__()

    def step(self, closure):
        member = self.member
        if member._left:
            return member._block.step_alone(lambda: self.apply(*(() if closure is None else (closure,))))
        step = member._open_step or self.open()
        loss = self._evaluated(closure)
        step.loss, member.loss = member.loss, None
        if self._has_overflowed():
            step.loss = None
            step._make_without_gradient()
        else:
            step.__exit__(None, None, None)
        return loss

    def _evaluated(self, closure):
        if closure is None:
            return None
        import torch

        with torch.enable_grad():
            loss = closure()
        if self.member.loss is None and getattr(loss, "numel", lambda: 0)() == 1:
            self.member.loss = loss
        return loss

    def _has_overflowed(self):
        """Whether a GradScaler has found so. Gradients are not scaled any more."""
        optimizer, found = self.optimizer, getattr(self.optimizer, "found_inf", None)
        if found is None:
            return False
        if optimizer.grad_scale is not None:
            inverse = optimizer.grad_scale.double().reciprocal().float()
            for group in optimizer.param_groups:
                for tensor in group["params"]:
                    if tensor.grad is not None:
                        tensor.grad.mul_(inverse.to(tensor.grad.device))
        optimizer.grad_scale = optimizer.found_inf = None  # the optimizer's own step may look at them, too
        return bool(found)


def _require_steps_of(model, optimizer):
    import torch

    if isinstance(optimizer, (list, tuple)):
        raise ConfigError(
            "hearsay.wrap makes one optimizer's steps those of the job, and was given several; use hearsay.join, and "
            "in the loop `with member.step([muon, adamw]):`"
        )
    if isinstance(optimizer, torch.optim.LBFGS):
        raise ConfigError(
            "LBFGS takes several gradients a step, and hearsay.wrap exchanges one; use hearsay.join, and in the loop "
            "`with member.step(lambda: optimizer.step(closure)):`"
        )
    own = {id(tensor) for tensor in model.parameters()}
    if not any(id(tensor) in own for group in optimizer.param_groups for tensor in group["params"]):
        raise ConfigError(
            "the optimizer has no parameter of the model that hearsay.wrap was given: make it of model.parameters(), "
            "after anything that replaces them"
        )
