"""What a name server for so many brokers, topics and clients needs, and where it breaks first: arithmetic alone.

The costs are measured (mqnamesrv/costs.py); what brokers and clients ask, and how often, is RocketMQ's own schedule.
docs/scale.md has the reasoning."""

import math
from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from mqnamesrv.costs import Costs, Line
from registry.options.fields import Options

REGISTRATION_S: Final = 30.0
"""Period of whole registrations (registerNameServerPeriod); a client asks for each of its topics' routes as often."""

HEARTBEAT_S: Final = 1.0
"""Period of heartbeats of brokers with enableSlaveActingMaster. These send data-version queries (322), but 904 where
compatibleWithOldNameSrv is off."""

USED: Final = 0.6
"""Share of a core or a network that is planned with: what is fuller answers late."""

LEAST: Final = 1e-4
"""The smallest factor that `breaks_at` tries: what does not fit at that fits at no size."""

FULL: Final = 0.9
"""Share of the connections of a worker that is planned with: they are spread evenly, but not quite."""

FOLLOWING: Final = 0.3
"""Share of a core that each worker may use for what more workers make no less: most of it follows the stream."""

REFILL_S: Final = 30.0
"""Time for which routes are shown as they were once the store was found empty."""

READER_AWAY_S: Final = 3600.0
"""Time for which a reader of the stream may be away."""

EVENTS_MOST: Final = 1_000_000
"""Entries that the stream keeps at most (lua/includes/emit.lua), whatever eventsMaxBytes says."""

DAY_S: Final = 86_400.0
LANDINGS_DAY: Final = 24
"""Runs of the pipeline, one an hour: each begins with what a batch costs however few entries it has."""

WEEK_S: Final = 7 * DAY_S
US, GB = 1e6, 1e9
HEADER_BYTES: Final = 250
"""Of a request or a reply without a body, about."""


class Deployment(Struct, frozen=True):
    """What a name server is for. `changes_per_second` are registrations with a changed topic; None: each topic on each
    of its brokers changes once a week. `acting_masters` are brokers with enableSlaveActingMaster. Brokers of 5.x ask
    for the list of all brokers every `cluster_info_seconds`; 0: none does, as of 4.x. `workers` of `max_connections`
    are there; 0: as many as are needed."""

    brokers: int
    topics: int
    clients: int
    brokers_per_topic: float = 4.0
    topics_per_client: float = 2.0
    changes_per_second: float | None = None
    acting_masters: int = 0
    cluster_info_seconds: float = 5.0
    network_gbit: float = 10.0
    store_gb: float = 16.0
    workers: int = 0
    max_connections: int = Options().max_connections

    def times(self, factor: float) -> "Deployment":
        """Return one of so many times the brokers, topics, clients and changes, and the same workers."""
        changes = self.changes_per_second
        return replace(
            self,
            brokers=math.ceil(self.brokers * factor),
            topics=math.ceil(self.topics * factor),
            clients=math.ceil(self.clients * factor),
            acting_masters=math.ceil(self.acting_masters * factor),
            changes_per_second=None if changes is None else changes * factor,
        )


class Load(Struct, frozen=True):
    """Requests a second of all brokers and clients, topics of a broker, pairs of topic and broker, connections."""

    registrations: float
    changes: float
    heartbeats: float
    cluster_infos: float
    lookups: float
    table: float
    pairs: float
    connections: int


class Limit(Struct, frozen=True):
    """What can be used up: `share` of it is used at this size, as a fraction; `cure` is what to change at its end."""

    name: str
    share: float
    used: str
    cure: str


class Needs(Struct, frozen=True):
    """What it takes. CPU is in cores, memory in bytes, network in bytes a second; `_day` is of a day."""

    load: Load
    workers: int
    workers_for_cpu: int
    workers_for_connections: int
    worker_cpu: float
    store_cpu: float
    beside_cpu: float
    worker_bytes: float
    route_cache_bytes: float
    kernel_bytes: float
    beside_bytes: float
    table_bytes: float
    store_bytes: float
    store_limit_bytes: float
    received: float
    sent: float
    cluster_info_sent: float
    store_sent: float
    events_day: float
    event_bytes_day: float
    events_kept_s: float
    landing_cpu_s_day: float
    refill_s: float
    half_again_s: float
    limits: tuple[Limit, ...]
    options: tuple[tuple[str, int], ...]


