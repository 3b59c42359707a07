"""Cached replies to lookups: routes (105), missing topics, cluster info (106), until what they are made of changes.

Nothing here waits or looks at a clock. A reply is indexed under its topic, and holds the generation of every broker
name that was looked at for it, because removals name no topics: a change of a broker ends its generation, however many
routes it is in. A reply that is untrue by that is given no more, and stays until it is made again: should the store
come back empty, what it says of all other brokers is the best there is. A fill whose topic or broker changes while it
is in flight answers those that wait for it and is not kept; a later request starts a fill of its own.
"""

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from registry.caching.bounded import Bounded
from rocketmq_remoting.codes import ResponseCode
from rocketmq_remoting.remoting_command import Command
from worker.cache.before_loss import NO_BROKERS
from worker.cache.cached_requests import CachedReply, CachedRequests, Longer
from worker.cache.views import CLUSTER_INFO, Key, cost_of
from worker.counters import Counters
from worker.peer import Peer
from worker.reply import Depends, Reply

NEGATIVE_FRACTION: Final = 8
"""Missing topics get an eighth: requests for random names must not evict routes."""
REQUESTS_FRACTION: Final = 2
VIEWS_MOST: Final = 16
"""Views of a topic, some for each zone: a peer may name any. A further zone takes the place of the one that came
first."""


class Fill:
    """A reply being made; `waiting` are the requests that get it, `awaited` what `worker.cache.before_loss` had when
    the store was asked."""

    __slots__ = ("awaited", "changed", "key", "stale", "waiting")

    def __init__(self, key: Key) -> None:
        self.key = key
        self.waiting: list[tuple[Command, Peer]] = []
        self.awaited = NO_BROKERS
        self.changed: frozenset[str] = frozenset()
        self.stale = False


class Generation:
    """The generation of a broker name, in all entries that were made since its last change."""

    __slots__ = ("over",)

    def __init__(self) -> None:
        self.over = False


class Entry:
    """`requests` is the reply as cached requests get it, once for each kind of header. Once it is `untrue`, `changed`
    are the brokers that changed with its topic, or with the clusters."""

    __slots__ = ("changed", "generations", "reply", "requests", "untrue")

    def __init__(self, reply: Reply, generations: tuple[Generation, ...]) -> None:
        self.reply = reply
        self.generations = generations
        self.requests: tuple[CachedReply, ...] = ()
        self.untrue = False
        self.changed: frozenset[str] = frozenset()

    def of_unchanged(self) -> Reply:
        """Return the reply, listing only the brokers that have not changed since it was made."""
        depends = self.reply.depends
        assert depends is not None
        changed = {name for name, one in zip(depends.brokers, self.generations, strict=True) if one.over}
        changed |= self.changed
        if not changed:
            return self.reply
        listed = {name: ids for name, ids in depends.listed.items() if name not in changed}
        return replace(self.reply, depends=replace(depends, listed=listed))


