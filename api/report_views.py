"""The catalogue of served reports, read from report_views.json (mqpipeline/reports/views.py writes it)."""

from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from pydantic.alias_generators import to_camel

from rocketmq_remoting.typed import decoded


class Column(NamedTuple):
    """A column by the pipeline's name and SQL type, and what it means."""

    name: str
    type: str
    nullable: bool
    meaning: str


class ReportView(msgspec.Struct, frozen=True):
    """`key` is below `report:`; `stored` says how rows lie there: `windows` and `units` are hashes, unit -> JSON, of a
    window each or of the longest; `scores` is one beside a sorted set; `times` a sorted set of JSON; `counts` a hash
    for each window, unit -> acts,pairs. `order` is the column that rows are sorted by, `-` from high to low; `unit`
    are the columns that name a row."""

    name: str
    title: str
    about: str
    key: str
    stored: str
    order: str
    unit: tuple[str, ...]
    columns: tuple[Column, ...]

    @property
    def has_windows(self) -> bool:
        """Return whether each window has a key of its own."""
        return "{window}" in self.key

    @property
    def sorting(self) -> str:
        """Return the order by a member of JSON: `-p50_ms` is `-p50Millis`."""
        sign = "-" if self.order.startswith("-") else ""
        return sign + json_member(self.order.removeprefix("-"))

    def key_of(self, window: str) -> str:
        """Return the key of a window."""
        return self.key.replace("{window}", window)


VIEWS: Final = decoded(Path(__file__).with_name("report_views.json").read_bytes(), tuple[ReportView, ...])


def member_of(column: str) -> str:
    """Return the member of a column before it is spelt as JSON's are: `up_ms` is `up_millis`."""
    return f"{column.removesuffix('_ms')}_millis" if column.endswith("_ms") else column


def json_member(column: str) -> str:
    """Return the JSON member of a column: `up_ms` is `upMillis`."""
    return to_camel(member_of(column))
