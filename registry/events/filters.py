"""Which entries a reader wants: by kind, by actor, and by the topic, broker or cluster that they name."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec

from registry.events.entry import AUDITED_CAUSES, AUDITED_KINDS, Event, EventKind
from registry.events.replay_changes import MappingRow, Row
from registry.keys import ORDER_TOPIC_CONFIG

Named = Callable[[Event], Iterator[str]]
ESCAPE: Final = "\\"
"""JSON without it has names as they are."""
AUDITED: Final = AUDITED_KINDS | AUDITED_CAUSES


class Filter(msgspec.Struct, frozen=True):
    """What an entry has to be; a member that is None or empty asks for nothing.

    Checkpoint entries repeat what is there, so without `checkpoints` they are wanted only where `kinds` names them."""

    kinds: frozenset[str] = frozenset()
    actor: str | None = None
    topic: str | None = None
    broker: str | None = None
    cluster: str | None = None
    checkpoints: bool = False
    audited: bool = False

    @property
    def wants_checkpoints(self) -> bool:
        """Whether an entry of a checkpoint round may be wanted."""
        return EventKind.CHECKPOINT in self.kinds if self.kinds else self.checkpoints

    def may_want(self, text: str) -> bool:
        """Return whether an entry among those that have this text, all of their values, may be wanted.

        Most entries are none of a sparse filter's, and this is a tenth of the work of a look at each."""
        names = (name for name in (self.topic, self.broker, self.cluster) if name is not None)
        return (
            (not self.kinds or any(kind in text for kind in self.kinds))
            and (not self.audited or any(sign in text for sign in AUDITED))
            and (self.actor is None or self.actor in text)
            and all(name in text or ESCAPE in text for name in names)
        )

    def wants(self, event: Event) -> bool:
        """Return whether the entry is wanted; one with damaged fields is if the name occurs in them."""
        return (
            self._wants_kind(event)
            and (self.actor is None or is_of_actor(event, self.actor))
            and (self.topic is None or _names(event, self.topic, topics_of))
            and (self.broker is None or _names(event, self.broker, brokers_of))
            and (self.cluster is None or _names(event, self.cluster, clusters_of))
        )

    def _wants_kind(self, event: Event) -> bool:
        if self.audited and not event.is_audited:
            return False
        if event.kind == EventKind.CHECKPOINT:
            return self.wants_checkpoints
        return not self.kinds or event.kind in self.kinds


def is_of_actor(event: Event, actor: str) -> bool:
    """Return whether the entry's actor or peer is this one, or begins with it up to a colon.

    Of `http:10.0.0.5:41210` these are `http`, `http:10.0.0.5`, `10.0.0.5` and all of it."""
    whole = event.get("actor")
    return any(
        f"{text}:".startswith(f"{actor}:") for text in (whole, whole.partition(":")[2], event.get("peer"))
    )


def topics_of(event: Event) -> Iterator[str]:
    """Yield the topics that the entry names. Raises KeyError, ValueError, RecursionError for damage."""
    yield from _field(event, "topic")
    yield from TOPICS.get(event.kind, _nothing)(event)


def brokers_of(event: Event) -> Iterator[str]:
    """Yield the broker names that the entry names. Raises KeyError, ValueError, RecursionError for damage."""
    yield from _field(event, "broker")
    yield from BROKERS.get(event.kind, _nothing)(event)


def clusters_of(event: Event) -> Iterator[str]:
    """Yield the clusters that the entry names. Raises KeyError, ValueError, RecursionError for damage."""
    yield from _field(event, "cluster")
    yield from _field(event, "group_cluster")
    yield from CLUSTERS.get(event.kind, _nothing)(event)


def _names(event: Event, name: str, names_of: Named) -> bool:
    texts = event.fields.values()
    if not any(name in text or ESCAPE in text for text in texts):
        return False
    if event.kind not in KINDS:
        return any(name in strings_of(text) for text in texts)
    try:
        return name in names_of(event)
    except (LookupError, ValueError, RecursionError):
        return any(name in text for text in texts)


