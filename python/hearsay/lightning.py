"""Lightning's Trainer as a member of the job: a strategy.

    import hearsay.lightning
    trainer = Trainer(strategy=hearsay.lightning.Gossip("gossip.yaml"), …)
    trainer.fit(module, loader)
    print(trainer.strategy.member.summary())

Every process has a Trainer of one device. Rank 0 alone logs and saves checkpoints; what it decides, to stop early for
example, all do. What is logged and validated is each rank's own, `sync_dist=True` or not.
"""
from __future__ import annotations

import os
import pickle
from typing import Any, Mapping, Optional, Union

import numpy as np
from lightning.pytorch.strategies import SingleDeviceStrategy
from lightning.pytorch.utilities import rank_zero_only

from . import _member, _process, _wrap
from .errors import ConfigError


class Gossip(SingleDeviceStrategy):
    """Steps of the module's optimizer are the member's; loaders for training are dealt out, by `member.share`.

    config   as for `hearsay.join`
    device   of this process: "cpu", "cuda:0"
    more     what else `hearsay.join` takes: set, name, iterations, log …

    Accumulation, clipping, schedules and precisions are the Trainer's. `member` is the `hearsay.Member` from the
    beginning of `fit` on. ConfigError for more optimizers than one.
    """

    strategy_name = "hearsay"

    def __init__(
        self, config: Union[str, "os.PathLike[str]", Mapping[str, Any]], *, device: Any = "cpu", **more: Any
    ):
        super().__init__(device)
        self.config, self.more = config, more
        self.member: Optional[_member.Member] = None
        self.global_rank = rank_zero_only.rank = _process.rank()

    @property
    def is_global_zero(self) -> bool:
        """Rank 0 logs and saves."""
        return self.global_rank == 0

    def setup(self, trainer: Any) -> None:
        """The model is where it stays, and has its optimizer."""
        super().setup(trainer)
        if not self.optimizers or self.member is not None:
            return
        if len(self.optimizers) > 1:
            raise ConfigError(f"hearsay.lightning steps one optimizer, and the module has {len(self.optimizers)}")
        self.member = _member.join(self.config, self.model, optimizer=self.optimizers[0], **self.more)
        _wrap.step_by(self.member, self.optimizers[0])

    def process_dataloader(self, dataloader: Any) -> Any:
        """This rank's share, for training."""
        if self.member is None or not self.lightning_module.trainer.training:
            return dataloader
        return self.member.share(dataloader)

    def broadcast(self, obj: Any, src: int = 0) -> Any:
        """What rank 0 has, or the first rank that lives."""
        member = self.member
        if member is None or member.ranks == 1:
            return obj

        def work() -> Any:
            packed = np.frombuffer(pickle.dumps(obj), np.uint8).copy()
            length = np.array([len(packed)], np.int64)
            member._core.broadcast(length.view(np.uint8))
            if not member._core.is_first:
                packed = np.empty(int(length[0]), np.uint8)
            member._core.broadcast(packed)
            return pickle.loads(packed.tobytes())

        return member._together("a decision of the Trainer", work)

    def reduce_boolean_decision(self, decision: bool, all: bool = True) -> bool:
        """Rank 0's."""
        return bool(self.broadcast(decision))
