"""Cached replies to list requests, until what they are made of changes.

A reply is kept under the request's code and argument. It is made of one kind of tables, and true until one of these
changes: events say so, and for brokers the ends of leases too. A list that is read while its tables change answers
those that wait for it and is not kept; a later request has it read again."""

from enum import Enum, auto
from typing import Final, NamedTuple

from registry.caching.bounded import Bounded
from registry.caching.stamp import Stamp
from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.remoting_command import Command
from worker.counters import Counters
from worker.peer import Peer
from worker.reply import Reply

__all__ = ["LISTS", "ListCache", "ListFill", "ListKey", "Made", "list_key"]

LISTS_FRACTION: Final = 2
"""routeCacheBytes divided by this is theirs, for a list of 100,000 topics alone is 5 MB."""
COST: Final = 600
"""Bytes that one takes beside its own."""


class Made(Enum):
    """What lists are made of."""

    TOPICS = auto()
    BROKERS = auto()
    KV = auto()
    OPTIONS = auto()


class _Kind(NamedTuple):
    made_of: Made
    argument: str = ""


_KINDS: Final[dict[int, _Kind]] = {
    RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: _Kind(Made.TOPICS),
    RequestCode.GET_TOPICS_BY_CLUSTER: _Kind(Made.TOPICS, "cluster"),
    RequestCode.GET_UNIT_TOPIC_LIST: _Kind(Made.TOPICS),
    RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST: _Kind(Made.TOPICS),
    RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST: _Kind(Made.TOPICS),
    RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS: _Kind(Made.BROKERS),
    RequestCode.GET_KVLIST_BY_NAMESPACE: _Kind(Made.KV, "namespace"),
    RequestCode.GET_NAMESRV_CONFIG: _Kind(Made.OPTIONS),
}


LISTS: Final = frozenset(_KINDS)
"""Request codes."""


class ListKey(NamedTuple):
    """A list: its request's code and argument."""

    code: int
    argument: str | None


def list_key(command: Command) -> ListKey | None:
    """Return which list a request asks for, or None for another request."""
    kind = _KINDS.get(command.code)
    if kind is None:
        return None
    return ListKey(command.code, command.get(kind.argument) if kind.argument else None)


class _Tables:
    """One kind of them; see `registry.caching.stamp.Source`."""

    def __init__(self) -> None:
        self.generation = 0


class _Kept(NamedTuple):
    reply: Reply
    stamp: Stamp


class ListFill:
    """A list being made; `waiting` are the requests that get it, `stamp` is of when its reading began."""

    __slots__ = ("key", "stamp", "waiting")

    def __init__(self, key: ListKey) -> None:
        self.key = key
        self.waiting: list[tuple[Command, Peer]] = []
        self.stamp: Stamp | None = None


class ListCache:
    """Lives on one event loop; `limit` is that of the route cache in bytes."""

    def __init__(self, limit: int, counters: Counters) -> None:
        self._counters = counters
        self._kept: Bounded[ListKey, _Kept] = Bounded(limit // LISTS_FRACTION, _cost)
        self._tables = {made: _Tables() for made in Made}
        self._under_way: dict[ListKey, ListFill] = {}

    def get(self, key: ListKey) -> Reply | None:
        """Return the kept reply while it is true, or None."""
        kept = self._kept.get(key)
        if kept is None:
            return None
        if not kept.stamp.is_valid(0.0):
            self._kept.pop(key)
            return None
        self._counters.list_hits += 1
        return kept.reply

    def fill_under_way(self, key: ListKey) -> ListFill | None:
        """Return a fill whose reading began after all changes so far, or has yet to begin, or None."""
        fill = self._under_way.get(key)
        return None if fill is None or (fill.stamp and not fill.stamp.is_valid(0.0)) else fill

    def begin(self, key: ListKey) -> ListFill:
        """Announce that a list is to be made; `end` must follow."""
        self._counters.list_fills += 1
        fill = self._under_way[key] = ListFill(key)
        return fill

    def read(self, fill: ListFill) -> None:
        """Note that the reading begins."""
        fill.stamp = Stamp(self._tables[_KINDS[fill.key.code].made_of])

    def end(self, fill: ListFill, reply: Reply) -> None:
        """Keep the reply if it may be kept and nothing it is made of has changed meanwhile."""
        if self._under_way.get(fill.key) is fill:
            del self._under_way[fill.key]
        if fill.stamp is None:  # made at once
            self.read(fill)
        if reply.depends is not None and fill.stamp is not None and fill.stamp.is_valid(0.0):
            self._kept.put(fill.key, _Kept(reply, fill.stamp))

    def changed(self, *made: Made) -> None:
        """Make all lists untrue that are made of these."""
        for one in made:
            self._tables[one].generation += 1

    def drop_all(self) -> None:
        """Drop all replies: anything may have changed."""
        self.changed(*Made)
        self._kept.clear()


def _cost(key: ListKey, kept: _Kept) -> int:
    return COST + len(kept.reply.body) + 4 * len(key.argument or "")
