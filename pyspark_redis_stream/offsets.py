"""How far each stream has been read, as Spark keeps it in a query's checkpoint."""

from collections.abc import Mapping
from typing import NamedTuple

from pyspark_redis_stream.ids import Id, parsed

Offsets = dict[str, dict[str, str | int]]


class Position(NamedTuple):
    """Everything up to `id` is read; `seen` if that was an entry. `reads` grows when reading starts over."""

    id: Id
    seen: bool
    reads: int = 0


def positions_of(offsets: Offsets) -> dict[str, Position]:
    """What `offsets_of` made."""
    return {
        stream: Position(parsed(str(one["id"])), bool(one["seen"]), int(one["reads"]))
        for stream, one in offsets.items()
    }


def offsets_of(positions: Mapping[str, Position]) -> Offsets:
    """Plain values, in one order: Spark compares them as text."""
    return {
        stream: {"id": str(at.id), "seen": int(at.seen), "reads": at.reads}
        for stream, at in sorted(positions.items())
    }
