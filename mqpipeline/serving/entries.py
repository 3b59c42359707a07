"""Which entry of which key says what, the most important first, and which of them fit."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec

from mqpipeline.reports.catalogue import (
    CATALOGUE,
    CHURN,
    CHURN_TOPICS,
    ROLLING,
    TOP_TOPICS,
    Report,
    Stored,
)
from mqpipeline.serving.results import Results, Row

ENTRY_BYTES = 128
"""What an entry takes of Redis's memory beside its text: table, pointers, headers, what allocators round up."""
IDS = 20
"""So many ids of an incident are stored; `members` says how many there are."""
NOT_STORED = frozenset({"namespace", "unit", "as_of", "of"})


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
    """Yield all that could be served of a run, the most important first."""
    for report in _stored(Stored.TIMES):
        yield from (_at_time(report, row) for row in results.rows(report))
    units = [_of_unit(report, row) for report in _stored(Stored.UNITS) for row in results.rows(report)]
    yield from (entry for entry in units if _is_of_cluster(entry))
    yield from _churn(results)
    windows = [
        (row, _of_unit(report, row, window_name(row)))
        for report in _stored(Stored.WINDOWS)
        for row in results.of(report.table.name)
    ]
    yield from (entry for _, entry in windows if _is_of_cluster(entry))
    for report in _stored(Stored.SCORES):
        for row in results.rows(report):
            yield Entry(report.name, row["unit"], row[report.order_column])
            yield _of_unit(report, row)
    others = [(row, entry) for row, entry in windows if not _is_of_cluster(entry)]
    for window in ROLLING:
        yield from (entry for row, entry in others if row["window"] == window)
    yield from (entry for entry in units if not _is_of_cluster(entry))
    calendar = [(row, entry) for row, entry in others if row["window"] not in ROLLING]
    yield from (entry for _, entry in sorted(calendar, key=lambda pair: -pair[0]["to_ms"]))


def fitting(candidates: Iterable[Entry], limit: int) -> tuple[list[Entry], int]:
    """-> those that fit into so many bytes, and how many do not."""
    fitted, size, left_out = [], 0, 0
    for entry in candidates:
        if size + entry.size <= limit:
            fitted.append(entry)
            size += entry.size
        else:
            left_out += 1
    return fitted, left_out


def _stored(how: Stored) -> Iterator[Report]:
    return (report for report in CATALOGUE if report.stored is how)


def _is_of_cluster(entry: Entry) -> bool:
    return entry.field.startswith("cluster:")


def _json(row: Row, **instead: object) -> str:
    values = {column: value for column, value in row.items() if column not in NOT_STORED} | instead
    return msgspec.json.encode(values, order="deterministic").decode()


def _of_unit(report: Report, row: Row, window: str = "") -> Entry:
    return Entry(report.key(window), row["unit"], _json(row))


def _at_time(report: Report, row: Row) -> Entry:
    instead: dict[str, object] = {name: row[name] for name in report.unit}
    if "ids" in row:
        instead["ids"] = [f"{entry['ms']}-{entry['n']}" for entry in (row["ids"] or ())[:IDS]]
    return Entry(report.key(), _json(row, **instead), row[report.order_column])


def _churn(results: Results) -> Iterator[Entry]:
    for window in ROLLING:
        key = CHURN.key(window)
        for row in results.of(CHURN.table.name, window):
            yield Entry(key, row["unit"], f"{row['acts']},{row['pairs']}")
        if topics := results.of(CHURN_TOPICS.table.name, window):
            top = [{"topic": row["unit"].partition(":")[2], "changes": row["changes"]} for row in topics]
            yield Entry(key, TOP_TOPICS, msgspec.json.encode(top).decode())