def strings_of(text: str) -> Iterator[str]:
    """Yield a text, and what is a string in it if it is JSON: of an unknown kind each may be a name."""
    yield text
    try:
        left: list[Any] = [msgspec.json.decode(text.encode(errors="surrogatepass"))]
    except (ValueError, RecursionError):
        return
    while left:
        value = left.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            left += (*value, *value.values())
        elif isinstance(value, list):
            left += value


def _field(event: Event, name: str) -> Iterator[str]:
    if name in event.fields:
        yield event.fields[name]


def _nothing(_: Event) -> Iterator[str]:
    yield from ()


def _list(field: str) -> Named:
    def names(event: Event) -> Iterator[str]:
        if field in event.fields:
            yield from event.json(field, list[str])

    return names


def _topic_rows(event: Event) -> Iterator[str]:
    for _, _, _, topics in event.json("rows", list[Row]):
        yield from topics


def _mapping_rows(event: Event) -> Iterator[str]:
    for _, topic, _, _ in event.json("rows", list[MappingRow]):
        yield topic


def _order_topic(event: Event) -> Iterator[str]:
    if event.get("kv_ns") == ORDER_TOPIC_CONFIG:
        yield from _field(event, "key")


def _checkpoint_topics(event: Event) -> Iterator[str]:
    scope = event.get("scope")
    if scope == "topics":
        yield from _topic_rows(event)
    elif scope == "mappings":
        yield from _mapping_rows(event)
    elif scope == "kv" and event.get("kv_ns") == ORDER_TOPIC_CONFIG:
        yield from event.json("values", dict[str, Any])


def _row_brokers(event: Event) -> Iterator[str]:
    for broker, *_ in event.json("rows", list[tuple[str, Any, Any, Any]]):
        yield broker


def _checkpoint_brokers(event: Event) -> Iterator[str]:
    if "rows" in event.fields:
        yield from _row_brokers(event)


class _Holder(msgspec.Struct):
    """`holder` of `conflict_seen`, whose members depend on the cause."""

    broker: str = ""
    brokers: tuple[str, ...] = ()
    cluster: str = ""


def _holders(event: Event) -> Iterator[str]:
    if "holder" in event.fields:
        holder: _Holder = event.json("holder", _Holder)
        yield from (holder.broker, *holder.brokers)


def _holder_cluster(event: Event) -> Iterator[str]:
    if "holder" in event.fields:
        yield event.json("holder", _Holder).cluster


class _Member(msgspec.Struct):
    cluster: str = ""


def _checkpoint_clusters(event: Event) -> Iterator[str]:
    if event.get("scope") in ("broker", "members"):
        yield from _list("clusters")(event)
        if "members" in event.fields:
            yield from (member.cluster for member in event.json("members", dict[str, _Member]).values())


KINDS: Final = frozenset(EventKind)
TOPICS: Final[Mapping[str, Named]] = {
    EventKind.TOPICS_CHANGED: _topic_rows,
    EventKind.MAPPINGS_CHANGED: _mapping_rows,
    EventKind.KV_CHANGED: _order_topic,
    EventKind.TABLES_REPAIRED: _list("topics"),
    EventKind.CHECKPOINT: _checkpoint_topics,
}
BROKERS: Final[Mapping[str, Named]] = {
    EventKind.BROKER_UPDATED: _list("also"),
    EventKind.TOPICS_CHANGED: _row_brokers,
    EventKind.MAPPINGS_CHANGED: _row_brokers,
    EventKind.CONFLICT_SEEN: _holders,
    EventKind.TABLES_REPAIRED: _list("brokers"),
    EventKind.CHECKPOINT: _checkpoint_brokers,
}
CLUSTERS: Final[Mapping[str, Named]] = {
    EventKind.CONFLICT_SEEN: _holder_cluster,
    EventKind.CHECKPOINT: _checkpoint_clusters,
}
