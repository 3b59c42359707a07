"""Processes and their children, as Linux tells of them; any of them may end while it is looked at."""

from contextlib import suppress
from pathlib import Path


def children(pid: int) -> list[int]:
    """The processes that it started and that have not ended."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            found += map(int, task.read_text().split())
    return found


def command_line(pid: int) -> str:
    """Its words or its title; "" when it has ended."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return ""


def open_files(pid: int) -> set[str]:
    """What its file descriptors lead to, `socket:[inode]` for instance."""
    links = set()
    for fd in Path(f"/proc/{pid}/fd").glob("*"):
        with suppress(OSError):
            links.add(str(fd.readlink()))
    return links
