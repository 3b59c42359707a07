"""Topic tables cut into what one script and one event may carry."""

from collections.abc import Iterable, Iterator

import msgspec

from registry.plans import Argument, as_json
from remoting.steps import Steps, finished

TOPICS_MAX = 500  # Lua costs about 1 µs a topic and table
ROWS_MAX_BYTES = 60_000  # of one event, which may carry 64 KB
MAPPINGS_MAX = 100
COMMIT_MAX_BYTES = 640_000  # rows that the commit of a first registration may still carry


class Row(msgspec.Struct, frozen=True, gc=False):
    """A change of one field: of a topic's queue data, or of its mapping info. "" means absent."""

    topic: str
    before: str
    after: str


class Slice(msgspec.Struct, frozen=True):
    """What one script writes, and the entry that tells of it."""

    kind: str
    cause: str
    changes: tuple[Row, ...]
    rows: bytes

    @property
    def of_mappings(self) -> bool:
        return self.kind == "mappings_changed"

    def entry(self) -> tuple[Argument, ...]:
        """kind, cause, rows, count, topic: as lua/includes/rows.lua takes it."""
        topic = self.changes[0].topic if len(self.changes) == 1 else ""
        return (self.kind, self.cause, self.rows, len(self.changes), topic)


class Counts(msgspec.Struct, frozen=True):
    """How many pairs and entries follow in a script's arguments."""

    rows: int = 0
    mappings: int = 0
    entries: int = 0


def slices_of(name: str, cause: str, topics: Iterable[Row], mappings: Iterable[Row] = ()) -> list[Slice]:
    """Broker `name`'s changes, cut; a topic stands whole in one slice."""
    return finished(slicing(name, cause, topics, mappings))


def slicing(name: str, cause: str, topics: Iterable[Row], mappings: Iterable[Row] = ()) -> Steps[list[Slice]]:
    """As slices_of, a slice each step."""
    cut = []
    for part in _parts(topics, TOPICS_MAX):
        cut.append(Slice("topics_changed", cause, part, _topic_rows(name, part)))
        yield
    for part in _parts(mappings, MAPPINGS_MAX):
        cut.append(Slice("mappings_changed", cause, part, _mapping_rows(name, part)))
        yield
    return cut


def arguments(written: Slice | None, told: Iterable[Slice]) -> tuple[Counts, tuple[Argument, ...]]:
    """-> the counts and the arguments of a script that writes one slice and tells of several."""
    values: list[Argument] = []
    changes = written.changes if written else ()
    for row in changes:
        values += (row.topic, row.after)
    entries = 0
    for one in told:
        values += one.entry()
        entries += 1
    of_mappings = written is not None and written.of_mappings
    counts = Counts(0 if of_mappings else len(changes), len(changes) if of_mappings else 0, entries)
    return counts, tuple(values)


def _parts(rows: Iterable[Row], limit: int) -> Iterator[tuple[Row, ...]]:
    part: list[Row] = []
    size = 0
    for row in rows:
        weight = 3 * len(row.topic) + len(row.before) + len(row.after) + 16
        if part and (len(part) == limit or size + weight > ROWS_MAX_BYTES):
            yield tuple(part)
            part, size = [], 0
        part.append(row)
        size += weight
    if part:
        yield tuple(part)


def _topic_rows(name: str, changes: tuple[Row, ...]) -> bytes:
    grouped: dict[tuple[str, str], list[str]] = {}
    before = after = None
    topics: list[str] = []
    for row in changes:
        if row.before != before or row.after != after:
            before, after = row.before, row.after
            topics = grouped.setdefault((before, after), [])
        topics.append(row.topic)
    return as_json([(name, before, after, topics) for (before, after), topics in grouped.items()])


def _mapping_rows(name: str, changes: tuple[Row, ...]) -> bytes:
    def info(text: str) -> msgspec.Raw | None:
        return msgspec.Raw(text.encode()) if text else None

    return as_json([(name, row.topic, info(row.before), info(row.after)) for row in changes])
