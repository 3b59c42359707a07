"""A Spark session and the tables, in the format that the options name."""

from collections.abc import Mapping
from types import MappingProxyType, ModuleType

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from mqpipeline.options import PREFIX, OptionError, Options
from mqpipeline.session import spark_session
from mqpipeline.warehouse import Warehouse

DELTA = "delta"
FORMAT = f"{PREFIX}FORMAT={DELTA}"


def session(name: str, options: Options, sized: Mapping[str, str] = MappingProxyType({})) -> SparkSession:
    """Spark as the options want it; where they say nothing, a session of our own is `sized` so.

    Raises OptionError if it cannot read and write their format."""
    own = {**sized, **options.spark}
    if options.format != DELTA:
        return spark_session(name, own=own)
    delta = _delta()
    fetched = {} if options.jars else delta.packages()
    try:
        spark = spark_session(name, delta.SETTINGS, own={**own, **fetched})
    except PySparkRuntimeError as error:
        raise OptionError(
            f"{FORMAT}: {error} Without a way to Maven, name Delta's jars: {PREFIX}JARS"
        ) from None
    if not delta.is_loaded(spark):
        spark.stop()
        raise OptionError(f"{FORMAT}: Spark lacks Delta's jars: {PREFIX}JARS, or spark-submit --packages")
    return spark


def warehouse(spark: SparkSession, options: Options) -> Warehouse:
    """The tables that are there, or are to be. Raises OptionError if they are kept in another format."""
    storage = _delta().DeltaTables(spark, options.warehouse) if options.format == DELTA else None
    tables = Warehouse(spark, options.warehouse, storage)
    tables.begin()
    return tables


def _delta() -> ModuleType:
    try:
        from mqpipeline import delta
    except ModuleNotFoundError as error:
        if error.name != DELTA:
            raise
        raise OptionError(
            f"{FORMAT}: Delta Lake is missing; install mqpipeline with its extra: mqpipeline[delta]"
        ) from None
    return delta
