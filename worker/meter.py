"""The meter of a worker: publishes each second what it counts, and what it has just now."""

from collections.abc import Iterable, Iterator
from typing import Final, Protocol

from metrics import catalogue as metrics
from metrics.counts import Observed
from metrics.metric import Scope
from metrics.publisher import Publisher
from metrics.samples import Sample
from worker.background import pause
from worker.counters import Counters
from worker.transport.transports import Answered

__all__ = ["ROLE", "Meter", "Metered"]

ROLE: Final = "remoting"
"""Of these processes."""
LOOK_EVERY_S: Final = 0.1
"""The lateness of a timer of this length is how long others kept the loop busy."""
REST_EVERY_S: Final = 0.25
"""The same while no peer sends anything."""


class Metered(Protocol):
    """What answers requests: `worker.assembly.Assembly`."""

    @property
    def counters(self) -> Counters: ...

    def state(self) -> Iterable[Sample | Observed]:
        """Return what it has just now."""

    @property
    def registered_peers(self) -> int:
        """Return over how many connections a broker has registered."""

    @property
    def admin_peers(self) -> int:
        """Return over how many others lists or changes were asked for."""


class Connections(Protocol):
    """The connections of a worker: `worker.transport.connections.Connections`."""

    asked: int

    def __len__(self) -> int: ...

    @property
    def traffic(self) -> Answered: ...


class Tls(Protocol):
    """TLS of the wire: `worker.transport.tls.ServerTls`."""

    certificates_end_s: float | None


class Meter:
    """Made in the worker."""

    def __init__(self, namespace: str, metered: Metered, connections: Connections, tls: Tls) -> None:
        self._metered = metered
        self._connections = connections
        self._tls = tls
        self._publisher = Publisher(namespace, Scope.REMOTING, ROLE, self._read)

    async def run(self) -> None:
        """Publish until cancelled."""
        read = 0
        while True:
            before, read = read, self._connections.traffic.read
            late_s = await pause(REST_EVERY_S if read == before else LOOK_EVERY_S)
            self._metered.counters.loop_lag.observe(late_s)
            self._publisher.publish_if_due()

    def publish(self) -> None:
        """Publish now."""
        self._publisher.publish()

    def _read(self) -> Iterator[Sample | Observed]:
        read, written, lookups = self._connections.traffic
        yield from self._metered.counters.read(lookups)
        yield from self._metered.state()
        yield Sample(metrics.REQUEST_BYTES, (), read)
        yield Sample(metrics.RESPONSE_BYTES, (), written)
        yield from self._roles()
        if self._tls.certificates_end_s is not None:
            yield Sample(metrics.TLS_CERT_EXPIRY, ("remoting",), self._tls.certificates_end_s)

    def _roles(self) -> Iterator[Sample]:
        brokers, admins = self._metered.registered_peers, self._metered.admin_peers
        unknown = len(self._connections) - self._connections.asked
        clients = max(self._connections.asked - brokers - admins, 0)
        for role, number in (
            ("broker", brokers),
            ("admin", admins),
            ("client", clients),
            ("unknown", unknown),
        ):
            yield Sample(metrics.CONNECTIONS, (role,), number)
