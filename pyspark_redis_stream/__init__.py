"""Redis Streams as a data source of Spark, batch and streaming; knows nothing of what the entries mean.

Spark finds it by its name where this package is installed, in a session that `register` was called for otherwise:

spark.read.format("redis_stream").option("url", "redis://host").option("streams", "key").load()
"""

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from pyspark_redis_stream.batches import COLUMNS
from pyspark_redis_stream.follower import Follower
from pyspark_redis_stream.options import options_of
from pyspark_redis_stream.reader import FilteringReader, Reader


class RedisStreams(DataSource):
    """The format `redis_stream`. Its options are those of `pyspark_redis_stream.options`."""

    @classmethod
    def name(cls) -> str:
        """What `format` is given."""
        return "redis_stream"

    def schema(self) -> str:
        """What is read unless `.schema(...)` says it."""
        return COLUMNS

    def reader(self, schema: StructType) -> DataSourceReader:
        """Reads what is there now."""
        options = options_of(self.options)
        return (FilteringReader if options.push_filters else Reader)(options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Reads what is there and what comes."""
        return Follower(options_of(self.options), schema)


DefaultSource = RedisStreams
"""Where Spark looks for it in packages whose names begin with `pyspark_`."""


def register(spark: SparkSession) -> None:
    """Let the session know the format."""
    spark.dataSource.register(RedisStreams)
