"""The servers that the bench compares, each pinned to one core, and the CPU time they use."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

import msgspec

READY_S = 60
TICKS = os.sysconf("SC_CLK_TCK")


class Server(msgspec.Struct, frozen=True):
    """A running name server on 127.0.0.1; `leader` is the process that started all others of it."""

    name: str
    port: int
    leader: int

    def cpu_seconds(self) -> float:
        """User and system time of all its processes so far, those that ended included."""
        return sum(_cpu_seconds(pid) for pid in _tree(self.leader))

    def rss_bytes(self) -> dict[str, int]:
        """Resident memory by process name."""
        found: dict[str, int] = {}
        for pid in _tree(self.leader):
            with suppress(OSError):
                name = Path(f"/proc/{pid}/comm").read_text().strip()
                pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
                found[f"{name} {pid}"] = pages * os.sysconf("SC_PAGE_SIZE")
        return found


@contextmanager
def started(
    name: str, command: list[str], env: dict[str, str], port: int, *, core: int | str, ready: str
) -> Iterator[Server]:
    """Run a server on one core from its `ready` line until the end of the block."""
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
        yield Server(name, port, process.pid)
    finally:
        process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(20)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def ours(
    port: int, data: Path, *, core: int | str, workers: int = 1, options: Mapping[str, str] | None = None
) -> AbstractContextManager[Server]:
    """This project's name server with an embedded store, everything on one core; `options` are variables."""
    env = {
        "MQNS_LISTEN_PORT": str(port),
        "MQNS_HTTP_PORT": "0",
        "MQNS_BIND_ADDRESS": "127.0.0.1",
        "MQNS_REMOTING_WORKERS": str(workers),
        "MQNS_DATA_DIR": str(data),
        "MQNS_ROCKETMQ_HOME": str(data),
    }
    command = [str(Path(sys.executable).with_name("mqnamesrv"))]
    ready = "ready remoting="
    return started("redis-namesrv", command, env | dict(options or {}), port, core=core, ready=ready)


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
    """Go on reading what the server prints, so that it never waits for us."""
    subprocess.Popen(["cat"], stdin=process.stdout, stdout=subprocess.DEVNULL)


def _tree(root: int) -> list[int]:
    """A process and all its descendants."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
                children.setdefault(parent, []).append(int(entry.name))
    found = [root]
    for pid in found:
        found += children.get(pid, [])
    return found


def _cpu_seconds(pid: int) -> float:
    with suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return sum(int(ticks) for ticks in fields[11:15]) / TICKS
    return 0.0
