"""Answers kept until something that they were made of changes: routes (105), missing topics, cluster info (106).

Nothing here waits or looks at a clock. An answer is indexed under its topic, and holds a mark of every broker name
that was looked at for it, because removals name no topics: to name a broker is to set its mark, however many routes
it is in. An answer that is untrue by that is given no more, and stays until it is made anew: should the store come
back empty, what it tells of all others is the best there is. A fill whose topic or broker is named while it is in
flight answers those who wait for it and is not kept; who asks after that starts a fill of his own.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from remoting.codes import ResponseCode
from remoting.remoting_command import Command
from worker.answer import Answer, Depends
from worker.counters import Counters
from worker.known_frames import FRAME_COST, Known, KnownFrames
from worker.peer import Peer
from worker.remembered import NOBODY
from worker.route_view import CLUSTER_INFO, Key

OVERHEAD_BYTES = 1500  # of an entry and its place in the index, measured
NEGATIVE_SHARE = 8  # missing topics get an eighth: whoever asks for random names must not push routes out
FRAMES_MOST = 8  # per answer: as many releases and languages of clients may ask for it in their ways
SECOND_CHANCES = 32  # entries passed over by one eviction, so that it stays short


class Fill:
    """An answer being made; `waiting` is who gets it, `awaited` what worker.remembered had when the store was asked."""

    __slots__ = ("awaited", "key", "named", "stale", "waiting")

    def __init__(self, key: Key) -> None:
        self.key = key
        self.waiting: list[tuple[Command, Peer]] = []
        self.awaited = NOBODY
        self.named: frozenset[str] = frozenset()
        self.stale = False


class Mark:
    """Of a broker name, in all entries that were made since it was named last."""

    __slots__ = ("named",)

    def __init__(self) -> None:
        self.named = False


class Entry:
    """`frames` are the requests that are known to get this answer. Once it is `untrue`, `named` are the brokers that
    were named with its topic, or with the clusters."""

    __slots__ = ("answer", "cost", "frames", "marks", "named", "untrue", "used")

    def __init__(self, answer: Answer, marks: tuple[Mark, ...], cost: int) -> None:
        self.answer = answer
        self.marks = marks
        self.cost = cost
        self.used = False
        self.frames: tuple[Known, ...] = ()
        self.untrue = False
        self.named: set[str] | None = None

    def rest(self) -> Answer:
        """The answer, listing whom nobody named since it was made."""
        depends = self.answer.depends
        assert depends is not None
        named = {name for name, mark in zip(depends.brokers, self.marks, strict=True) if mark.named}
        named.update(self.named or ())
        if not named:
            return self.answer
        listed = {name: ids for name, ids in depends.listed.items() if name not in named}
        return replace(self.answer, depends=replace(depends, listed=listed))


class Shelf:
    """Entries within a number of bytes; the oldest that was not used since goes first.

    An ordered dict, because the first entry of a dict whose first ones are gone is far from its beginning."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.bytes = 0
        self.entries: OrderedDict[Key, Entry] = OrderedDict()

    def put(self, key: Key, entry: Entry) -> None:
        self.entries[key] = entry
        self.bytes += entry.cost

    def take(self, key: Key) -> Entry | None:
        entry = self.entries.pop(key, None)
        if entry is not None:
            self.bytes -= entry.cost
        return entry

    def overdrawn(self) -> Iterator[Key]:
        """Keys to take, until the rest fits."""
        chances = SECOND_CHANCES
        while self.bytes > self.limit:
            key = next(iter(self.entries))
            entry = self.entries[key]
            if entry.used and chances:
                chances -= 1
                entry.used = False
                self.entries.move_to_end(key)
            else:
                yield key


