"""The same tables whoever computes them: one core, two cores, a cluster of two workers."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis as redis_py
from pyspark.sql import SparkSession

from launcher.store import EmbeddedStore
from pipeline import schemas
from pipeline.cli.sample import write
from pipeline.scale import Scale, entries
from pipeline.session import spark_session
from pipeline.warehouse import Warehouse
from tests.pipeline.rows import rows_of
from tests.pipeline.standalone import cluster

SCALE = Scale(brokers=8, topics=24, brokers_of_topic=3, weeks=2, clusters=2, namespace="ns")
DERIVED = (*schemas.TABLES[1:], *schemas.REPORTS)
Tables = dict[str, set[tuple[Any, ...]]]


@pytest.fixture
def spark() -> Iterator[SparkSession]:
    session = spark_session("tests", {"spark.master": "local[2]"})
    yield session
    session.stop()


def mqpipeline(command: str, master: str, store: EmbeddedStore, warehouse: Path) -> None:
    """A command in a process of its own, on that Spark."""
    environment = {
        "SPARK_LOCAL_IP": "127.0.0.1",
        "MQNS_PIPELINE_MASTER": master,
        "MQNS_PIPELINE_MEMORY": "1g",
        "MQNS_PIPELINE_URL": store.url,
        "MQNS_PIPELINE_NAMESPACES": "ns",
        "MQNS_PIPELINE_WAREHOUSE": str(warehouse),
        "MQNS_PIPELINE_SERVE": "false",
    }
    argv = [sys.executable, "-m", "pipeline.cli", command]
    subprocess.run(argv, env={**os.environ, **environment}, check=True)


def tables(spark: SparkSession, warehouse: Path) -> Tables:
    read = Warehouse(spark, str(warehouse)).read
    return {table.name: rows_of(read(table), *table.schema.names) for table in DERIVED}


def test_one_core_two_cores_and_a_cluster_make_the_same_tables(
    spark: SparkSession, store: EmbeddedStore, redis: redis_py.Redis, tmp_path: Path
) -> None:
    write(redis, entries(spark, SCALE).orderBy("id_ms", "id_n").toLocalIterator())
    one, two, many = (tmp_path / name for name in ("one", "two", "many"))
    mqpipeline("run", "local[1]", store, one)
    for other in (two, many):
        other.mkdir()
        shutil.copytree(one / "events", other / "events")
    mqpipeline("report", "local[2]", store, two)
    with cluster(tmp_path) as url:
        mqpipeline("report", url, store, many)
    made = tables(spark, one)
    assert all(made[table.name] for table in (schemas.BROKER_SESSIONS, schemas.ROUTE_VERSIONS))
    assert tables(spark, two) == made
    assert tables(spark, many) == made
