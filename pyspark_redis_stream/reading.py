"""What reading once and following have in common: a partition of a stream becomes Arrow batches."""

from collections.abc import Iterator
from functools import cached_property

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from pyspark_redis_stream.batches import Batches
from pyspark_redis_stream.connection import Store
from pyspark_redis_stream.options import Options
from pyspark_redis_stream.pages import pages
from pyspark_redis_stream.replies import joined
from pyspark_redis_stream.streams import StreamPartition, Streams

BATCH_ENTRIES, BATCH_BYTES = 10_000, 8 << 20  # of an Arrow batch, whichever comes first


class Reading:
    """Pickled before it is used: connections are made at their first use."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self._options = options
        self._batches = Batches(schema)

    @cached_property
    def store(self) -> Store:
        return Store(self._options)

    @cached_property
    def streams(self) -> Streams:
        return Streams(self._options, self.store)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return a partition's Arrow batches; none for Spark's stand-in for no partition at all."""
        if not isinstance(partition, StreamPartition):
            return
        with Store(self._options) as store:
            stream_pages = pages(store, partition.stream, partition.first, partition.last, self._options.page)
            for page in joined(stream_pages, BATCH_ENTRIES, BATCH_BYTES):
                yield from self._batches.of(partition.stream, page)
