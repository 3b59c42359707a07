"""Slices of topic tables: what one script and one event may carry."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self

import msgspec

from registry.plans import Argument, as_json
from rocketmq_remoting.cooperative import Cooperative
from rocketmq_remoting.typed import converted

TOPICS_MAX = 500  # Lua costs about 1 µs a topic and table
STAGED_TOPICS = 125  # of scripts that may be many: other clients of the store are served between two
ROWS_MAX_BYTES = 60_000  # of one event, which may carry 64 KB
MAPPINGS_MAX = 100
COMMIT_MAX_BYTES = 640_000  # rows that the commit of a first registration may still carry
Changes = Mapping[tuple[str, str], list[str]]
"""Topics by their queue data before and after, "" for absent."""


class Alike(NamedTuple):
    """Topics whose queue data change alike. "" means absent."""

    before: str
    after: str
    topics: list[str]


class Row(msgspec.Struct, frozen=True, gc=False):
    """A change of a topic's mapping info. "" means absent."""

    topic: str
    before: str
    after: str


class Slice(msgspec.Struct, frozen=True):
    """What one script writes of broker `name`, and its entry: `topics` or `mappings`; `rows` is JSON.

    `count` is how many pairs of a topic and this broker."""

    cause: str
    name: str
    topics: tuple[Alike, ...]
    mappings: tuple[Row, ...]
    rows: bytes
    count: int

    @classmethod
    def of_topics(cls, cause: str, name: str, topics: tuple[Alike, ...]) -> Self:
        rows = as_json([(name, *alike) for alike in topics])
        return cls(cause, name, topics, (), rows, sum(len(alike.topics) for alike in topics))

    @classmethod
    def of_mappings(cls, cause: str, name: str, mappings: tuple[Row, ...]) -> Self:
        return cls(cause, name, (), mappings, _mapping_rows(name, mappings), len(mappings))

    @property
    def kind(self) -> str:
        return "mappings_changed" if self.mappings else "topics_changed"

    def entry(self) -> tuple[Argument, ...]:
        """Return kind, cause, rows, count, topic, as lua/includes/rows.lua takes them."""
        topic = ""
        if self.count == 1:
            topic = self.mappings[0].topic if self.mappings else self.topics[0].topics[0]
        return (self.kind, self.cause, self.rows, str(self.count), topic)

    def staged(self) -> Iterator[Self]:
        """Return the same for scripts of `STAGED_TOPICS` each."""
        if self.count <= STAGED_TOPICS:
            yield self
            return
        for batch in _cut(self.topics, STAGED_TOPICS):
            yield self.of_topics(self.cause, self.name, batch)


class WrittenSlice(msgspec.Struct, frozen=True, array_like=True):
    """What lua/write_slice.lua replies: the last entry, and the generation that the broker has now."""

    event_id: str
    generation: int

    @property
    def stale(self) -> bool:
        """Whether the broker has changed meanwhile, so that nothing was written."""
        return self.generation < 0

    @classmethod
    def of(cls, reply: Any) -> Self:
        return converted(reply, cls)


def slicing(name: str, cause: str, topics: Changes, mappings: Iterable[Row] = ()) -> Cooperative[list[Slice]]:
    """Return broker `name`'s changes as slices, one each step; a topic is whole in one of them."""
    slices: list[Slice] = []
    for batch in _cut([Alike(*change, names) for change, names in topics.items()], TOPICS_MAX):
        slices += _fitting(Slice.of_topics(cause, name, batch))
        yield
    for rows in _mapping_pages(mappings):
        slices.append(Slice.of_mappings(cause, name, rows))
        yield
    return slices


def slices_of_few(name: str, cause: str, topics: Changes) -> tuple[Slice, ...]:
    """Return what `slicing` does of at most TOPICS_MAX topics."""
    alike = tuple([Alike(*change, names) for change, names in topics.items()])
    return tuple(_fitting(Slice.of_topics(cause, name, alike))) if alike else ()


def arguments(written: Slice | None = None, emitted: Collection[Slice] = ()) -> tuple[Argument, ...]:
    """Return the arguments of a script that writes one slice, or none, and emits entries of several, as
    lua/includes/rows.lua takes them."""
    mappings, rows = (written.mappings, written.topics) if written else ((), ())
    values: list[Argument] = [str(len(mappings)), str(len(rows)), str(len(emitted))]
    for mapping in mappings:
        values += (mapping.topic, mapping.after)
    for row in rows:
        values += (row.before, row.after, str(len(row.topics)), *row.topics)
    for each in emitted:
        values += each.entry()
    return tuple(values)


def _cut(changes: Sequence[Alike], most: int) -> Iterator[tuple[Alike, ...]]:
    """Return the same in batches of at most so many topics."""
    count = sum(len(alike.topics) for alike in changes)
    if 0 < count <= most:
        yield tuple(changes)
        return
    batch: list[Alike] = []
    room = most
    for before, after, topics in changes:
        at = 0
        while at < len(topics):
            if not room:
                yield tuple(batch)
                batch, room = [], most
            taken = topics[at : at + room]
            batch.append(Alike(before, after, taken))
            at += len(taken)
            room -= len(taken)
    if batch:
        yield tuple(batch)


def _fitting(whole: Slice) -> Iterator[Slice]:
    """Return its halves, and theirs, until an event may carry each."""
    if len(whole.rows) <= ROWS_MAX_BYTES or whole.count == 1:
        yield whole
        return
    for half in _cut(whole.topics, (whole.count + 1) // 2):
        yield from _fitting(Slice.of_topics(whole.cause, whole.name, half))


def _mapping_pages(rows: Iterable[Row]) -> Iterator[tuple[Row, ...]]:
    page: list[Row] = []
    size = 0
    for row in rows:
        weight = 3 * len(row.topic) + len(row.before) + len(row.after) + 16
        if page and (len(page) == MAPPINGS_MAX or size + weight > ROWS_MAX_BYTES):
            yield tuple(page)
            page, size = [], 0
        page.append(row)
        size += weight
    if page:
        yield tuple(page)


def _mapping_rows(name: str, changes: tuple[Row, ...]) -> bytes:
    def info(text: str) -> msgspec.Raw | None:
        return msgspec.Raw(text.encode()) if text else None

    return as_json([(name, row.topic, info(row.before), info(row.after)) for row in changes])
