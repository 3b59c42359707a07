"""The streams that land, each in a table of its own."""

from collections.abc import Callable
from typing import NamedTuple

import pyarrow as pa

from mqpipeline.landing.events import EVENT_COLUMNS, events
from mqpipeline.landing.heartbeats import BEAT_COLUMNS, heartbeats
from mqpipeline.schemas import EVENTS, HEARTBEATS, Table


class Landed(NamedTuple):
    """`columns_of` makes the table's columns (but `namespace` and `batch`) of what the source reads with the schema
    `columns`. The stream of a namespace is `ns:{<namespace>}:<name>`; `counter` counts its entries, if a field does."""

    table: Table
    columns: str
    columns_of: Callable[[pa.RecordBatch], dict[str, pa.Array]]
    counter: str | None = None

    def stream(self, namespace: str) -> str:
        """Its key; `*` as the namespace makes a pattern of it."""
        return f"ns:{{{namespace}}}:{self.table.name}"

    def namespace(self, stream: str) -> str:
        """The other way round."""
        return stream.removeprefix("ns:{").removesuffix(f"}}:{self.table.name}")

    def rows(self, raw: pa.RecordBatch, namespace: str, batch: int, schema: pa.Schema) -> pa.RecordBatch:
        """Rows of the table, of entries of one stream that were read; `schema` is the table's."""
        columns = {
            "namespace": pa.repeat(pa.scalar(namespace), len(raw)),
            "batch": pa.repeat(pa.scalar(batch), len(raw)),
            **self.columns_of(raw),
        }
        return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)


EVENTS_LAND = Landed(EVENTS, EVENT_COLUMNS, events, counter="seq")
HEARTBEATS_LAND = Landed(HEARTBEATS, BEAT_COLUMNS, heartbeats)
LANDED = (EVENTS_LAND, HEARTBEATS_LAND)
"""All there are."""
