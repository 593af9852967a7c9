"""Hugging Face's Trainer as a member of the job.

    import hearsay.transformers
    trainer = Trainer(model, args, train_dataset=…)
    member = hearsay.transformers.join("gossip.yaml", trainer)
    trainer.train()

Every process has a Trainer that knows of no other one: start the processes so that Accelerate forms no job of its own.
What the Trainer evaluates, logs and saves is then this rank's; rank 0 alone logs and saves.
"""
from __future__ import annotations

import os
from typing import Any, Mapping, Union

import torch
import transformers

from . import _member, _wrap
from .errors import ConfigError


def join(
    config: Union[str, "os.PathLike[str]", Mapping[str, Any]], trainer: transformers.Trainer, **more: Any
) -> _member.Member:
    """Makes the trainer's model a member of the job, its optimizer's steps the member's, and its training data this
    rank's share. Call it after `Trainer(…)` and before `trainer.train()`, on all ranks.

    config   as for `hearsay.join`
    trainer  that of this process. Gradient accumulation, clipping, schedules and bf16 are its own business; the
             training data need a length
    more     what else `hearsay.join` takes: set, name, iterations, log …

    Returns the `Member`. `with member.averaged(): trainer.save_model()` after training saves the average. Raises
    ConfigError where Accelerate has formed a job of its own, for fp16, and for training data without a length.
    """
    _require_alone(trainer)
    member = _member.join(config, trainer.model, **more)
    draws = trainer._get_train_sampler
    trainer._get_train_sampler = lambda *given, **named: _shared(member, draws(*given, **named))
    is_first = lambda: member.rank == 0
    trainer.is_world_process_zero = trainer.is_local_process_zero = is_first  # these log
    trainer.state.is_world_process_zero = trainer.state.is_local_process_zero = is_first()
    if not is_first():
        trainer.save_model = lambda *_, **__: None
    trainer.add_callback(Gossip(member))
    return member


class Gossip(transformers.TrainerCallback):
    """What happens when the Trainer has made its optimizer, and at its steps."""

    def __init__(self, member: _member.Member):
        self.member = member

    def on_train_begin(self, args: Any, state: Any, control: Any, optimizer: Any = None, **_: Any) -> None:
        """The optimizer is there."""
        optimizer = getattr(optimizer, "optimizer", optimizer)  # Accelerate's has torch's
        if not hasattr(optimizer.step, "applies"):
            _wrap.step_by(self.member, optimizer)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
        """Rank 0 alone saves."""
        if self.member.rank != 0:
            control.should_save = False
        return control

    on_epoch_end = on_step_end


def _shared(member, sampler):
    if sampler is None:
        raise ConfigError("hearsay.transformers deals out training data that have a length; give the Trainer such")
    return member.share(sampler)


def _require_alone(trainer):
    if trainer.args.world_size > 1 or trainer.args.n_gpu > 1:
        raise ConfigError(
            f"the Trainer has {trainer.args.world_size} processes and {trainer.args.n_gpu} GPUs of its own, and "
            f"averages gradients over them: start the processes by mpirun or `python3 -m hearsay launch`, without "
            f"use_cpu=True in TrainingArguments (Accelerate forms a job of the ranks then), and give each one GPU at "
            f"most (CUDA_VISIBLE_DEVICES)"
        )
    if trainer.args.fp16:
        raise ConfigError("hearsay.transformers does not work with fp16=True, whose scaler hides steps; use bf16=True")
    if isinstance(trainer.train_dataset, torch.utils.data.IterableDataset):
        _shared(None, None)
