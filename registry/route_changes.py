"""What a dry run would mean for routes: those of the topics concerned are read as they are, and as they would be."""

from collections.abc import Sequence
from typing import Final

from registry.dry_run import DryRun
from registry.keys import ORDER_TOPIC_CONFIG, Keys
from registry.long_work.scan import scan_pages
from registry.plans import Plan
from registry.routes import RoutesRead, RouteView, StoredRoute, read_route, route_of, routes_call
from rocketmq_remoting.route import TopicRouteData
from rocketmq_remoting.route_changes import Named, RouteChanges, RouteComparison
from rocketmq_remoting.typed import decoded

__all__ = ["brokers_of", "route_changes"]

TOPICS_EXAMINED: Final = 10_000
"""More would be read from the store than a question is worth."""
TOPICS_AT_ONCE: Final = 100
OF_ALL_TOPICS: Final = frozenset({"broker_registered", "broker_removed", "broker_updated", "drain_changed"})
"""Kinds of entries that say of a broker what the routes of all its topics show."""
VIEW: Final = RouteView(order=True)
Row = tuple[str, str, str, tuple[str, ...]]
"""Of an entry: broker name, queue data before and after, topics."""


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
    comparison, at = RouteComparison(), 0
    while at < len(examined):
        some = examined[at : at + TOPICS_AT_ONCE]
        before = yield from _routes(keys, some)
        after = yield from run.of(_routes(keys, some))
        for was, will_be in zip(before, after, strict=False):
            comparison.add(was.topic, _shown(was), _shown(will_be))
        at += min(len(before), len(after))
    return comparison.changes(len(topics) - len(examined))


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


def _shown(route: StoredRoute) -> TopicRouteData | None:
    return route_of(route, VIEW) if route.brokers else None
