"""The streams that land, each in a table of its own."""

from collections.abc import Callable
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pipeline.landing.events import EVENT_COLUMNS, events
from pipeline.landing.heartbeats import BEAT_COLUMNS, heartbeats
from pipeline.schemas import EVENTS, HEARTBEATS, Table


class Landed(NamedTuple):
    """`rows` makes the table's columns (but `namespace` and `batch`) of the format `redis_stream` read with the schema
    `columns`. The stream of a namespace is `ns:{<namespace>}:<name>`; `counter` counts its entries, if a field does."""

    table: Table
    columns: str
    rows: Callable[[DataFrame], DataFrame]
    counter: str | None = None

    def stream(self, namespace: str) -> str:
        """Its key; `*` as the namespace makes a pattern of it."""
        return f"ns:{{{namespace}}}:{self.table.name}"

    def namespace(self, stream: str) -> str:
        """The other way round."""
        return stream.removeprefix("ns:{").removesuffix(f"}}:{self.table.name}")

    def namespace_of(self, stream: Column) -> Column:
        """The same of a column."""
        around = len(self.stream(""))
        return stream.substr(F.lit(len("ns:{") + 1), F.length(stream) - around)


EVENTS_LAND = Landed(EVENTS, EVENT_COLUMNS, events, counter="seq")
HEARTBEATS_LAND = Landed(HEARTBEATS, BEAT_COLUMNS, heartbeats)
