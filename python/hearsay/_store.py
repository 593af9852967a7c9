"""torch's store as the place where the processes of a job meet, where nobody has named a folder."""
from __future__ import annotations

import os
import sys
from typing import Any, List, Optional

ABSENT = "hearsay: nothing is here"


class Store:
    """Short texts by key. `compare_set` is the one operation of torch's stores that neither waits for a key nor needs
    it: where a key is absent, it returns what was expected."""

    def __init__(self, store: Any, job: str, ranks: int, name: str):
        self._store, self._prefix, self._ranks, self.name = store, f"hearsay/{job}/", ranks, name

    def put(self, key: str, text: str) -> None:
        self._store.set(self._prefix + key, text)

    def put_if_absent(self, key: str, text: str) -> str:
        return self._store.compare_set(self._prefix + key, "", text).decode()

    def get(self, key: str) -> Optional[str]:
        found = self._store.compare_set(self._prefix + key, ABSENT, ABSENT).decode()
        return None if found in ("", ABSENT) else found

    def list(self, prefix: str) -> List[str]:
        """A store cannot list its keys, but those of members are known."""
        return [key for key in (f"{prefix}{rank}" for rank in range(self._ranks)) if self.get(key) is not None]

    def remove(self, key: str) -> None:
        self._store.delete_key(self._prefix + key)


def of_torch(job: str) -> Optional[Store]:
    """That of torch.distributed where it is initialised, else that of torchrun's agent; None where there is neither."""
    if "torch" not in sys.modules and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
        return None
    import torch.distributed as distributed

    if not distributed.is_available():
        return None
    if distributed.is_initialized():
        store = distributed.distributed_c10d._get_default_store()
        return Store(store, job, distributed.get_world_size(), "the store of torch.distributed")
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
        return None
    host, port, ranks = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), int(os.environ["WORLD_SIZE"])
    return Store(distributed.TCPStore(host, port, is_master=False), job, ranks, f"torchrun's store at {host}:{port}")
