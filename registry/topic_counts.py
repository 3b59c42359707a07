"""Topics and queues of each cluster, and which topics no producer can write to: counted by a job, read by metrics."""

from collections import Counter, defaultdict
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from registry.clock import TIME, unix_ms
from registry.drains import drained_brokers, drained_names
from registry.keys import Keys
from registry.long_work.resting import rested
from registry.long_work.scan import scan_pages
from registry.members import Broker, broker_names, brokers
from registry.plans import Batch, Plan, call
from registry.queue_data.queue_text import current, queue_data
from rocketmq_remoting.permission import PERM_WRITE
from rocketmq_remoting.route import QueueData
from rocketmq_remoting.typed import decoded

__all__ = ["ClusterCounts", "Counted", "TopicCounts", "count", "read", "store"]

KEPT_MS: Final = 600_000
"""Counts that no process renews are no facts any more."""
REST: Final = 9
"""So many times as long as a page took is the pause behind it: counting takes a tenth of a core at most."""
MASTER: Final = 0
NAMES_AT_ONCE: Final = 500


class ClusterCounts(msgspec.Struct, frozen=True):
    """Of one cluster: its topics, the queues that its brokers have of them, and how many topics lack a writable master.

    Such a topic has no broker with a living master, no drain and write permission, and has one that a producer could
    write to if it had those. A topic that is read-only at brokers that others write to is none."""

    topics: int
    read_queues: int
    write_queues: int
    without_writable_master: int


class TopicCounts(msgspec.Struct, frozen=True):
    """`at_ms` (Unix ms of the Redis clock) is when counting began; `wiped` are brokers that have topics, of which none
    has write permission."""

    at_ms: int
    clusters: dict[str, ClusterCounts]
    wiped: tuple[str, ...]


class _State(NamedTuple):
    """A broker as counts go by it: its rows are the same while epoch and generation are."""

    name: str
    cluster: str
    epoch: int
    generation: str | None
    takes_messages: bool


class Counted(NamedTuple):
    """What was counted, and of which brokers."""

    states: tuple[_State, ...]
    counts: TopicCounts


def read(keys: Keys) -> Plan[TopicCounts | None]:
    """Return what was counted last; None where nothing was for ten minutes, and of damage until the next count."""
    text: str | None = yield call("GET", keys.topic_counts)
    try:
        return None if text is None else decoded(text.encode(errors="replace"), TopicCounts)
    except msgspec.MsgspecError:
        return None


def store(keys: Keys, counts: TopicCounts) -> Plan[None]:
    """Store what was counted, for ten minutes."""
    yield call("SET", keys.topic_counts, msgspec.json.encode(counts).decode(), "PX", KEPT_MS)


def count(keys: Keys, before: Counted | None = None) -> Plan[Counted]:
    """Count all rows of all brokers, page by page; what changes meanwhile may or may not be seen.

    If nothing has changed since `before` was counted it is returned, with the time of now."""
    at_ms = unix_ms((yield TIME))
    states = yield from _states(keys)
    if before is not None and before.states == states:
        return Counted(states, msgspec.structs.replace(before.counts, at_ms=at_ms))
    counting = _Counting()
    for state in states:
        counting.add(state, (yield from _rows(keys, state)))
    return Counted(states, TopicCounts(at_ms, counting.clusters(), tuple(counting.wiped)))


def _states(keys: Keys) -> Plan[tuple[_State, ...]]:
    """Return the brokers as counts go by them; `generation` is read first, and moves with each change of rows."""
    names = yield from broker_names(keys)
    generations: dict[str, str | None] = {}
    for start in range(0, len(names), NAMES_AT_ONCE):
        some = names[start : start + NAMES_AT_ONCE]
        replies = yield Batch(tuple(call("HGET", keys.broker(name), "gen") for name in some))
        generations |= zip(some, replies, strict=True)
    drained = {broker.name for broker in (yield from drained_brokers(keys, (yield from drained_names(keys))))}
    return tuple(
        _State(
            broker.name,
            broker.cluster,
            broker.epoch,
            generations[broker.name],
            _has_master(broker) and broker.name not in drained,
        )
        for broker in (yield from brokers(keys, names))
    )


def _rows(keys: Keys, broker: _State) -> Plan[dict[str, str]]:
    """Return a broker's queue data by topic, without the epoch."""
    rows: dict[str, str] = {}
    pages = scan_pages(
        keys.topics_of(broker.name), lambda page: rows.update(current(page, str(broker.epoch)))
    )
    yield from rested(pages, REST)
    return rows


class _Counting:
    """What was counted so far. A topic of a cluster is writable, would be, or is neither."""

    def __init__(self) -> None:
        self.wiped: list[str] = []
        self._topics: defaultdict[str, set[str]] = defaultdict(set)
        self._writable: defaultdict[str, set[str]] = defaultdict(set)
        self._would_be: defaultdict[str, set[str]] = defaultdict(set)
        self._read_queues = Counter[str]()
        self._write_queues = Counter[str]()

    def add(self, broker: _State, rows: dict[str, str]) -> None:
        """Count the rows of one broker; damaged ones are in no route, and in no count."""
        cluster = broker.cluster
        topics, writable = set[str](), set[str]()
        for topic, text in rows.items():
            data = _parsed(text)
            if data is None:
                continue
            topics.add(topic)
            self._read_queues[cluster] += data.read_queue_nums
            self._write_queues[cluster] += data.write_queue_nums
            if data.perm & PERM_WRITE:
                writable.add(topic)
        self._topics[cluster] |= topics
        if topics and not writable:
            self.wiped.append(broker.name)
        if writable and broker.takes_messages:
            self._writable[cluster] |= writable
        else:
            self._would_be[cluster] |= writable or topics

    def clusters(self) -> dict[str, ClusterCounts]:
        """Return the counts of each cluster."""
        return {
            cluster: ClusterCounts(
                len(topics),
                self._read_queues[cluster],
                self._write_queues[cluster],
                len(self._would_be[cluster] - self._writable[cluster]),
            )
            for cluster, topics in self._topics.items()
        }


def _has_master(broker: Broker) -> bool:
    return any(member.id == MASTER and member.lease.state != "overdue" for member in broker.members)


@lru_cache(4096)
def _parsed(text: str) -> QueueData | None:
    try:
        return queue_data("", text)
    except ValueError:
        return None
