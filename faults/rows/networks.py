"""The network between the service and its Redis: slow, and half open."""

import http.client
import json
import random
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from faults.fleet import PERIOD_MS, Fleet
from faults.places import OPTIONS, Place, Redis
from faults.programs import TOXIPROXY, program
from faults.row import Promise, Row, Topics
from faults.rows.stores import STORE_AWAY
from testbed.eventually import eventually
from testbed.ports import free_port
from testbed.process import Process
from testbed.rocketmq.servers import serve
from testbed.rocketmq.stage import Stage

LATENCY_MS = 2000
HALF_OPEN_S = 10.0
STARTED_WITHIN_S = 10.0


class Toxiproxy:
    """A proxy between the service and one upstream, which can be made to behave badly."""

    def __init__(self, stage: Stage, upstream: str) -> None:
        self.port, self._control = free_port(), free_port()
        argv = [program(TOXIPROXY), "-host", "127.0.0.1", "-port", str(self._control)]
        self.process = stage.start("toxiproxy", argv)
        eventually(self._answers, STARTED_WITHIN_S)
        self._ask(
            "POST", "/proxies", {"name": "redis", "listen": f"127.0.0.1:{self.port}", "upstream": upstream}
        )

    @contextmanager
    def toxic(self, kind: str, stream: str, **attributes: int) -> Iterator[None]:
        """Add a toxic to all connections in a direction (`upstream` or `downstream`) for the time of the block."""
        name = f"{kind}-{stream}"
        self._ask(
            "POST",
            "/proxies/redis/toxics",
            {"name": name, "type": kind, "stream": stream, "attributes": attributes},
        )
        yield
        self._ask("DELETE", f"/proxies/redis/toxics/{name}")

    def _answers(self) -> bool:
        try:
            self._ask("GET", "/version")
        except OSError:
            return False
        return True

    def _ask(self, method: str, path: str, body: Mapping[str, object] | None = None) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._control, timeout=10)
        connection.request(method, path, json.dumps(body) if body else None)
        answer = connection.getresponse()
        said = answer.read()
        connection.close()
        if answer.status >= 300:
            raise RuntimeError(f"toxiproxy: {method} {path}: {answer.status} {said.decode()}")


class Proxied(Place):
    """A service that reaches its Redis only through a proxy."""

    proxy: Toxiproxy


def proxied(stage: Stage) -> Proxied:
    store = Redis(stage, "--appendonly", "yes")
    store.await_answer()
    proxy = Toxiproxy(stage, f"127.0.0.1:{store.port}")
    server = serve(stage, "ours", OPTIONS | {"redisUrl": f"redis://127.0.0.1:{proxy.port}/0"})
    place = Proxied(stage, server, variables={"REDIS_URL": f"redis://127.0.0.1:{proxy.port}/0"})
    place.proxy = proxy
    return place


@contextmanager
def slow(place: Proxied, fleet: Fleet) -> Iterator[None]:
    """Every answer of Redis comes so much later."""
    with place.proxy.toxic("latency", "downstream", latency=LATENCY_MS):
        yield


@contextmanager
def hanging(place: Proxied, fleet: Fleet) -> Iterator[None]:
    """Connections can be opened and stay open, and no byte comes through."""
    with (
        place.proxy.toxic("timeout", "upstream", timeout=0),
        place.proxy.toxic("timeout", "downstream", timeout=0),
    ):
        yield


class IsolatedRedis(Redis):
    """A Redis in a network namespace of its own, at the other end of a pair of virtual interfaces.

    Both end with its process. Needs root."""

    def __init__(self, stage: Stage, *options: str) -> None:
        net = f"198.18.{random.randrange(256)}.{4 * random.randrange(63)}"
        head, _, last = net.rpartition(".")
        self._ours, self._link = f"{head}.{int(last) + 1}", f"faults{random.randrange(1 << 24):x}"
        unshared = (program("unshare"), "--net", "--")
        super().__init__(stage, *options, prefix=unshared, host=f"{head}.{int(last) + 2}")

    def begin(self) -> Process:
        process = super().begin()
        pid = str(process.pid)
        eventually(lambda: _net_of(pid) != _net_of("self"), STARTED_WITHIN_S)
        _run("ip", "link", "add", self._link, "type", "veth", "peer", "name", "theirs", "netns", pid)
        _run("ip", "address", "add", f"{self._ours}/30", "dev", self._link)
        _run("ip", "link", "set", self._link, "up")
        self.inside("ip", "address", "add", f"{self.host}/30", "dev", "theirs")
        self.inside("ip", "link", "set", "theirs", "up")
        self.inside("ip", "link", "set", "lo", "up")
        return process

    def inside(self, *command: str) -> None:
        """Run a command in its network."""
        _run("nsenter", "--net", "--target", str(self.process.pid), "--", program(command[0]), *command[1:])


class Isolated(Place):
    """A service whose Redis is in another network."""

    store: IsolatedRedis


def isolated(stage: Stage) -> Isolated:
    store = IsolatedRedis(stage, "--appendonly", "yes", "--protected-mode", "no")
    store.await_answer()
    server = serve(stage, "ours", OPTIONS | {"redisUrl": store.url})
    place = Isolated(stage, server, variables={"REDIS_URL": store.url})
    place.store = store
    return place


@contextmanager
def cut(place: Isolated, fleet: Fleet) -> Iterator[None]:
    """Drop every packet in both directions: connected peers receive nothing, not even an end."""
    rules = (("INPUT", "-i", "theirs"), ("OUTPUT", "-o", "theirs"))
    for chain, *match in rules:
        place.store.inside("iptables", "-A", chain, *match, "-j", "DROP")
    yield
    for chain, *match in rules:
        place.store.inside("iptables", "-D", chain, *match, "-j", "DROP")


def _net_of(pid: str) -> str:
    return str(Path(f"/proc/{pid}/ns/net").readlink())


def _run(*command: str) -> None:
    subprocess.run([program(command[0]), *command[1:]], check=True, capture_output=True)


UNREACHABLE = Promise(registrations_fail=True, lookups_fail=Topics.CHANGING, recovers_s=3.0)
ROWS = (
    Row(
        name="redis-slow",
        title=f"answers of Redis come {LATENCY_MS / 1000:g} s late (toxiproxy)",
        place=proxied,
        fault=slow,
        lasts_s=PERIOD_MS / 1000 + 5,
        promise=UNREACHABLE,
        look=STORE_AWAY,
    ),
    Row(
        name="redis-hanging",
        title=f"connections to Redis hang for {HALF_OPEN_S:.0f} s (toxiproxy)",
        place=proxied,
        fault=hanging,
        lasts_s=HALF_OPEN_S,
        promise=UNREACHABLE,
        look=STORE_AWAY,
    ),
    Row(
        name="redis-cut",
        title=f"every packet to and from Redis dropped for {HALF_OPEN_S:.0f} s (iptables)",
        place=isolated,
        fault=cut,
        lasts_s=HALF_OPEN_S,
        promise=UNREACHABLE,
        look=STORE_AWAY,
    ),
)
