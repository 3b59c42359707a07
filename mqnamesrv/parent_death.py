"""The kernel's signal to a process whose parent has died (Linux)."""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None  # loaded before any fork


def die_with(parent: int) -> None:
    """Have the kernel send SIGTERM to this process when its parent dies. Called in the new process."""
    if LIBC is not None:
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGTERM)
