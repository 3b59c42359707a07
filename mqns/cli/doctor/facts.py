"""The facts that checks use: responses of name servers, and reachability of brokers."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, Literal

import msgspec

from mqns.cli.drain_list import DrainDocument
from rocketmq_remoting.cluster import ClusterInfo
from rocketmq_remoting.codes import ResponseCode
from rocketmq_remoting.route import TopicRouteData

BROKERS: Final = "brokers and clusters"
TOPICS: Final = "list of topics"
CONFIG: Final = "options"
ROUTES: Final = "routes"
KV: Final = "KV configuration"
OVER_HTTP: Final = "leases, drains and its own findings over HTTP"
DISABLED: Final = "disable"
"""The remark of lists that an option switched off."""
FAILURES: Final = frozenset({ResponseCode.SYSTEM_ERROR, ResponseCode.SYSTEM_BUSY})
STORE_AWAY: Final = "the store cannot serve now"
"""The remark of a redis-namesrv that needed its store and got no answer from it."""


class Port(StrEnum):
    """What is at an address where no name server answered."""

    CLOSED = "closed"
    MUTE = "mute"
    FOREIGN = "foreign"
    HTTP = "http"


class BrokerLease(msgspec.Struct, frozen=True):
    """The lease of a broker by the name server's clock; all times are in ms.

    `state` is `living`, `held` or `overdue` (docs/http-api.md); `version_ms` is the timestamp of the data version, by
    the broker's clock."""

    broker_name: str
    broker_id: int
    broker_addr: str
    state: str
    age_ms: int
    remaining_ms: int
    timeout_ms: int
    version_ms: int


class OwnFinding(msgspec.Struct, frozen=True):
    """What a redis-namesrv finds about itself (`GET /v1/doctor`)."""

    check: str
    severity: Literal["error", "warning", "info"]
    what: str
    why: str
    advice: str
    command: str
    subjects: tuple[str, ...] = ()


class HttpFacts(msgspec.Struct, frozen=True):
    """The facts of a redis-namesrv's HTTP API; `failure` is the reason if there are none.

    `not_ready` is the reason that `/readyz` gave, `refused` a request that failed with a status of 500 or more; of both
    the kinds are the ends of the problems' types. `port` is what is there where no answer came: CLOSED, or MUTE where
    it did not come whole in time. `is_remoting`: the port speaks RocketMQ's protocol. `clock_ahead_s`
    is the difference of its clock to the local one, with an error of at most `clock_within_s`. `drains` are those in
    force, None where an earlier release does not say, `findings` what it finds about itself. `listed` are the name
    servers that it answers clients which ask it for them."""

    url: str
    failure: str | None = None
    leases: tuple[BrokerLease, ...] = ()
    now_ms: int = 0
    clock_ahead_s: float = 0.0
    clock_within_s: float = 0.0
    findings: tuple[OwnFinding, ...] = ()
    not_ready: str | None = None
    refused: str | None = None
    drains: tuple[DrainDocument, ...] | None = None
    not_ready_kind: str = ""
    is_remoting: bool = False
    refused_kind: str = ""
    port: Port | None = None
    listed: tuple[str, ...] = ()


class Refusal(msgspec.Struct, frozen=True):
    """A response with an error."""

    code: int
    remark: str

    @property
    def failed(self) -> bool:
        """Whether the name server could not answer; else an option, a permission or its release forbids it."""
        return self.code in FAILURES and self.remark != DISABLED


class NameServerFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The facts of one name server; `failure` is the reason if it did not respond.

    `port` is what is there instead. `topics` is None if it refuses to list them; `refusals` has each refused request.
    `not_ready` names a redis-namesrv's workers that are not ready, None if there are none; `store_away` is what says
    that its store is away, and `not_asked` what was left out for that. `ips` are those that its address resolves to,
    `version` is the release in its responses, `answer_s` the time of its first response, connecting included.
    `only_http`: nothing but its HTTP side was asked, and `address` is the URL."""

    address: str
    failure: str | None = None
    timed_out: bool = False
    port: Port = Port.CLOSED
    ips: tuple[str, ...] = ()
    version: str = ""
    answer_s: float = 0.0
    info: ClusterInfo = ClusterInfo({}, {})
    topics: frozenset[str] | None = frozenset()
    routes: Mapping[str, TopicRouteData] = {}
    kv: Mapping[str, Mapping[str, str]] = {}
    config: Mapping[str, str] | None = None
    refusals: Mapping[str, Refusal] = {}
    not_ready: str | None = None
    http: HttpFacts | None = None
    store_away: tuple[str, ...] = ()
    not_asked: tuple[str, ...] = ()
    only_http: bool = False

    @property
    def lists_brokers(self) -> bool:
        """Whether it said which brokers it has; `info` is empty otherwise."""
        return not self.only_http and BROKERS not in self.refusals and BROKERS not in self.not_asked

    @property
    def drains(self) -> Mapping[str, DrainDocument] | None:
        """The drains in force by broker name, also of brokers that are gone; None where they are not known."""
        if self.http is None or self.http.drains is None:
            return None
        return {drain.broker_name: drain for drain in self.http.drains}

    def names_broker(self, name: str) -> bool:
        """Return whether a broker of that name has an address here."""
        data = self.info.broker_addr_table.get(name)
        return data is not None and bool(data.broker_addrs)


class Probe(msgspec.Struct, frozen=True):
    """The result of connecting to an address: the IPs it resolves to, and the reason of a failure."""

    ips: tuple[str, ...]
    failure: str | None = None


class Facts(msgspec.Struct, frozen=True):
    """All facts; `probes` by broker address, empty with --no-connect; there was no time for the `unprobed`. `listed`
    are probes of the name servers that HTTP sides list."""

    name_servers: tuple[NameServerFacts, ...]
    probes: Mapping[str, Probe] = {}
    unprobed: tuple[str, ...] = ()
    listed: Mapping[str, Probe] = {}

    @property
    def reachable(self) -> tuple[NameServerFacts, ...]:
        """The name servers that responded."""
        return tuple(server for server in self.name_servers if server.failure is None)

    def broker_names(self) -> list[str]:
        """Return the broker names of all name servers."""
        return sorted({name for server in self.reachable for name in server.info.broker_addr_table})

    def listed_name_servers(self) -> dict[str, tuple[str, ...]]:
        """Return the name servers that each HTTP side lists, by its URL."""
        return {
            server.http.url: server.http.listed for server in self.name_servers if server.http is not None
        }

    def members(self) -> list["RegisteredBroker"]:
        """Return every broker address of all name servers."""
        servers_of: dict[tuple[str, int, str], list[str]] = {}
        for server in self.reachable:
            for name, data in server.info.broker_addr_table.items():
                for number, address in data.broker_addrs.items():
                    servers_of.setdefault((name, number, address), []).append(server.address)
        return [RegisteredBroker(*key, tuple(servers)) for key, servers in sorted(servers_of.items())]


class RegisteredBroker(msgspec.Struct, frozen=True):
    """A broker's address under a name and an id, and the name servers that have it."""

    broker_name: str
    broker_id: int
    address: str
    name_servers: tuple[str, ...]


def broker_addresses(facts: Facts) -> list[str]:
    """Return the broker addresses, each once."""
    return sorted({member.address for member in facts.members()})
