"""Which entry of which key says what, the most important first, and which of them fit."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec

from pipeline.schemas import (
    INCIDENTS,
    REPORT_AVAILABILITY,
    REPORT_CHURN,
    REPORT_CHURN_TOPICS,
    REPORT_CONFLICTS,
    REPORT_DETECT,
    REPORT_FLAP,
    REPORT_REPAIR,
    REPORT_SKEW,
    REPORT_SLO,
    REPORT_TIMEOUTS,
)
from pipeline.serving import names
from pipeline.serving.results import ROLLING, Results, Row

ENTRY_BYTES = 128
"""What an entry takes of Redis's memory beside its text: table, pointers, headers, what allocators round up."""
IDS = 20
"""Of an incident so many ids are told; `members` says how many there are."""
NOT_TOLD = frozenset({"namespace", "unit", "as_of", "of"})
BY_UNIT = {
    names.SLO: REPORT_SLO,
    names.DETECT: REPORT_DETECT,
    names.REPAIR: REPORT_REPAIR,
    names.SKEW: REPORT_SKEW,
    names.TIMEOUTS: REPORT_TIMEOUTS,
}
"""Hashes of one window, the longest that ends at `as_of`."""


class Entry(NamedTuple):
    """A field of a hash with its value, or a member of a sorted set with its score."""

    key: str
    field: str
    value: str | float

    @property
    def size(self) -> int:
        """Bytes of Redis's memory, a little more than it takes."""
        return ENTRY_BYTES + len(self.field.encode()) + len(str(self.value).encode())


def window_name(row: Row) -> str:
    """`24h`, `day:2026-01-31`, `month:2026-01`"""
    window = str(row["window"])
    if window not in ("day", "month"):
        return window
    day = datetime.fromtimestamp(row["from_ms"] / 1000, UTC).date().isoformat()
    return f"{window}:{day if window == 'day' else day[:7]}"


def entries(results: Results) -> Iterator[Entry]:
    """All that could be served of a run, the most important first."""
    available = results.of(REPORT_AVAILABILITY.name)
    yield from _in_time(results)
    for key, table in BY_UNIT.items():
        yield from (_of_unit(key, row) for row in results.longest(table.name) if _kind(row) == "cluster")
    yield from _churn(results)
    yield from (_of_window(row) for row in available if _kind(row) == "cluster")
    yield from _flapping(results)
    for window in ROLLING:
        yield from (
            _of_window(row) for row in results.of(REPORT_AVAILABILITY.name, window) if _kind(row) != "cluster"
        )
    for key, table in BY_UNIT.items():
        yield from (_of_unit(key, row) for row in results.longest(table.name) if _kind(row) != "cluster")
    calendar = (row for row in available if row["window"] not in ROLLING and _kind(row) != "cluster")
    yield from map(_of_window, sorted(calendar, key=lambda row: -row["to_ms"]))


def fitting(found: Iterable[Entry], limit: int) -> tuple[list[Entry], int]:
    """-> those that fit into so many bytes, and how many do not."""
    kept, size, left_out = [], 0, 0
    for entry in found:
        if size + entry.size <= limit:
            kept.append(entry)
            size += entry.size
        else:
            left_out += 1
    return kept, left_out


def _kind(row: Row) -> str:
    return str(row["unit"]).partition(":")[0]


def _json(row: Row, **instead: object) -> str:
    told = {column: value for column, value in row.items() if column not in NOT_TOLD} | instead
    return msgspec.json.encode(told, order="deterministic").decode()


def _of_window(row: Row) -> Entry:
    return Entry(names.availability(window_name(row)), row["unit"], _json(row))


def _of_unit(key: str, row: Row) -> Entry:
    return Entry(key, row["unit"], _json(row))


def _in_time(results: Results) -> Iterator[Entry]:
    for row in results.of(INCIDENTS.name):
        ids = [f"{one['ms']}-{one['n']}" for one in (row["ids"] or ())[:IDS]]
        yield Entry(names.INCIDENTS, _json(row, ids=ids), row["start_ms"])
    for row in results.longest(REPORT_CONFLICTS.name):
        yield Entry(names.CONFLICTS, _json(row, unit=row["unit"]), row["last_ms"])


def _churn(results: Results) -> Iterator[Entry]:
    for window in ROLLING:
        key = names.churn(window)
        for row in results.of(REPORT_CHURN.name, window):
            yield Entry(key, row["unit"], f"{row['acts']},{row['pairs']}")
        if topics := results.of(REPORT_CHURN_TOPICS.name, window):
            top = [{"topic": row["unit"].partition(":")[2], "changes": row["changes"]} for row in topics]
            yield Entry(key, names.TOP, msgspec.json.encode(top).decode())


def _flapping(results: Results) -> Iterator[Entry]:
    for row in results.longest(REPORT_FLAP.name):
        yield Entry(names.FLAP, row["unit"], row["score"])
        yield Entry(names.FLAP_VALUES, row["unit"], _json(row))
