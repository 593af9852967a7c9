"""Replicas of several processes: those which hold the same shard, one process of every replica, gossip in a job of
their own."""
from __future__ import annotations

import os
import sys
import zlib
from typing import Any, NamedTuple, Optional, Tuple

from . import _staged, _store
from .errors import ConfigError


class Group(NamedTuple):
    """The processes of one dimension of a mesh.

    ranks   of torch.distributed, in that dimension's order
    rank    this process's number among them, from 0
    """

    ranks: Tuple[int, ...]
    rank: int

    @property
    def shard(self) -> int:
        """What tells apart groups that have no process in common: the smallest rank. It counts shards from 0 where
        replicas are the first dimension of the mesh."""
        return min(self.ranks)

    def folder(self, directory: str) -> str:
        return os.path.join(directory, f"shard-{self.shard}")

    def seat(self) -> Tuple[int, int, str]:
        """(rank, ranks, a name), as the core asks for them."""
        return self.rank, len(self.ranks), f"replicas-{self.shard}-{zlib.crc32(repr(self.ranks).encode()):08x}"

    def store(self, job: str) -> _store.Store:
        """Where these processes meet: each group has keys of its own there."""
        distributed = sys.modules["torch"].distributed
        store = distributed.distributed_c10d._get_default_store()
        return _store.Store(store, job, len(self.ranks), "the store of torch.distributed")


def group_of(mesh: Any, what: str) -> Group:
    """The group of a DeviceMesh of one dimension, or of a ProcessGroup. ConfigError for anything else; `what` names
    it."""
    distributed = getattr(sys.modules.get("torch"), "distributed", None)
    if hasattr(mesh, "get_coordinate") and hasattr(mesh, "mesh_dim_names"):
        if mesh.ndim != 1:
            names = mesh.mesh_dim_names or tuple(range(mesh.ndim))
            raise ConfigError(
                f"{what} has {mesh.ndim} dimensions, {', '.join(map(str, names))}, and one is wanted: {what}["
                f"{names[0]!r}], or another one, of a mesh whose dimensions have names"
            )
        coordinate = mesh.get_coordinate()
        if not coordinate:
            raise _not_in(what, mesh.mesh.tolist(), distributed)
        return Group(tuple(mesh.mesh.tolist()), coordinate[0])
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        raise ConfigError(
            f"{what} is a DeviceMesh of one dimension or a ProcessGroup, and torch.distributed is not initialised: "
            f"call torch.distributed.init_process_group first"
        )
    if mesh is distributed.GroupMember.NON_GROUP_MEMBER:
        raise _not_in(what, None, distributed)
    if not isinstance(mesh, distributed.ProcessGroup):
        raise ConfigError(f"{what} is a DeviceMesh of one dimension or a ProcessGroup, not a {type(mesh).__name__}")
    ranks = tuple(distributed.distributed_c10d.get_process_group_ranks(mesh))
    return Group(ranks, distributed.get_rank(mesh))


def _not_in(what, ranks, distributed):
    those = "" if ranks is None else f", which are {', '.join(map(str, ranks))}"
    return ConfigError(
        f"rank {distributed.get_rank()} of torch.distributed is none of {what}{those}: let every process call it with "
        f"the group that it belongs to itself, or leave this process out"
    )


def seats(model: Any, mesh: Any, data_mesh: Any) -> Tuple[Optional[Group], Optional[Tuple[int, int]]]:
    """What `join` is told: the group that gossips, and (rank, ranks), by which data are dealt out. (None, None) where
    replicas are single processes."""
    if mesh is None and data_mesh is None:
        return None, None
    if mesh is None:
        raise ConfigError("data_mesh=… says which processes of a replica get data of their own: give mesh=…, too")
    replicas = group_of(mesh, "mesh")
    if len(replicas.ranks) == 1:
        raise ConfigError(
            f"mesh is one process, rank {replicas.ranks[0]} of torch.distributed: one replica has nobody to gossip "
            f"with. Make the mesh of two replicas at least, or train without hearsay"
        )
    data = _data_group(model, data_mesh)
    if data is None:
        return replicas, (replicas.rank, len(replicas.ranks))
    return replicas, (replicas.rank * len(data.ranks) + data.rank, len(replicas.ranks) * len(data.ranks))


def _data_group(model, data_mesh):
    """The processes of a replica that get data of their own; None where all get the same.

    Those of `fully_shard` do, where it has one dimension; those of tensor parallelism must not."""
    if data_mesh is not None:
        return group_of(data_mesh, "data_mesh")
    if not any(map(is_fully_sharded, getattr(model, "modules", tuple)())):
        return None
    meshes = {tensor.device_mesh for tensor in model.parameters() if _staged.is_shard(tensor)}
    if len(meshes) != 1 or next(iter(meshes)).ndim != 1:
        raise ConfigError(
            "the model is sharded over more than one dimension, and which of them have data of their own cannot be "
            "seen: say hearsay.join(…, data_mesh=mesh['data']), by the name of that dimension"
        )
    return group_of(meshes.pop(), "the model's mesh")


def is_fully_sharded(part: Any) -> bool:
    """Whether torch's `fully_shard` has been called on this module."""
    return hasattr(part, "reshard") and hasattr(part, "unshard")


def require_whole_replicas(plan: Any) -> None:
    """ConfigError where the configuration lets single ranks come and go."""
    if plan.others_go_on or plan.others_may_come:
        raise ConfigError(
            "train.on_failure: continue and train.joins are for replicas of one process: a replica cannot go on "
            "without one of its shards; leave them out where there is a mesh"
        )


def require_no_copies(parameters: Any) -> None:
    """Where ranks are asynchronous, each process mixes when something comes: what several of a replica hold alike
    would not stay alike. ConfigError with its name."""
    if not any(hasattr(tensor, "placements") for tensor in parameters.values()):
        return  # whoever has cut the model by hand knows
    for name, tensor in parameters.items():
        if not _staged.is_cut(tensor):
            raise ConfigError(
                f"several processes of a replica hold the whole parameter '{name}', and asynchronous ranks would part "
                f"its copies: use exchange.schedule: lockstep, or shard it, or freeze it"
            )
