"""Processes and their children, from /proc; any of them may end meanwhile.

Tests ask for these thousands of times, and pathlib takes most of the time of an answer."""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path


def children(pid: int) -> list[int]:
    """Return the children of a process that have not ended."""
    pids: list[int] = []
    with suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with suppress(OSError), open(f"/proc/{pid}/task/{task}/children", "rb") as file:
                pids += map(int, file.read().split())
    return pids


def family(pid: int) -> list[int]:
    """Return a process and all its descendants."""
    pids = [pid]
    for member in pids:
        pids += children(member)
    return pids


def command_line(pid: int) -> str:
    """Return its command line or title; "" when it has ended."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return ""


def open_files(pid: int) -> set[str]:
    """Return the targets of its file descriptors, `socket:[inode]` for instance."""
    links = set()
    with suppress(OSError):
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                links.add(os.readlink(f"/proc/{pid}/fd/{fd}"))
    return links


def holder(file: str, pids: Iterable[int]) -> int:
    """Return the first of these processes that has the file open. Raises LookupError if none has."""
    for pid in pids:
        if file in open_files(pid):
            return pid
    raise LookupError(f"no process has {file or 'it'} open")
