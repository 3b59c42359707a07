"""Partitions of streams as rows, to be distributed to tasks."""

from collections.abc import Sequence

import pyarrow as pa

from pyspark_redis_stream.ids import parsed
from pyspark_redis_stream.streams import StreamPartition

NAMES = ("stream", "first", "last")


def rows_of(partitions: Sequence[StreamPartition]) -> pa.Table:
    """Return a row for each partition; `first` and `last` are ids, both to be read."""
    rows = [(partition.stream, str(partition.first), str(partition.last)) for partition in partitions]
    columns = [pa.array(texts, pa.utf8()) for texts in zip(*rows, strict=True)]
    return pa.Table.from_arrays(columns, names=NAMES)


def stream_partitions_of(rows: pa.RecordBatch) -> list[StreamPartition]:
    """Return the partitions that such rows describe."""
    columns = (rows[name].to_pylist() for name in NAMES)
    return [
        StreamPartition(stream, parsed(first), parsed(last))
        for stream, first, last in zip(*columns, strict=True)
    ]
