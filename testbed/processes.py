"""The processes of a running name server by kind, and signals to them."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import msgspec

from testbed.process_tree import children, command_line


class Family(msgspec.Struct, frozen=True):
    """The children of one `mqnamesrv` at this moment, by pid."""

    remoting_master: int
    remoting_workers: tuple[int, ...]
    schedulers: tuple[int, ...]
    job_workers: tuple[int, ...]

    @classmethod
    def of(cls, supervisor: int) -> "Family":
        direct = {pid: command_line(pid) for pid in children(supervisor)}
        masters = [pid for pid, command in direct.items() if "[mqnamesrv-remoting]" in command]
        return cls(
            remoting_master=masters[0],
            remoting_workers=tuple(children(masters[0])),
            schedulers=tuple(pid for pid, command in direct.items() if "worker.jobs.scheduler" in command),
            job_workers=tuple(pid for pid, command in direct.items() if command.startswith("rq:worker")),
        )


def send(number: signal.Signals, *pids: int) -> None:
    for pid in pids:
        os.kill(pid, number)


@contextmanager
def stopped(*pids: int) -> Iterator[None]:
    """Stop processes for the time of the block; the supervisor does not restart them."""
    send(signal.SIGSTOP, *pids)
    try:
        yield
    finally:
        send(signal.SIGCONT, *pids)


@contextmanager
def two_more_of_each(env: Mapping[str, str]) -> Iterator[None]:
    """Run two more schedulers and two more job workers for the time of the block, all of it."""
    more = [
        subprocess.Popen([sys.executable, "-m", module], env=env, stderr=subprocess.DEVNULL)
        for module in ("worker.jobs.scheduler", "worker.jobs.rq_worker") * 2
    ]
    try:
        yield
        assert [process.poll() for process in more] == [None] * len(more), "they ended by themselves"
    finally:
        for process in more:
            process.terminate()
        for process in more:
            process.wait(15)
