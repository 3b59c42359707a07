"""Processes and their children, from /proc; any of them may end meanwhile."""

from contextlib import suppress
from pathlib import Path


def children(pid: int) -> list[int]:
    """Return the children of a process that have not ended."""
    pids: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            pids += map(int, task.read_text().split())
    return pids


def command_line(pid: int) -> str:
    """Return its command line or title; "" when it has ended."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return ""


def open_files(pid: int) -> set[str]:
    """Return the targets of its file descriptors, `socket:[inode]` for instance."""
    links = set()
    for fd in Path(f"/proc/{pid}/fd").glob("*"):
        with suppress(OSError):
            links.add(str(fd.readlink()))
    return links
