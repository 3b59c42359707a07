"""The service of a row: its own store, the servers on it, and the addresses that peers get."""

import signal
from collections.abc import Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Self

import redis

from faults.notes import Tls
from mqnamesrv.store import await_answer
from registry.store.connect import connect
from testbed.ports import free_port
from testbed.process import Process
from testbed.processes import Family
from testbed.rocketmq.servers import NameServer, serve
from testbed.rocketmq.stage import Stage

WORKERS = 2
DRAIN_S = 5
"""How long a worker that is replaced serves its connections."""
LEASE_S = 120.0
"""The lease of brokers that send none (brokerTimeoutMillis)."""
READY = r"(?m)^ready remoting=\S+ http=(\S+) store="
OPTIONS = {
    "remotingWorkers": str(WORKERS),
    "shutdownWaitTimeSeconds": str(DRAIN_S),
    "probeNetworks": "127.0.0.0/8",  # brokers have addresses of their own there, and come from 127.0.0.1
}


class Redis:
    """A redis-server on a port of loopback, as `options` say, with its data on disk."""

    def __init__(
        self, stage: Stage, *options: str, prefix: tuple[str, ...] = (), host: str = "127.0.0.1"
    ) -> None:
        self.port = free_port()
        self.host = host
        self._stage = stage
        self._argv = [
            *(*prefix, "redis-server"),
            *("--port", str(self.port)),
            *("--bind", host),
            *("--save", ""),
            *options,
        ]
        self.process = self.begin()

    @property
    def url(self) -> str:
        return f"redis://{self.host}:{self.port}/0"

    def begin(self) -> Process:
        """Start it, again if it has ended, in the folder it had."""
        self.process = self._stage.start("redis", self._argv)
        return self.process

    def await_answer(self) -> str:
        """Wait for it to answer, and return its name and version."""
        return await_answer(self.url, alive=lambda: self.process.runs)

    def kill(self) -> None:
        self.process.signal(signal.SIGKILL)
        self.process.await_end(5.0)

    def client(self) -> redis.Redis:
        return connect(self.url)


class Place:
    """A running service, ended with its stage; a context that ends what else belongs to it (`rest`).

    `servers` are the addresses that peers get; `tls`, and `java_options` for those of Java, are what they need besides.
    `lease_s` is how long a broker may be silent. For commands of the runbook, `variables` are those that they use, such
    as REDIS_URL, and `addresses` the service's own for those that stand there."""

    def __init__(
        self,
        stage: Stage,
        server: NameServer,
        *,
        servers: tuple[NameServer, ...] = (),
        tls: Tls | None = None,
        java_options: tuple[str, ...] = (),
        lease_s: float = LEASE_S,
        variables: Mapping[str, str] | None = None,
        rest: ExitStack | None = None,
    ) -> None:
        self.stage = stage
        self.server = server
        self.servers = servers or (server,)
        self.tls = tls
        self.java_options = java_options
        self.lease_s = lease_s
        self.variables = dict(variables or {})
        self.addresses = {"localhost:9876": self.servers[0].address, "localhost:8080": self.http}
        self._rest = rest or ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._rest.close()

    @property
    def http(self) -> str:
        """Return the address of its HTTP side."""
        return self.server.process.await_printed(READY)[1]

    @property
    def family(self) -> Family:
        """Return the processes of the service as they are now."""
        return Family.of(self.server.process.pid)

    def whole(self, but: set[int] = frozenset()) -> bool:  # type: ignore[assignment]
        """Return whether all its workers run, and none of `but`."""
        workers = set(self.family.remoting_workers)
        return len(workers) == WORKERS and not workers & but


class Stored(Place):
    """A service with a single Redis."""

    store: Redis


def plain(stage: Stage, *, lease_s: float = LEASE_S, aof: bool = True) -> Stored:
    """Workers, HTTP, job worker and scheduler under `mqnamesrv`, as `make run` has them, on a Redis with an AOF."""
    store = Redis(stage, "--appendonly", "yes" if aof else "no")
    store.await_answer()
    options = OPTIONS | {"redisUrl": store.url, "brokerTimeoutMillis": str(int(lease_s * 1000))}
    place = Stored(stage, serve(stage, "ours", options), lease_s=lease_s, variables={"REDIS_URL": store.url})
    place.store = store
    return place


def answers(server: NameServer) -> bool:
    """Return whether it serves yet."""
    try:
        server.cluster()
    except OSError:
        return False
    return True