class RouteCache:
    """Lives on one event loop; `limit` is in bytes. `frames` are the requests known by their bytes;
    `generation` moves whenever an answer may have become untrue."""

    def __init__(self, limit: int, counters: Counters) -> None:
        self.generation = 0
        self._counters = counters
        self.frames = KnownFrames(self._still, counters)
        self._found = Shelf(limit)
        self._missing = Shelf(limit // NEGATIVE_SHARE)
        self._by_topic: dict[str, tuple[Key, ...]] = {}
        self._marks: dict[str, Mark] = {}
        self._marked: tuple[Depends | None, int, tuple[Mark, ...]] = (None, 0, ())  # what was kept last
        self._joinable: dict[Key, Fill] = {}
        self._in_flight: set[Fill] = set()

    def __len__(self) -> int:
        return len(self._found.entries) + len(self._missing.entries)

    @property
    def size(self) -> int:
        """What the entries cost, about, in bytes."""
        return self._found.bytes + self._missing.bytes

    def get(self, key: Key) -> Answer | None:
        """The answer kept."""
        entry = self._found.entries.get(key)
        if entry is None:
            entry = self._missing.entries.get(key)
            if entry is None:
                return None
        if entry.untrue:
            return None
        for mark in entry.marks:
            if mark.named:
                entry.untrue = True
                return None
        if entry.answer.code:
            self._counters.cache_negative_hits += 1
        else:
            self._counters.cache_hits += 1
        entry.used = True
        return entry.answer

    def know(self, key: Key, frame: bytes, command: Command) -> None:
        """The request of this frame gets the answer kept under `key`."""
        entry = self._found.entries.get(key)
        if entry is None or len(entry.frames) >= FRAMES_MOST:
            return
        known = self.frames.keep(frame, command, entry.answer, self)
        if known is not None:
            known.key = key
            entry.frames = (*entry.frames, known)
            entry.cost += FRAME_COST
            self._found.bytes += FRAME_COST

    def fill_under_way(self, key: Key) -> Fill | None:
        """A fill that began after everything the cache has been told of: one may wait for it."""
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

    def end(self, fill: Fill, answer: Answer) -> None:
        """Keep the answer if it may be kept and nothing it depends on was named."""
        self._in_flight.discard(fill)
        if self._joinable.get(fill.key) is fill:
            del self._joinable[fill.key]
        depends = answer.depends
        if depends is not None:
            if fill.stale or not fill.named.isdisjoint(depends.brokers) or (depends.every and fill.named):
                self._counters.cache_discarded += 1
            else:
                self._keep(fill.key, answer, depends)

    def drop_topics(self, topics: Iterable[str], broker: str = "") -> None:
        """Queue data, mappings or the order configuration of these topics changed, at `broker` if it is one's."""
        self.generation += 1
        named = set(topics)
        for topic in named & self._by_topic.keys():
            for key in self._by_topic[topic]:
                self._make_untrue(key, (broker,))
        for fill in self._in_flight:
            if fill.key[0] in named and fill.key is not CLUSTER_INFO:
                self._outdate(fill)

    def drop_brokers(self, names: Iterable[str]) -> None:
        """Members or attributes of these brokers changed, and with them the cluster info."""
        named = frozenset(names)
        if not named:
            return
        self.generation += 1
        for name in named:
            mark = self._marks.pop(name, None)
            if mark is not None:
                mark.named = True
        self._make_untrue(CLUSTER_INFO, named)
        for fill in self._in_flight:
            fill.named |= named
        self._joinable.clear()

    def drop_all(self) -> None:
        """Nothing is known any more."""
        self.generation += 1
        self._counters.cache_dropped += len(self)
        for entry in self._found.entries.values():
            self._forget_frames(entry)
        for shelf in (self._found, self._missing):
            shelf.entries.clear()
            shelf.bytes = 0
        self._by_topic.clear()
        self._marks.clear()
        for fill in tuple(self._in_flight):
            self._outdate(fill)

    def found(self) -> list[tuple[Key, Answer]]:
        """What was answered last of topics that are there, and of clusters, listing whom nobody named since."""
        return [(key, entry.rest()) for key, entry in self._found.entries.items()]

    def _keep(self, key: Key, answer: Answer, depends: Depends) -> None:
        shelf = self._missing if answer.code == ResponseCode.TOPIC_NOT_EXIST else self._found
        cost = OVERHEAD_BYTES + len(answer.body) + 4 * len(key[0]) + 100 * len(depends.brokers)
        if 4 * cost > shelf.limit:
            self._counters.cache_oversize += 1
            return
        if key in self._found.entries or key in self._missing.entries:
            self._remove(key)
        shelf.put(key, Entry(answer, self._marks_of(depends), cost))
        if key is not CLUSTER_INFO:
            self._by_topic[key[0]] = (*self._by_topic.get(key[0], ()), key)
        if shelf.bytes > shelf.limit:
            for old in shelf.overdrawn():
                self._remove(old)

    def _marks_of(self, depends: Depends) -> tuple[Mark, ...]:
        """Answers kept one after the other were often made alike, and nothing named since."""
        last, generation, found = self._marked
        if last is not depends or generation != self.generation:
            found = tuple([self._marks.get(name) or self._mark(name) for name in depends.brokers])
            self._marked = depends, self.generation, found
        return found

    def _mark(self, name: str) -> Mark:
        mark = self._marks[name] = Mark()
        return mark

    def _make_untrue(self, key: Key, named: Iterable[str]) -> None:
        entry = self._found.entries.get(key)
        if entry is not None:
            entry.untrue = True
            entry.named = entry.named or set()
            entry.named.update(named)
            self._forget_frames(entry)
        elif key in self._missing.entries:
            self._remove(key)

    def _remove(self, key: Key) -> None:
        entry = self._found.take(key) or self._missing.take(key)
        if entry is None:
            return
        self._counters.cache_dropped += 1
        self._forget_frames(entry)
        if key is not CLUSTER_INFO:
            keys = tuple([other for other in self._by_topic[key[0]] if other != key])
            if keys:
                self._by_topic[key[0]] = keys
            else:
                del self._by_topic[key[0]]

    def _still(self, known: Known) -> bool:
        return known.key is not None and self.get(known.key) is known.answer

    def _forget_frames(self, entry: Entry) -> None:
        for known in entry.frames:
            self.frames.forget(known)

    def _outdate(self, fill: Fill) -> None:
        fill.stale = True
        if self._joinable.get(fill.key) is fill:
            del self._joinable[fill.key]
