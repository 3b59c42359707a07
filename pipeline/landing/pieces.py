"""The streams as a source of Spark that says what there is to read, not what is in it: who lands it reads it too."""

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from pipeline.source import RedisStreams
from pipeline.source.follower import Follower
from pipeline.source.ids import parsed
from pipeline.source.offsets import Offsets
from pipeline.source.options import Options, options_of
from pipeline.source.streams import Piece

NAMES = ("stream", "first", "last")


class StreamPieces(RedisStreams):
    """The format `redis_stream_pieces`: planned as `redis_stream` is, a row for each piece of a stream, in at most as
    many partitions as its option `tasks` says."""

    @classmethod
    def name(cls) -> str:
        """What `format` is given."""
        return "redis_stream_pieces"

    def schema(self) -> str:
        """`first` and `last` are ids, both to be read."""
        return ", ".join(f"{name} string" for name in NAMES)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Says what there is and what comes."""
        options = dict(self.options.items())
        return _Planner(int(options.pop("tasks")), options_of(options), schema)


class _Share(InputPartition):
    """Pieces that one task lands."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        super().__init__(pieces)
        self.pieces = pieces


class _Planner(Follower):
    def __init__(self, tasks: int, options: Options, schema: StructType) -> None:
        super().__init__(options, schema)
        self._tasks = tasks

    def partitions(self, start: Offsets, end: Offsets) -> list[InputPartition]:
        """A task costs as much as thousands of entries: where there are many pieces it has several."""
        pieces = self.pieces(start, end)
        return [_Share(pieces[first :: self._tasks]) for first in range(min(self._tasks, len(pieces)))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The pieces themselves."""
        if isinstance(partition, _Share):
            rows = [(piece.stream, str(piece.first), str(piece.last)) for piece in partition.pieces]
            columns = [pa.array(texts, pa.utf8()) for texts in zip(*rows, strict=True)]
            yield pa.RecordBatch.from_arrays(columns, names=NAMES)


def pieces_of(rows: pa.RecordBatch) -> list[Piece]:
    """What such rows say."""
    columns = (rows[name].to_pylist() for name in NAMES)
    return [Piece(stream, parsed(first), parsed(last)) for stream, first, last in zip(*columns, strict=True)]
