"""A whole name server on a store of its own, scraped each second, and the peers that its faults need."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx

from metrics.metric import PREFIX
from registry.keys import Keys
from rocketmq_remoting.codes import RequestCode
from testbed import redis_servers
from testbed.access_file import AccessFile
from testbed.broker import Broker
from testbed.connection import V5_3_3, Connection
from testbed.eventually import eventually
from testbed.ports import free_port
from testbed.processes import Family
from tests.alerts.recording import Recorder, Recording
from tests.mqnamesrv.process import NameServer

WELL_S = 3
"""Seconds that a recording has of before the fault."""
AWAITED_S = 60.0


class Service:
    """The server, its store, and a recorder of its metrics."""

    def __init__(self, folder: Path, **options: str) -> None:
        self.keys = Keys()
        port = free_port()
        self.store = redis_servers.Server(
            folder / "store", port, {"port": port, "enable-debug-command": "yes"}
        )
        self.access_file = AccessFile(folder)
        """Of the server, if its options name it."""
        self._folder = folder
        self._options = options

    @contextmanager
    def running(self) -> Iterator["Service"]:
        """Start all of it for the time of the block."""
        url = f"redis://127.0.0.1:{self.store.port}"
        with (
            redis_servers.running(self.store),
            NameServer(self._folder, MQNS_REDIS_URL=url, **self._options) as self.server,
        ):
            self.http = httpx.Client(base_url=f"http://127.0.0.1:{self.server.http_port}", timeout=15)
            self.recorder = Recorder(f"http://127.0.0.1:{self.server.http_port}/metrics")
            self.recorder.start()
            try:
                yield self
            finally:
                self.recorder.end()
                self.http.close()

    @property
    def family(self) -> Family:
        return Family.of(self.server.pid)

    def value(self, name: str, **labels: str) -> float | None:
        """Return the value in the last scrape that the server answered; None if it has none."""
        key = (PREFIX + name, tuple(sorted({"ns": "default", **labels}.items())))
        answered = [scrape for scrape in self.recorder.scrapes[-3:] if scrape.values]
        return answered[-1].values.get(key) if answered else None

    def is_well(self) -> bool:
        """Return whether the last scrape has nothing that the rules look at as a state."""
        up = ("rocketmq_nameserver_up", (("ns", "default"),))
        last = self.recorder.scrapes[-1].values if self.recorder.scrapes else {}
        states = {"redis_up": 1, "follower_connected": 1, "expiry_held": 0, "expiry_lag_seconds": 0}
        return last.get(up) == 1 and all(self.value(name) == value for name, value in states.items())

    def await_well(self) -> None:
        """Wait for it; a hold of leases, which an outage leaves for a minute, is ended."""
        if self.value("expiry_held"):
            self.http.delete("/v1/hold").raise_for_status()
        eventually(self.is_well, AWAITED_S)

    def await_jobs(self) -> None:
        """Wait until jobs have run that began not before now, each second and each 10 s."""
        now, name = time.time(), "task_last_success_timestamp_seconds"
        eventually(
            lambda: all(
                (self.value(name, task=task) or 0) > now for task in ("expire_brokers", "trim_events")
            ),
            AWAITED_S,
        )

    def record(self, fault: Callable[["Service"], Any], for_s: float) -> Recording:
        """Return a recording of the well service, then of the fault, from when it is there on."""
        self.await_well()
        began = time.time()
        self._let_pass(WELL_S)
        well_until = time.time()
        with fault(self):
            fault_at = time.time()
            self._let_pass(for_s)
            until = time.time()
        scrapes = tuple(self.recorder.scrapes)
        window = [one for one in scrapes if began <= one.at <= well_until or fault_at <= one.at <= until]
        return Recording([one for one in scrapes if one.at <= until], window, fault_at)

    def _let_pass(self, for_s: float) -> None:
        """Wait until scrapes have been made for so long."""
        due = time.time() + for_s
        eventually(lambda: self.recorder.scrapes and self.recorder.scrapes[-1].at >= due, for_s + AWAITED_S)

    def announce(self, name: str, address: str, **members: object) -> None:
        """Register a broker over HTTP, which no connection keeps."""
        body = {
            "cluster": "c1",
            "brokerName": name,
            "brokerAddr": address,
            "brokerId": 0,
            "topics": [{"topicName": "TA"}, {"topicName": "TB"}],
        }
        self.http.post("/v1/brokers", json=body | members).raise_for_status()


@contextmanager
def repeated(every_s: float, act: Callable[[], object]) -> Iterator[None]:
    """Do it again and again in a thread, for the time of the block; what the server refuses or leaves is ignored."""
    over = threading.Event()

    def run() -> None:
        while not over.wait(every_s):
            with suppress(OSError, httpx.HTTPError, AssertionError):
                act()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


class Peer:
    """A connection that is opened again when it ended."""

    def __init__(self, service: Service, source: str = "") -> None:
        self._service, self._source = service, source
        self._connection: Connection | None = None

    def ask(self, code: RequestCode, ext: dict[str, str], body: bytes = b"", version: int = V5_3_3) -> int:
        """Return the code of the reply."""
        if self._connection is None:
            self._connection = Connection(self._service.server.port, source=self._source)
        try:
            return self._connection.ask(code, ext, body, version=version, within_s=10).code
        except OSError:
            self._connection = None
            raise

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def look_up(self, topic: str, version: int = V5_3_3) -> int:
        return self.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic}, version=version)

    def register(self, broker: Broker, **ext: str) -> int:
        body = broker.body()
        return self.ask(RequestCode.REGISTER_BROKER, broker.ext(body) | ext, body)
