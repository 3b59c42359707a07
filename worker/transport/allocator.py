"""How glibc's malloc keeps what a worker frees.

A registration of 10,000 topics has 1.3 MB. Left to itself malloc gives such a block back to the system as soon as it is
free, and asks it again for each page of the next one, which takes as long as all else that a worker does with it."""

import ctypes
from typing import Final

M_TRIM_THRESHOLD: Final = -1
M_MMAP_THRESHOLD: Final = -3
KEPT_BYTES: Final = 32 << 20
"""So much that is free at the end of the heap stays, as much as `FrameLimits.known`; it may be in use again soon."""
HEAP_BLOCK_BYTES: Final = 8 << 20
"""Smaller blocks come from the heap."""


def keep_freed_memory() -> bool:
    """Set the thresholds for the rest of this process; return False where malloc is not glibc's."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return bool(mallopt(M_MMAP_THRESHOLD, HEAP_BLOCK_BYTES) and mallopt(M_TRIM_THRESHOLD, KEPT_BYTES))
