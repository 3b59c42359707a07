"""A running name server: the real `mqnamesrv` command with two remoting workers, in a namespace of its own."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import redis

from registry.keys import Keys
from registry.options.catalogue import BY_KEY
from registry.store.connect import connect
from testbed.connection import Connection
from testbed.delayed_reads import inherited
from testbed.eventually import eventually
from testbed.process_tree import family, holder
from testbed.transports import VARIABLE, chosen

COMMAND = Path(sys.executable).with_name("mqnamesrv")
BOOT_S = 90.0
STOP_S = 20.0
BOOTED = re.compile(r"The Name Server boot success\. serializeType=\w+, address [0-9.]+:(\d+)")


def environment(folder: Path, options: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a process with only `folder` and `options` (Java's keys) of this machine."""
    base = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "ROCKETMQ_HOME": str(folder),
        "MQNS_BIND_ADDRESS": "127.0.0.1",
        "MQNS_LISTEN_PORT": "0",
        "MQNS_HTTP_PORT": "0",
        "MQNS_DATA_DIR": str(folder / "data"),
        VARIABLE: chosen(),
    }
    return base | inherited() | {BY_KEY[key].env: text for key, text in options.items()}


ONE_WORKER: Final = {"remotingWorkers": "1"}
"""For tests that read over one connection what was written over another: the cache of a second worker follows later."""


class NameServer:
    """`mqnamesrv` with these options, on the store at `url` (embedded if empty).

    `tree` is a folder with other sources of the server than these; `files` is how many files each process may open."""

    workers = 2

    def __init__(
        self,
        folder: Path,
        options: Mapping[str, str],
        *,
        url: str = "",
        namespace: str = "default",
        tree: Path | None = None,
        files: int = 0,
    ) -> None:
        self.folder = folder
        self._tree = tree
        self._before = ["prlimit", f"--nofile={files}:{files}"] if files else []
        self.options = dict(options) | {"redisUrl": url, "namespace": namespace}
        self.keys = Keys(namespace)
        self.port = 0
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *arguments: str) -> "NameServer":
        """Start it and wait until it says that it serves."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with self.output.open("wb") as output:
            self._process = subprocess.Popen(
                [*self._before, COMMAND, *arguments],
                env=self._environment(),
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self.port = eventually(self._booted, BOOT_S)
        return self

    @property
    def pid(self) -> int:
        """Return the process id of the supervisor."""
        assert self._process is not None
        return self._process.pid

    @property
    def output(self) -> Path:
        """Return the file of its output."""
        return self.folder / "output.txt"

    def said(self) -> str:
        return self.output.read_text(errors="replace")

    def _environment(self) -> dict[str, str]:
        env = environment(self.folder, self.options)
        paths = [str(self._tree or ""), env.get("PYTHONPATH", "")]
        return env | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}

    def _booted(self) -> int:
        assert self._process is not None
        assert self._process.poll() is None, self.said()[-3000:]
        match = BOOTED.search(self.said())
        return int(match[1]) if match else 0

    def begin_stop(self) -> None:
        """Send SIGTERM."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)

    def stop(self) -> None:
        """End it and wait until it has ended."""
        if self._process is not None:
            self.begin_stop()
            try:
                self._process.wait(STOP_S)
            finally:
                self._process.kill()
                self._process = None

    def store(self) -> redis.Redis:
        """Return a client of its store, which must not be an embedded one."""
        return connect(self.options["redisUrl"])

    def forget_kv_namespace(self, namespace: str) -> None:
        """Delete a KV namespace from the store; no request does that."""
        with self.store() as store:
            store.srem(self.keys.kv_namespaces, namespace)
            store.delete(self.keys.kv(namespace))

    def worker_of(self, connection: Connection) -> int:
        """Return the process that accepted this connection."""
        return accepted_by(self.pid, connection)


def accepted_by(server: int, connection: Connection) -> int:
    """Return the process among `server` and its descendants that accepted this connection; AssertionError if none."""
    try:
        return holder(connection.far_end, family(server))
    except LookupError as error:
        raise AssertionError(f"the other end of {connection.local}: {error}") from None