def load_of(of: Deployment) -> Load:
    """Return what its brokers and clients ask."""
    pairs = of.topics * min(of.brokers_per_topic, of.brokers)
    changes = pairs / WEEK_S if of.changes_per_second is None else of.changes_per_second
    return Load(
        registrations=of.brokers / REGISTRATION_S,
        changes=changes,
        heartbeats=of.acting_masters / HEARTBEAT_S,
        cluster_infos=of.brokers / of.cluster_info_seconds if of.cluster_info_seconds else 0.0,
        # a broker that may act as a master asks for its member group each second
        lookups=of.clients * _topics(of) / REGISTRATION_S + of.acting_masters / HEARTBEAT_S,
        table=pairs / of.brokers,
        pairs=pairs,
        connections=of.clients + of.brokers,
    )


def needs(of: Deployment, costs: Costs) -> Needs:
    """Return what it takes."""
    load = load_of(of)
    for_connections = math.ceil(load.connections / (FULL * of.max_connections))
    for_cpu = _workers_for_cpu(of, load, costs)
    count = of.workers or max(2, for_connections, for_cpu)
    asked = _asked(of, count)
    size = _Size(of, load, costs, count)
    cache = asked * costs.topic_worker.at(_width(of))
    event_bytes = load.changes * costs.event_bytes.at(load.table)
    events_day = load.changes * costs.events.at(load.table) * DAY_S
    options = Options()
    tables = of.topics * costs.topic_store.at(_width(of)) + costs.broker_store.each * of.brokers
    kept_s = min(options.events_retention_millis / 1000, *_kept_s(load, costs))
    found = Needs(
        load=load,
        workers=count,
        workers_for_cpu=for_cpu,
        workers_for_connections=for_connections,
        worker_cpu=(size.shared() + count * size.own()) / US,
        store_cpu=size.store() / US,
        beside_cpu=idle(costs.idle.beside, load.pairs) / US,
        worker_bytes=costs.connection_worker.at(load.connections / count) + cache,
        route_cache_bytes=cache,
        kernel_bytes=load.connections * costs.connection_kernel.each,
        beside_bytes=costs.beside_bytes,
        table_bytes=tables,
        store_bytes=tables + min(event_bytes * kept_s, options.events_max_bytes),
        store_limit_bytes=2 * tables + 2 * options.events_max_bytes,
        received=size.received(),
        sent=size.sent(),
        cluster_info_sent=load.cluster_infos * costs.cluster_info_bytes.at(of.brokers),
        store_sent=event_bytes * (count + 1) + size.fills() * count * costs.route_bytes.at(_width(of)),
        events_day=events_day,
        event_bytes_day=event_bytes * DAY_S,
        events_kept_s=kept_s,
        landing_cpu_s_day=LANDINGS_DAY * costs.landing.fixed + costs.landing.each * events_day,
        refill_s=_refill_s(of, load, costs, count),
        half_again_s=_half_again_s(of, load, costs, count),
        limits=(),
        options=tuple(_options(of, load, cache)),
    )
    limits = sorted(_limits(of, costs, found, size.own() / US), key=lambda limit: -limit.share)
    return replace(found, limits=tuple(limits))


def _kept_s(load: Load, costs: Costs) -> tuple[float, float]:
    """Return for how long the stream keeps its entries by their bytes, and by their number."""
    event_bytes = load.changes * costs.event_bytes.at(load.table)
    entries = load.changes * costs.events.at(load.table)
    by_bytes = Options().events_max_bytes / event_bytes if event_bytes else math.inf
    return by_bytes, EVENTS_MOST / entries if entries else math.inf


def breaks_at(of: Deployment, costs: Costs) -> tuple[float, Limit]:
    """Return how many times as large it may become, and the limit that it then meets; LEAST if it may not at all."""

    def first(factor: float) -> Limit:
        return needs(of.times(factor), costs).limits[0]

    low, high = LEAST, 1e4
    while high / low > 1.01:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if first(middle).share < 1 else (low, middle)
    return low, first(high)