class RouteCache:
    """Lives on one event loop; `limit` is in bytes. `requests` are the cached requests of its replies and of others;
    `generation` moves whenever a reply may have become untrue."""

    def __init__(self, limit: int, counters: Counters, longer: Longer = lambda *_: None) -> None:
        self.generation = 0
        self._counters = counters
        self.requests = CachedRequests(limit // REQUESTS_FRACTION, self, counters, longer)
        self.present: Bounded[Key, Entry] = Bounded(limit, _cost, self._evicted)
        self._missing: Bounded[Key, Entry] = Bounded(limit // NEGATIVE_FRACTION, _cost, self._evicted)
        self._by_topic: dict[str, tuple[Key, ...]] = {}
        self._generations: dict[str, Generation] = {}
        self._last_kept: tuple[Depends | None, int, tuple[Generation, ...]] = (None, 0, ())
        self._joinable: dict[Key, Fill] = {}
        self._in_flight: set[Fill] = set()

    def __len__(self) -> int:
        return len(self.present) + len(self._missing)

    @property
    def size(self) -> int:
        """Return what the entries cost, about, in bytes."""
        return self.present.size + self._missing.size

    def get(self, key: Key) -> Reply | None:
        """Return the cached reply while it is true, or None; it is counted."""
        reply = self._find(key)
        if reply is not None and reply.code:
            self._counters.cache_negative_hits += 1
        elif reply is not None:
            self._counters.cache_hits += 1
        return reply

    def _find(self, key: Key) -> Reply | None:
        entry = self.present.entries.get(key) or self._missing.entries.get(key)
        if entry is None or entry.untrue:
            return None
        if self.present.crowded or self._missing.crowded:
            self._record_use(key)
        for generation in entry.generations:
            if generation.over:
                entry.untrue = True
                return None
        return entry.reply

    def keep_request(self, key: Key, frame: bytes, command: Command, *, proven: bool = False) -> None:
        """Cache the reply kept under `key` for requests like the one of this frame; `proven` is as in `requests`."""
        if (entry := self.present.get(key)) is not None:
            kept = self.requests.keep_lookup(key, frame, command, entry.reply, self, proven=proven)
            entry.requests = entry.requests if kept is None else (*entry.requests, kept)

    def has(self, cached: CachedReply) -> bool:
        """Return whether the reply of a cached request is kept and true."""
        return cached.key is not None and self._find(cached.key) is cached.reply

    def evicted(self, cached: CachedReply) -> None:
        """Forget a cached request that was evicted."""
        entry = None if cached.key is None else self.present.entries.get(cached.key)
        if entry is not None:
            entry.requests = tuple([other for other in entry.requests if other is not cached])

    def fill_under_way(self, key: Key) -> Fill | None:
        """Return a fill that began after all changes so far, which one may wait for, or None; waiting is counted."""
        fill = self._joinable.get(key)
        if fill is not None:
            self._counters.cache_coalesced += 1
        return fill

    def begin(self, key: Key) -> Fill:
        """Announce that the store is being asked; `end` must follow."""
        self._counters.cache_misses += 1
        fill = Fill(key)
        self._joinable[key] = fill
        self._in_flight.add(fill)
        return fill

    def end(self, fill: Fill, reply: Reply) -> None:
        """Keep the reply if it may be kept and nothing it depends on has changed."""
        self._in_flight.discard(fill)
        if self._joinable.get(fill.key) is fill:
            del self._joinable[fill.key]
        depends = reply.depends
        if depends is None:
            return
        if fill.stale or (depends.every and fill.changed) or not fill.changed.isdisjoint(depends.brokers):
            self._counters.cache_discarded += 1
        else:
            self._keep(fill.key, reply, depends)

    def drop_topics(self, topics: Iterable[str], broker: str = "") -> None:
        """Drop replies of topics whose queue data (of `broker`, if given), mappings or order configuration changed."""
        self.generation += 1
        changed = set(topics)
        for topic in changed & self._by_topic.keys():
            for key in self._by_topic[topic]:
                self._make_untrue(key, (broker,))
        for fill in self._in_flight:
            if fill.key[0] in changed and fill.key is not CLUSTER_INFO:
                self._outdate(fill)

    def drop_brokers(self, names: Iterable[str]) -> None:
        """Members or attributes of these brokers changed, and with them the cluster info."""
        changed = frozenset(names)
        if not changed:
            return
        self.generation += 1
        for name in changed:
            generation = self._generations.pop(name, None)
            if generation is not None:
                generation.over = True
        self._make_untrue(CLUSTER_INFO, changed)
        for fill in self._in_flight:
            fill.changed |= changed
        self._joinable.clear()

    def drop_all(self) -> None:
        """Drop all replies: anything may have changed, also which view a request asks for."""
        self.generation += 1
        self.requests.forget_shapes()
        for entry in self.present.entries.values():
            self._drop_requests(entry)
        self.present.clear()
        self._missing.clear()
        self._by_topic.clear()
        self._generations.clear()
        for fill in tuple(self._in_flight):
            self._outdate(fill)

    def last_replies(self) -> list[tuple[Key, Reply]]:
        """Return the last replies of topics that exist, and of clusters, listing only unchanged brokers."""
        return [(key, entry.of_unchanged()) for key, entry in self.present.entries.items()]

    def _record_use(self, key: Key) -> None:
        """Make an entry the last of its kind to be evicted."""
        for entries in (self.present, self._missing):
            entries.get(key)

    def _keep(self, key: Key, reply: Reply, depends: Depends) -> None:
        if key is CLUSTER_INFO or key[0] in self._by_topic:
            self._remove(key)
        entries = self._missing if reply.code == ResponseCode.TOPIC_NOT_EXIST else self.present
        if not entries.put(key, Entry(reply, self._generations_of(depends))):
            self._counters.cache_oversize += 1
        elif key is not CLUSTER_INFO:
            views = self._by_topic[key[0]] = (*self._by_topic.get(key[0], ()), key)
            if len(views) > VIEWS_MOST:
                self._remove(next(oldest for oldest in views if oldest[1] and oldest[1].zone is not None))

    def _generations_of(self, depends: Depends) -> tuple[Generation, ...]:
        """Return the generations of the brokers; often those of the reply kept just before."""
        last, generation, generations = self._last_kept
        if last is not depends or generation != self.generation:
            generations = tuple(
                [self._generations.get(name) or self._begin(name) for name in depends.brokers]
            )
            self._last_kept = depends, self.generation, generations
        return generations

    def _begin(self, name: str) -> Generation:
        generation = self._generations[name] = Generation()
        return generation

    def _make_untrue(self, key: Key, changed: Iterable[str]) -> None:
        entry = self.present.entries.get(key)
        if entry is not None:
            entry.untrue = True
            entry.changed |= frozenset(changed)
            self._drop_requests(entry)
        else:
            self._remove(key)

    def _remove(self, key: Key) -> None:
        entry = self.present.pop(key) or self._missing.pop(key)
        if entry is not None:
            self._removed(key, entry)

    def _evicted(self, key: Key, entry: Entry) -> None:
        self._counters.cache_drops.add("size")
        self._removed(key, entry)

    def _removed(self, key: Key, entry: Entry) -> None:
        self._drop_requests(entry)
        if key is not CLUSTER_INFO:
            keys = tuple([other for other in self._by_topic[key[0]] if other != key])
            if keys:
                self._by_topic[key[0]] = keys
            else:
                del self._by_topic[key[0]]

    def _drop_requests(self, entry: Entry) -> None:
        requests, entry.requests = entry.requests, ()
        for cached in requests:
            self.requests.drop(cached)

    def _outdate(self, fill: Fill) -> None:
        fill.stale = True
        if self._joinable.get(fill.key) is fill:
            del self._joinable[fill.key]


def _cost(key: Key, entry: Entry) -> int:
    return cost_of(key, entry.reply)
