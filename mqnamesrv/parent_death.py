"""The kernel's signal to a process whose parent has died (Linux). As a script it runs a program that gets it:
`parent_death.py PARENT PROGRAM ARGUMENT...`; it needs nothing but the standard library."""

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


if __name__ == "__main__":
    die_with(int(sys.argv[1]))
    os.execvp(sys.argv[2], sys.argv[2:])
