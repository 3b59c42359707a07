"""One history, and a run of the pipeline over it on any Spark: its tables must be the same everywhere."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import redis as redis_py
from pyspark.sql import SparkSession

from mqnamesrv.store import EmbeddedStore
from mqpipeline import job, schemas
from mqpipeline.cli.sample import write
from mqpipeline.landing.reading import heartbeats, read_events
from mqpipeline.options import Options
from mqpipeline.reports import catalogue
from mqpipeline.scale import WEEK_MS, Scale, entries
from mqpipeline.session import spark_session
from mqpipeline.warehouse import Warehouse
from testbed.maven import Artifact, cache, fetch
from testbed.s3 import KEY, S3
from tests.mqpipeline import worked_example
from tests.mqpipeline.conftest import SMALL
from tests.mqpipeline.rows import rows_of
from tests.mqpipeline.stream import Reported, address, at, registered, removed

JVM: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
SETTINGS: Final = {
    **SMALL,
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.memory": "700m",
    "spark.executor.extraJavaOptions": JVM,
}
OF_USERS: Final = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
}
"""What Spark does by itself, and tests leave for the sake of time."""
HADOOP_AWS: Final = Artifact("org.apache.hadoop", "hadoop-aws", "3.5.0")
"""As Spark's own Hadoop is; with the AWS SDK 690 MB."""

MADE_UP: Final = Scale(brokers=8, topics=16, brokers_of_topic=3, weeks=1, clusters=2, namespace="made-up")
ODD: Final = "odd"
AS_OF_MS: Final = MADE_UP.start_ms + WEEK_MS
TABLES: Final = (*schemas.TABLES, *catalogue.TABLES)
Tables = dict[str, set[tuple[Any, ...]]]


def write_histories(redis: redis_py.Redis) -> None:
    """The streams of MADE_UP and ODD."""
    write(redis, MADE_UP.stream, entries(MADE_UP))
    _write_odd(redis)


def _write_odd(redis: redis_py.Redis) -> None:
    """What a made-up one has none of: the worked example, then three gone at once, one that flaps, a conflict, a hole;
    heartbeats."""
    stream = worked_example.stream()
    for epoch, broker in enumerate("def", 7):
        stream.add(4000, registered("first", broker, epoch))
    for epoch, broker in enumerate("def", 7):
        stream.add(5000, removed("lost", broker, epoch, since=4000, last_seen=4990))
    for back in (5020, 5060):  # d flaps
        stream.add(back, registered("revive", "d", 7))
        stream.add(back + 20, removed("lost", "d", 7, since=back, last_seen=back + 10))
    claim = {"cluster": "c1", "broker": "a", "id": "0", "addr": "10.9.9.9:10911", "holder": "{}"}
    stream.add(5100, Reported("conflict_seen", "two_names", claim)).lose(2)
    stream.add(5200, registered("first", "g", 10))
    for entry in stream.entries:
        fields: Any = entry.fields
        redis.xadd(f"ns:{{{ODD}}}:events", fields, id=entry.id)
    slot: Any = {"cluster": "c1", "broker": "a", "id": "0", "addr": address("a"), "code": "103"}
    for heartbeat in range(30):
        redis.xadd(f"ns:{{{ODD}}}:heartbeats", slot, id=f"{at(2400 + 30 * heartbeat)}-0")


@contextmanager
def session(
    master: str, settings: Mapping[str, str] = MappingProxyType({}), *, partitions: int
) -> Iterator[SparkSession]:
    """One after the other, in one Java process."""
    sized = {"spark.master": master, "spark.sql.shuffle.partitions": str(partitions)}
    spark = spark_session("tests", {**SETTINGS, **sized, **settings})
    try:
        yield spark
    finally:
        spark.stop()


def hadoop_jars() -> Path:
    """Return the folder of what Hadoop needs for S3."""
    folder = cache("hadoop-aws") / HADOOP_AWS.version
    folder.mkdir(parents=True, exist_ok=True)
    return fetch([HADOOP_AWS], folder)


def in_s3(bucket: S3, jars: str) -> dict[str, str]:
    """Settings for Hadoop's way to it, and for that of the tasks."""
    hadoop = {
        "endpoint": bucket.endpoint,
        "endpoint.region": bucket.environment["AWS_REGION"],
        "path.style.access": "true",
        "connection.ssl.enabled": "false",
        "access.key": KEY,
        "secret.key": KEY,
    }
    return {
        "spark.executor.extraClassPath": jars,
        **{f"spark.hadoop.fs.s3a.{name}": value for name, value in hadoop.items()},
        **{f"spark.executorEnv.{name}": value for name, value in bucket.environment.items()},
    }


def run(spark: SparkSession, store: EmbeddedStore, warehouse_url: str) -> Tables:
    """From the store's streams to all tables and reports."""
    options = Options(
        url=store.url,
        namespaces=(MADE_UP.namespace, ODD),
        consumer=warehouse_url.rpartition("/")[2],
        warehouse=warehouse_url,
        report=job.NO_REPORT,
        serve=False,
    )
    with job.leased(options) as leases:
        job.run(spark, options, lambda _: None, leases)
    warehouse = Warehouse(spark, options.warehouse)
    frames = {table: warehouse.read(table) for table in TABLES}
    frames[schemas.EVENTS] = read_events(spark, warehouse.root)
    frames[schemas.HEARTBEATS] = heartbeats(spark, warehouse.root).rows()
    return {table.name: rows_of(frame, *table.schema.names) for table, frame in frames.items()}
