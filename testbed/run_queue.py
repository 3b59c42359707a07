"""How long the scheduler of a busy machine kept a process waiting for a core."""

from contextlib import suppress


def waited_s(*tasks: int | str) -> float:
    """Return the seconds that these processes, or the thread `thread-self`, were ready and had no core.

    Of a process its main thread counts (proc(5), schedstat). One that has ended adds nothing."""
    waited_ns = 0
    for task in tasks:
        with suppress(OSError), open(f"/proc/{task}/schedstat", "rb") as file:
            waited_ns += int(file.read().split()[1])
    return waited_ns / 1e9
