"""Reading streams with the source's own readers, without Spark around them."""

from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit
from pyspark.sql.types import IntegerType, LongType, MapType, StringType, StructType

from pyspark_redis_stream.follower import Follower
from pyspark_redis_stream.offsets import Offsets
from pyspark_redis_stream.options import options_of
from pyspark_redis_stream.reader import Reader
from pyspark_redis_stream.reading import Reading

TEXT, LONG, INT = StringType(), LongType(), IntegerType()
WHOLE = {"stream": TEXT, "id_ms": LONG, "id_n": LONG, "fields": MapType(TEXT, TEXT)}
IDS = {"id_ms": LONG, "id_n": LONG}
Row = dict[str, Any]


def schema(columns: Mapping[str, Any]) -> StructType:
    """As Spark would give it."""
    made = StructType()
    for name, kind in columns.items():
        made.add(name, kind)
    return made


def read(options: Mapping[str, str], columns: Mapping[str, Any] = WHOLE) -> list[Row]:
    """Once; rows in the order of the partitions."""
    reader = Reader(options_of(options), schema(columns))
    return rows(reader, reader.partitions())


def rows(reader: Reading, partitions: Iterable[Any]) -> list[Row]:
    """What the partitions hold."""
    return [row for partition in partitions for batch in reader.read(partition) for row in batch.to_pylist()]


def ids(found: Iterable[Row]) -> list[str]:
    """Such as `5-0`."""
    return [f"{row['id_ms']}-{row['id_n']}" for row in found]


class Query:
    """What Spark does with a stream reader: batches one after another from an offset that is kept as text."""

    def __init__(self, options: Mapping[str, str], start: Offsets | None = None) -> None:
        self.reader = Follower(options_of(options), schema(WHOLE))
        self.at = self.reader.initialOffset() if start is None else start

    def batch(self, limit: ReadLimit | None = None) -> list[Row]:
        """The next, which may be empty."""
        end = self.reader.latestOffset(self.at, limit or ReadAllAvailable())
        found = rows(self.reader, self.reader.partitions(self.at, end))
        self.at = end
        return found
