"""How long the scheduler of a busy machine kept a process waiting for a core."""

from pathlib import Path


def waited_s(*tasks: int | str) -> float:
    """Return the seconds that these processes, or the thread `thread-self`, were ready and had no core.

    Of a process its main thread counts (proc(5), schedstat). One that has ended adds nothing."""
    paths = [Path(f"/proc/{task}/schedstat") for task in tasks]
    return sum(int(path.read_text().split()[1]) for path in paths if path.exists()) / 1e9
