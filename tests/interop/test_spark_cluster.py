"""The same tables on any Spark: one core, two cores, a cluster of two workers whose tables are in S3."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import pyspark
import pytest
import redis as redis_py
from pyspark.sql import SparkSession

from mqnamesrv.store import EmbeddedStore
from mqpipeline import job, schemas
from mqpipeline.cli.sample import write
from mqpipeline.java import java_home_here
from mqpipeline.lake import reading
from mqpipeline.landing.reading import heartbeats, read_events
from mqpipeline.options import Options
from mqpipeline.reports import catalogue
from mqpipeline.scale import WEEK_MS, Scale, entries
from mqpipeline.session import spark_session
from mqpipeline.warehouse import Warehouse
from pyspark_redis_stream.streams import Streams
from testbed.eventually import eventually
from testbed.maven import Artifact, cache, fetch
from testbed.ports import free_port
from testbed.rocketmq.stage import Stage
from testbed.s3 import BUCKET, KEY, S3, s3
from tests.mqpipeline import worked_example
from tests.mqpipeline.conftest import SMALL
from tests.mqpipeline.rows import rows_of
from tests.mqpipeline.stream import Reported, address, at, registered, removed

ROOT: Final = Path(__file__).parents[2]
SPARK_CLASS: Final = str(Path(pyspark.__file__).parent / "bin" / "spark-class")
MASTER, WORKER = "org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker"
WORKERS: Final = 2
START_S: Final = 120.0
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


@pytest.mark.timeout(1200)
def test_one_core_two_cores_and_a_cluster_make_the_same_tables(
    stage: Stage, store: EmbeddedStore, redis: redis_py.Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Streams, "now_ms", lambda *_: AS_OF_MS)
    jars = f"{hadoop_jars()}/*"
    cluster = start_cluster(stage)
    write_odd_history(redis)
    with session(
        "local[1]", {"spark.driver.extraClassPath": jars}, partitions=1
    ) as spark:  # Java starts here
        write(redis, MADE_UP.stream, entries(MADE_UP))
        one_core = run(spark, store, str(tmp_path / "one"))
    monkeypatch.setattr(reading, "FILES_MOST", 0)  # from here on tasks read all files
    with session("local[2]", partitions=2) as spark:
        two_cores = run(spark, store, str(tmp_path / "two"))
    with s3(tmp_path) as bucket:
        for name, value in bucket.environment.items():
            monkeypatch.setenv(name, value)
        with session(cluster, {**OF_USERS, **in_s3(bucket, jars)}, partitions=4 * WORKERS) as spark:
            on_cluster = run(spark, store, f"s3a://{BUCKET}/many")
    assert [table for table, rows in one_core.items() if not rows] == []
    assert two_cores == one_core
    assert on_cluster == one_core


def write_odd_history(redis: redis_py.Redis) -> None:
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


def start_cluster(stage: Stage) -> str:
    """-> spark://…, once all workers have joined. Each has one core and 1 GB."""
    home = java_home_here()
    environment = {
        **({"JAVA_HOME": home} if home else {}),
        "PYTHONPATH": str(ROOT),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": JVM,
    }
    port = free_port()
    here = ("--host", "127.0.0.1", "--webui-port", "0")
    argv = [SPARK_CLASS, MASTER, *here, "--port", str(port)]
    master = stage.start("spark-master", argv, env=environment)
    url = f"spark://127.0.0.1:{port}"
    for number in range(WORKERS):
        work = stage.folder / f"spark-worker-{number}"
        argv = [SPARK_CLASS, WORKER, *here, "--cores", "1", "--memory", "1g", "--work-dir", str(work), url]
        stage.start(work.name, argv, env=environment)
    eventually(lambda: master.printed().count("Registering worker ") == WORKERS, START_S)
    return url


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
