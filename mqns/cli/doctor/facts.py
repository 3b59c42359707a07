"""The facts that checks use: responses of name servers, and reachability of brokers."""

from collections.abc import Mapping
from typing import Final

import msgspec

from mqns.cli.drain_list import DrainDocument
from rocketmq_remoting.cluster import ClusterInfo
from rocketmq_remoting.codes import ResponseCode
from rocketmq_remoting.route import TopicRouteData

BROKERS: Final = "brokers and clusters"
TOPICS: Final = "list of topics"
CONFIG: Final = "options"
ROUTES: Final = "routes"
DISABLED: Final = "disable"
"""The remark of lists that an option switched off."""
FAILURES: Final = frozenset({ResponseCode.SYSTEM_ERROR, ResponseCode.SYSTEM_BUSY})


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


class LimitFacts(msgspec.Struct, frozen=True):
    """How many names of a kind there are, and how many the option lets be."""

    what: str
    option: str
    used: int
    most: int


class StoreFacts(msgspec.Struct, frozen=True):
    """The state of the store by its own clock, in Unix ms; None is never, or an earlier release that does not say.

    Tables were compared last at `walked_ms`, which took `walk_took_ms`, and `repaired_rows` of them repaired, the last
    at `repaired_ms`; at `walking_ms` a comparison went on. The clock went back by `clock_back_ms` at
    `clock_back_at_ms`. `evicting_policy` is that by which it evicts keys, if it does. `hosts` are those that most
    brokers were first registered from, and how many; `most_of_host` may be from one, None is no limit."""

    started_ms: int = 0
    repaired_rows: int | None = None
    repaired_ms: int | None = None
    walked_ms: int | None = None
    clock_back_ms: int | None = None
    clock_back_at_ms: int | None = None
    walk_took_ms: int | None = None
    evicting_policy: str | None = None
    limits: tuple[LimitFacts, ...] = ()
    hosts: tuple[tuple[str, int], ...] = ()
    walking_ms: int | None = None
    most_of_host: int | None = None


class HttpFacts(msgspec.Struct, frozen=True):
    """The facts of a redis-namesrv's HTTP API; `failure` is the reason if there are none.

    `not_ready` is the reason that `/readyz` gave, `refused` a request that failed with a status of 500 or more.
    `clock_ahead_s` is the difference of its clock to the local one, with an error of at most `clock_within_s`. `drains`
    are those in force, None where an earlier release does not say."""

    url: str
    failure: str | None = None
    leases: tuple[BrokerLease, ...] = ()
    now_ms: int = 0
    clock_ahead_s: float = 0.0
    clock_within_s: float = 0.0
    store: StoreFacts = StoreFacts()
    not_ready: str | None = None
    refused: str | None = None
    drains: tuple[DrainDocument, ...] | None = None


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

    `topics` is None if it refuses to list them; `refusals` has each refused request. `not_ready` names a
    redis-namesrv's workers that are not ready, None if there are none. `ips` are those that its address resolves to,
    `version` is the release in its responses, `answer_s` the time of its first response, connecting included."""

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
    refusals: Mapping[str, Refusal] = {}
    not_ready: str | None = None
    http: HttpFacts | None = None

    @property
    def lists_brokers(self) -> bool:
        """Whether it said which brokers it has; `info` is empty otherwise."""
        return BROKERS not in self.refusals

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
    """The result of connecting to a broker's address: the IPs it resolves to, and the reason of a failure."""

    ips: tuple[str, ...]
    failure: str | None = None


class Facts(msgspec.Struct, frozen=True):
    """All facts; `probes` by broker address, empty with --no-connect."""

    name_servers: tuple[NameServerFacts, ...]
    probes: Mapping[str, Probe] = {}

    @property
    def reachable(self) -> tuple[NameServerFacts, ...]:
        """The name servers that responded."""
        return tuple(server for server in self.name_servers if server.failure is None)

    def broker_names(self) -> list[str]:
        """Return the broker names of all name servers."""
        return sorted({name for server in self.reachable for name in server.info.broker_addr_table})

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
