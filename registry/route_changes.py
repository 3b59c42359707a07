"""What a dry run would mean for the routes of topics: which change, which end, and which no producer could write to."""

import heapq
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import msgspec

from registry.dry_run import DryRun
from registry.keys import ORDER_TOPIC_CONFIG, Keys
from registry.long_work.scan import scan_pages
from registry.plans import Plan, as_json
from registry.routes import RoutesRead, StoredRoute, read_route, routes_call
from rocketmq_remoting.permission import PERM_READ, PERM_WRITE
from rocketmq_remoting.typed import decoded

__all__ = ["Named", "QueueCounts", "RouteChanges", "brokers_of", "route_changes"]

MASTER: Final = 0
NAMES_SHOWN: Final = 10
TOPICS_EXAMINED: Final = 10_000
"""More would be read from the store than a question is worth."""
TOPICS_AT_ONCE: Final = 100
OF_ALL_TOPICS: Final = frozenset({"broker_registered", "broker_removed", "broker_updated", "drain_changed"})
"""Kinds of entries that say of a broker what the routes of all its topics show."""


Row = tuple[str, str, str, tuple[str, ...]]
"""Of an entry: broker name, queue data before and after, topics."""


class Named(msgspec.Struct, frozen=True):
    """How many there are, and the names of the first ten, sorted."""

    count: int = 0
    names: tuple[str, ...] = ()

    @classmethod
    def of(cls, names: Iterable[str]) -> "Named":
        distinct = set(names)
        return cls(len(distinct), tuple(heapq.nsmallest(NAMES_SHOWN, distinct)))


class QueueCounts(msgspec.Struct, frozen=True):
    """Queues of the routes that change, of all their brokers: before and after."""

    before: int = 0
    after: int = 0


class RouteChanges(msgspec.Struct, frozen=True):
    """`changed` are topics whose routes would be others, as their clients see; of `ended` no broker would be left, of
    `unwritable` no queue that a producer can write to, where there is one now: with write permission, of a broker with
    a master. `unexamined` is how many further topics may be concerned."""

    changed: Named = Named()
    ended: Named = Named()
    unwritable: Named = Named()
    read_queues: QueueCounts = QueueCounts()
    write_queues: QueueCounts = QueueCounts()
    unexamined: int = 0


class _Shown(NamedTuple):
    """What clients see of a route."""

    brokers: frozenset[bytes]
    read_queues: int
    write_queues: int


def brokers_of(run: DryRun) -> Named:
    """Return the broker names that the entries of a dry run are about."""
    named = {entry["broker"] for entry in run.entries if "broker" in entry}
    for entry in run.entries:
        named |= {name for name, *_ in decoded(entry.get("rows", "[]"), list[Row])}
    return Named.of(named)


def route_changes(keys: Keys, run: DryRun) -> Plan[RouteChanges]:
    """Return what the plans of a dry run would make of routes."""
    topics = sorted((yield from _topics(keys, run)))
    examined = topics[:TOPICS_EXAMINED]
    changed: dict[str, tuple[_Shown, _Shown]] = {}
    at = 0
    while at < len(examined):
        some = examined[at : at + TOPICS_AT_ONCE]
        before = yield from _routes(keys, some)
        after = yield from run.of(_routes(keys, some))
        for was, will_be in zip(before, after, strict=False):
            shown = _shown(was), _shown(will_be)
            if shown[0] != shown[1]:
                changed[was.topic] = shown
        at += min(len(before), len(after))
    pairs = changed.values()
    return RouteChanges(
        Named.of(changed),
        Named.of(name for name, (was, will_be) in changed.items() if was.brokers and not will_be.brokers),
        Named.of(
            name for name, (was, will_be) in changed.items() if was.write_queues and not will_be.write_queues
        ),
        QueueCounts(sum(was.read_queues for was, _ in pairs), sum(after.read_queues for _, after in pairs)),
        QueueCounts(sum(was.write_queues for was, _ in pairs), sum(after.write_queues for _, after in pairs)),
        len(topics) - len(examined),
    )


def _topics(keys: Keys, run: DryRun) -> Plan[set[str]]:
    """Return the topics whose routes may change."""
    topics = run.topics(keys)
    for name in sorted({entry["broker"] for entry in run.entries if entry["kind"] in OF_ALL_TOPICS}):
        yield from scan_pages(keys.topics_of(name), topics.update)
    topics |= {entry["key"] for entry in run.entries if entry.get("kv_ns") == ORDER_TOPIC_CONFIG}
    return topics


def _routes(keys: Keys, topics: Sequence[str]) -> Plan[list[StoredRoute]]:
    """Return the routes of as many of the topics as one script reads, one at least."""
    read = RoutesRead((yield routes_call(keys, tuple(topics))))
    if not read.whole:
        return [(yield from read_route(keys, topics[0]))]
    return [read.route(topics[i], i) for i in range(len(read))]


def _shown(route: StoredRoute) -> _Shown:
    return _Shown(
        frozenset(as_json((one.data, one.queues, one.filters, route.order_conf)) for one in route.brokers),
        sum(one.queues.read_queue_nums for one in route.brokers if one.queues.perm & PERM_READ),
        sum(
            one.queues.write_queue_nums
            for one in route.brokers
            if one.queues.perm & PERM_WRITE and MASTER in one.data.broker_addrs
        ),
    )