class _Size(Struct, frozen=True):
    """CPU (µs a second) and network (bytes a second) of a deployment with so many workers."""

    of: Deployment
    load: Load
    costs: Costs
    workers: int

    def shared(self) -> float:
        """Return the CPU of workers that more workers share among them."""
        load, costs = self.load, self.costs
        change = max(costs.change.worker.at(load.table) - costs.following.worker.each, 0.0)
        return (
            load.registrations * costs.unchanged.worker.at(load.table)
            + load.changes * change
            + batched(costs.version_query.worker, load.heartbeats, self.workers)
            + load.cluster_infos * costs.cluster_info.worker.at(self.of.brokers)
            + load.lookups * costs.lookup.worker.at(_width(self.of))
        )

    def own(self) -> float:
        """Return the CPU that each worker takes however many there are."""
        following = self.load.changes * self.costs.following.worker.each
        filling = self.fills() * self.costs.missed.worker.at(_width(self.of))
        return idle(self.costs.idle.worker, self.load.pairs) + following + filling

    def fills(self) -> float:
        """Return how often a second a worker reads a route again because it changed."""
        return self.load.changes * _asked(self.of, self.workers) / self.of.topics

    def store(self) -> float:
        """Return the CPU of the store."""
        load, costs = self.load, self.costs
        return (
            idle(costs.idle.store, load.pairs)
            + load.registrations * costs.unchanged.store.at(load.table)
            + load.changes * costs.change.store.at(load.table)
            + (load.changes * costs.following.store.each + costs.resting.store.each) * (self.workers - 1)
            + batched(costs.version_query.store, load.heartbeats, self.workers)
            + self.workers * self.fills() * costs.missed.store.at(_width(self.of))
        )

    def received(self) -> float:
        """Return the bytes a second that brokers and clients send."""
        load = self.load
        whole = (load.registrations + load.changes) * self.costs.registration_bytes.at(load.table)
        return whole + HEADER_BYTES * (load.heartbeats + load.cluster_infos + load.lookups)

    def sent(self) -> float:
        """Return the bytes a second that they get."""
        load, costs = self.load, self.costs
        return (
            load.lookups * costs.route_bytes.at(_width(self.of))
            + load.cluster_infos * costs.cluster_info_bytes.at(self.of.brokers)
            + HEADER_BYTES * (load.registrations + load.changes + load.heartbeats)
        )


def batched(line: Line, per_second: float, workers: int) -> float:
    """Return the cost of a second's requests that each worker has travel together, by a line of a rate.

    A worker with few of them sends each alone: none costs more than at the lowest rate that was measured."""
    rate, cost = min(line.points)
    return min(line.fixed * workers + line.each * per_second, per_second * cost / rate)


def idle(line: Line, pairs: float) -> float:
    """Return the cost of a second without requests: walks over tables have a pace, so no more pairs than were measured
    make them dearer, only longer."""
    most, _ = max(line.points)
    return line.at(min(pairs, most))


def _width(of: Deployment) -> float:
    """Return the brokers of a route."""
    return min(of.brokers_per_topic, of.brokers)


def _topics(of: Deployment) -> float:
    """Return the topics of a client."""
    return min(of.topics_per_client, of.topics)


def _asked(of: Deployment, workers: int) -> float:
    """Return of how many topics a worker's clients ask, when topics and workers are drawn by lot."""
    return of.topics * (0.0 - math.expm1(-of.clients * _topics(of) / (workers * of.topics)))


def _workers_for_cpu(of: Deployment, load: Load, costs: Costs) -> int:
    """Return the number of workers that are used as planned; what each takes itself depends on their number."""
    count = 1
    for _ in range(100):
        size = _Size(of, load, costs, count)
        room = max(USED * US - size.own(), 0.05 * US)  # a limit says so where there is none
        wanted = max(1, math.ceil(size.shared() / room))
        if wanted <= count:
            break
        count = wanted
    return count


def _refill_s(of: Deployment, load: Load, costs: Costs, workers: int) -> float:
    """Return the time until all brokers have registered in a store that lost everything, were they all to do so at
    once: they come within a period of theirs."""
    store_s = of.brokers * costs.first.store.at(load.table) / US
    return max(store_s, of.brokers * costs.first.worker.at(load.table) / US / workers)


def _half_again_s(of: Deployment, load: Load, costs: Costs, workers: int) -> float:
    """Return the time in which half of the brokers register at once what they had registered."""
    store_s = of.brokers / 2 * costs.unchanged.store.at(load.table) / US
    return max(store_s, of.brokers / 2 * costs.unchanged.worker.at(load.table) / US / workers)


