"""What the checks know: what name servers said, and how brokers were reached."""

from collections.abc import Mapping
from typing import Final

import msgspec

from remoting.cluster import ClusterInfo
from remoting.route import TopicRouteData

ORDER_TOPIC_CONFIG: Final = "ORDER_TOPIC_CONFIG"
MASTER_ID: Final = 0


class Lease(msgspec.Struct, frozen=True):
    """How long a registration is still good, by the name server's clock; all times are in ms.

    `state` is `living`, `held` or `overdue` (docs/http-api.md); `version_ms` is when the broker says that it changed
    its topics last, by its own clock."""

    broker_name: str
    broker_id: int
    broker_addr: str
    state: str
    age_ms: int
    remaining_ms: int
    timeout_ms: int
    version_ms: int


class HttpFacts(msgspec.Struct, frozen=True):
    """What the HTTP side of a redis-namesrv told; `failure`: why it did not.

    `clock_ahead_s` is by how much its clock is ahead of ours, give or take `clock_within_s`."""

    url: str
    failure: str | None = None
    leases: tuple[Lease, ...] = ()
    now_ms: int = 0
    clock_ahead_s: float = 0.0
    clock_within_s: float = 0.0


class NameServerFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What one name server said; `failure`: why it is not to be compared with the others.

    `topics` is None where it refuses to list them, `refusals` says what it refuses and with which remark. `ips` are
    the addresses behind its own, `version` the name of the release it says it is, `answer_s` how long its first
    answer took, connecting included."""

    address: str
    failure: str | None = None
    timed_out: bool = False
    ips: tuple[str, ...] = ()
    version: str = ""
    answer_s: float = 0.0
    info: ClusterInfo = ClusterInfo({}, {})
    topics: frozenset[str] | None = frozenset()
    routes: Mapping[str, TopicRouteData] = {}
    kv: Mapping[str, Mapping[str, str]] = {}
    config: Mapping[str, str] | None = None
    refusals: Mapping[str, str] = {}
    http: HttpFacts | None = None

    def names_broker(self, name: str) -> bool:
        """Whether a broker of that name is registered here."""
        data = self.info.broker_addr_table.get(name)
        return data is not None and bool(data.broker_addrs)


class Probe(msgspec.Struct, frozen=True):
    """How a broker's address was reached from here: what it resolves to (nothing: it does not), and why no
    connection came about, if none did."""

    ips: tuple[str, ...]
    failure: str | None = None


class Facts(msgspec.Struct, frozen=True):
    """Everything; `probes` by broker address, none where brokers were not to be connected to."""

    name_servers: tuple[NameServerFacts, ...]
    probes: Mapping[str, Probe] = {}

    @property
    def heard(self) -> tuple[NameServerFacts, ...]:
        """The name servers that can be compared."""
        return tuple(server for server in self.name_servers if server.failure is None)

    def broker_names(self) -> list[str]:
        """Of all name servers."""
        return sorted({name for server in self.heard for name in server.info.broker_addr_table})

    def members(self) -> list["Member"]:
        """Every broker address of all name servers."""
        found: dict[tuple[str, int, str], list[str]] = {}
        for server in self.heard:
            for name, data in server.info.broker_addr_table.items():
                for number, address in data.broker_addrs.items():
                    found.setdefault((name, number, address), []).append(server.address)
        return [Member(*key, tuple(servers)) for key, servers in sorted(found.items())]


class Member(msgspec.Struct, frozen=True):
    """A broker's address under a name and an id, and the name servers that have it."""

    broker_name: str
    broker_id: int
    address: str
    name_servers: tuple[str, ...]


def broker_addresses(facts: Facts) -> list[str]:
    """Each once."""
    return sorted({member.address for member in facts.members()})
