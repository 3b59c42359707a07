"""Redis Streams as a data source of Spark, batch and streaming; knows nothing of what the entries mean.

register(spark)
spark.read.format("redis_stream").option("url", "redis://host").option("streams", "key").load()
"""

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from mqpipeline.source.batches import COLUMNS
from mqpipeline.source.follower import Follower
from mqpipeline.source.options import options_of
from mqpipeline.source.reader import Reader


class RedisStreams(DataSource):
    """The format `redis_stream`. Its options are those of `mqpipeline.source.options`."""

    @classmethod
    def name(cls) -> str:
        """What `format` is given."""
        return "redis_stream"

    def schema(self) -> str:
        """What is read unless `.schema(...)` says it."""
        return COLUMNS

    def reader(self, schema: StructType) -> DataSourceReader:
        """Reads what is there now."""
        return Reader(options_of(self.options), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Reads what is there and what comes."""
        return Follower(options_of(self.options), schema)


def register(spark: SparkSession) -> None:
    """Let the session know the format."""
    spark.dataSource.register(RedisStreams)