def _options(of: Deployment, load: Load, cache: float) -> Iterator[tuple[str, int]]:
    """Yield the options whose defaults are too low, with what would do."""
    given = Options()
    if of.brokers > given.max_brokers:
        yield "maxBrokers", math.ceil(1.5 * of.brokers)
    if of.topics > given.max_topics:
        yield "maxTopics", math.ceil(1.5 * of.topics)
    if load.table > given.max_topics_of_broker:
        yield "maxTopicsOfBroker", math.ceil(1.5 * load.table)
    if cache > given.route_cache_bytes:
        yield "routeCacheBytes", math.ceil(1.2 * cache)


def _limits(of: Deployment, costs: Costs, found: Needs, own: float) -> Iterator[Limit]:
    """Yield all limits, in no order. `own` is what a worker takes however many there are, in cores."""
    network = USED * of.network_gbit * GB / 8
    for_network = FEWER_LISTS if found.cluster_info_sent > found.sent / 2 else BALANCERS
    yield _limit(STORE_CPU, found.store_cpu, USED, cores, NAMESPACES)
    yield _limit(FOLLOWERS, own, FOLLOWING, cores, COARSER)
    yield _limit(STORE_NETWORK, found.store_sent, network, gbit, REPLICAS)
    yield _limit(NETWORK, found.sent, network, gbit, for_network)
    yield _limit(STORE_MEMORY, found.store_limit_bytes, of.store_gb * GB, gigabytes, NAMESPACES)
    yield _limit(REFILL, found.refill_s, REFILL_S, seconds, KEPT)
    if of.workers:  # else they are as many as these need
        yield _limit(WORKERS, found.worker_cpu / of.workers, USED, cores, MORE)
        yield _limit(
            CONNECTIONS, found.load.connections / of.workers, FULL * of.max_connections, number, MORE
        )
    by_bytes, by_number = _kept_s(found.load, costs)
    yield _limit(
        EVENTS, READER_AWAY_S, found.events_kept_s, hours, LONGER if by_bytes <= by_number else SOONER
    )


def _limit(name: str, used: float, allowed: float, text: Callable[[float], str], cure: str) -> Limit:
    return Limit(name, used / allowed, f"{text(used)} of {text(allowed)}", cure)


STORE_CPU: Final = "CPU of Redis"
WORKERS: Final = "CPU of each worker"
CONNECTIONS: Final = "connections of each worker"
FOLLOWERS: Final = "what each worker does, however many there are"
STORE_NETWORK: Final = "network of Redis"
NETWORK: Final = "network of the service"
STORE_MEMORY: Final = "memory of Redis"
REFILL: Final = "brokers come back into an emptied Redis"
EVENTS: Final = "a reader of the stream is away"
NAMESPACES: Final = (
    "several namespaces, each on a Redis of its own (redisUrl): a cluster's brokers and clients use one"
)
COARSER: Final = (
    "several namespaces, each with its changes; one entry for all changes of a moment is not built yet"
)
MORE: Final = "more workers (--workers)"
REPLICAS: Final = (
    "fewer, fuller workers (maxConnections); workers that follow and read a replica are not built yet"
)
FEWER_LISTS: Final = (
    "namespaces of fewer brokers: each asks for all of them, so their bytes grow with the square; or brokers that do "
    "not ask (--cluster-info-seconds 0)"
)
BALANCERS: Final = "several balancers, each before a part of the workers"
KEPT: Final = (
    "a Redis that is not emptied (a replica with min-replicas-to-write 1, appendonly yes), or namespaces"
)
LONGER: Final = "more memory for the stream (eventsMaxBytes)"
SOONER: Final = (
    "several namespaces: a stream has a million entries at most; a reader that was away begins with a round"
)


def cores(value: float) -> str:
    """Return an amount of CPU as text."""
    return f"{value:.2f} cores"


def number(value: float) -> str:
    """Return a number as text."""
    return f"{value:,.0f}"


def gbit(value: float) -> str:
    """Return bytes a second as text."""
    return f"{value * 8 / GB:.3f} Gbit/s"


def gigabytes(value: float) -> str:
    """Return bytes as text."""
    return f"{value / GB:.2f} GB"


def seconds(value: float) -> str:
    """Return a time as text."""
    return f"{value:.1f} s"


def hours(value: float) -> str:
    """Return a time (s) as text."""
    return f"{value / 3600:.1f} h"
