"""Which entries a watcher of the event stream wants, and which brokers hold the topic that it watches.

A change of a broker changes the routes of its topics, and its entry names none of them: so a watcher of a topic also
wants the entries of the brokers that hold it. Which these are now is read from the tables, and then follows from the
rows of the stream; which they were at an earlier entry is not known."""

from collections.abc import Iterable, Set
from functools import cached_property
from typing import Final, NamedTuple

import msgspec

from registry.events.entry import Event, EventKind
from registry.events.filters import KINDS, brokers_of, clusters_of, is_of_actor, topics_of
from registry.events.replay_changes import Row

__all__ = ["OF_HOLDERS", "ONLY_TABLES_KNOW", "NamedEntry", "Wanted", "holders_after"]

OF_HOLDERS: Final = frozenset(
    {
        EventKind.BROKER_REGISTERED,
        EventKind.BROKER_UPDATED,
        EventKind.BROKER_REMOVED,
        EventKind.DRAIN_CHANGED,
    }
)
"""Kinds of which a watcher of a topic wants the entries of the topic's brokers."""
ONLY_TABLES_KNOW: Final = frozenset({EventKind.STREAM_STARTED, EventKind.TABLES_REPAIRED})
"""Kinds behind which the rows of the stream do not say which brokers hold a topic."""


class Names(NamedTuple):
    """What an entry names."""

    topics: Set[str]
    brokers: Set[str]
    clusters: Set[str]


class NamedEntry:
    """An entry with what it names, which is read once for all watchers."""

    def __init__(self, event: Event) -> None:
        self.event: Final = event

    @cached_property
    def names(self) -> Names | None:
        """What it names; None where that is not known, as of a damaged entry or one of a later release."""
        if self.event.kind not in KINDS:
            return None
        try:
            return Names(*(frozenset(of(self.event)) for of in (topics_of, brokers_of, clusters_of)))
        except (LookupError, ValueError, RecursionError):
            return None


class Wanted(msgspec.Struct, frozen=True):
    """What entries have to be; a member that is None or empty asks for nothing.

    Entries of checkpoint rounds repeat what is there: they are for watchers of everything, and for those that name
    their kind."""

    kinds: frozenset[str] = frozenset()
    actor: str | None = None
    topic: str | None = None
    broker: str | None = None
    cluster: str | None = None

    @property
    def everything(self) -> bool:
        """Whether all entries are wanted."""
        return self == EVERYTHING

    def wants(self, entry: NamedEntry, holders: Set[str] | None) -> bool:
        """Return whether an entry is wanted; `holders` are the brokers that held the topic then, None where that is
        not known: then all brokers may have. An entry whose names cannot be read may name anything."""
        event = entry.event
        if event.kind == EventKind.CHECKPOINT and not self.kinds and not self.everything:
            return False
        if self.kinds and event.kind not in self.kinds:
            return False
        if self.actor is not None and not is_of_actor(event, self.actor):
            return False
        names = entry.names
        return names is None or (
            (self.broker is None or self.broker in names.brokers)
            and (self.cluster is None or self.cluster in names.clusters)
            and (self.topic is None or self.topic in names.topics or _of_holder(event, names, holders))
        )


EVERYTHING: Final = Wanted()


def _of_holder(event: Event, names: Names, holders: Set[str] | None) -> bool:
    return event.kind in OF_HOLDERS and (holders is None or not holders.isdisjoint(names.brokers))


def holders_after(
    holders: frozenset[str], topic: str, entries: Iterable[NamedEntry]
) -> frozenset[str] | None:
    """Return which brokers hold a topic after these entries; None where only the tables know.

    A broker that is removed still holds its topics: they count again if it comes back under its epoch."""
    for entry in entries:
        event, names = entry.event, entry.names
        if names is None or event.kind in ONLY_TABLES_KNOW:
            return None
        if event.kind == EventKind.BROKER_REGISTERED and _has_no_topics(event):
            holders -= names.brokers
        elif topic in names.topics and event.kind in (EventKind.TOPICS_CHANGED, EventKind.CHECKPOINT):
            holders = _after_rows(holders, topic, event)
    return holders


def _has_no_topics(event: Event) -> bool:
    """Return whether a broker is new, so that rows of an earlier epoch are void: a mirrored one has no `topics`."""
    return event.cause == "first" or (event.cause == "mirror" and event.get("topics") == "0")


def _after_rows(holders: frozenset[str], topic: str, event: Event) -> frozenset[str]:
    if "rows" not in event.fields or event.get("scope") == "mappings":
        return holders
    for broker, _, after, topics in event.json("rows", list[Row]):
        if topic in topics:
            holders = holders | {broker} if after else holders - {broker}
    return holders
