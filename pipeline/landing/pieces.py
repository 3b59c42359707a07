"""The streams as a source of Spark that says what there is to read, not what is in it: who lands it reads it too."""

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from pipeline.source import RedisStreams
from pipeline.source.follower import Follower
from pipeline.source.ids import parsed
from pipeline.source.options import options_of
from pipeline.source.streams import Piece

NAMES = ("stream", "first", "last")


class StreamPieces(RedisStreams):
    """The format `redis_stream_pieces`: planned as `redis_stream` is, a row for each piece of a stream."""

    @classmethod
    def name(cls) -> str:
        """What `format` is given."""
        return "redis_stream_pieces"

    def schema(self) -> str:
        """`first` and `last` are ids, both to be read."""
        return ", ".join(f"{name} string" for name in NAMES)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Says what there is and what comes."""
        return _Planner(options_of(self.options), schema)


class _Planner(Follower):
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The piece itself."""
        if isinstance(partition, Piece):
            texts = (partition.stream, str(partition.first), str(partition.last))
            yield pa.RecordBatch.from_arrays([pa.array([text]) for text in texts], names=NAMES)


def pieces_of(rows: pa.RecordBatch) -> list[Piece]:
    """What such rows say."""
    columns = (rows[name].to_pylist() for name in NAMES)
    return [Piece(stream, parsed(first), parsed(last)) for stream, first, last in zip(*columns, strict=True)]
