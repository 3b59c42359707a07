"""The same tables on any Spark: one core, two cores, a cluster of two workers whose tables are in S3."""

from pathlib import Path
from typing import Final

import pyspark
import pytest
import redis as redis_py

from mqnamesrv.store import EmbeddedStore
from mqpipeline.java import java_home_here
from mqpipeline.lake import reading
from pyspark_redis_stream.streams import Streams
from testbed.eventually import eventually
from testbed.ports import free_port
from testbed.rocketmq.stage import Stage
from testbed.s3 import BUCKET, s3
from tests.mqpipeline.any_spark import (
    AS_OF_MS,
    JVM,
    OF_USERS,
    hadoop_jars,
    in_s3,
    run,
    session,
    write_histories,
)

ROOT: Final = Path(__file__).parents[2]
SPARK_CLASS: Final = str(Path(pyspark.__file__).parent / "bin" / "spark-class")
MASTER, WORKER = "org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker"
WORKERS: Final = 2
START_S: Final = 120.0


@pytest.mark.timeout(1200)
def test_one_core_two_cores_and_a_cluster_make_the_same_tables(
    stage: Stage, store: EmbeddedStore, redis: redis_py.Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Streams, "now_ms", lambda *_: AS_OF_MS)
    jars = f"{hadoop_jars()}/*"
    cluster = start_cluster(stage)
    write_histories(redis)
    with session(
        "local[1]", {"spark.driver.extraClassPath": jars}, partitions=1
    ) as spark:  # Java starts here
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
