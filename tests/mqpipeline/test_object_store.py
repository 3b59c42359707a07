"""A whole run whose tables lie in an object store: Amazon's S3 as moto speaks it, without Hadoop's jar for it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from redis import Redis
from typer.testing import CliRunner

from mqnamesrv.store import EmbeddedStore
from mqpipeline import job
from mqpipeline.cli.app import app
from mqpipeline.lake import reading
from mqpipeline.lake.log import LakeError, OtherWriter
from mqpipeline.landing.kinds import EVENTS_LAND
from mqpipeline.landing.landing import Landing
from mqpipeline.landing.reading import read_events
from mqpipeline.options import Options
from mqpipeline.schemas import BROKER_SESSIONS
from mqpipeline.warehouse import Warehouse
from testbed.s3 import BUCKET, s3
from tests.mqpipeline import worked_example
from tests.mqpipeline.stream import at


@pytest.fixture
def bucket(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """The URL of an empty one; this process and Spark's tasks have what they need to use it."""
    with s3(tmp_path) as started:
        for name, value in started.environment.items():
            monkeypatch.setenv(name, value)
            monkeypatch.setitem(spark.sparkContext.environment, name, value)
        yield f"s3://{BUCKET}"


def emit(redis: Redis, entries: list[tuple[str, dict[str, str]]]) -> None:
    for entry_id, fields in entries:
        redis.xadd("ns:{ns}:events", fields, id=entry_id)  # type: ignore[arg-type]


def invoked(*arguments: str) -> str:
    ended = CliRunner().invoke(app, [*arguments])
    assert ended.exit_code == 0, ended.output
    return ended.output


def test_a_whole_run(
    spark: SparkSession,
    store: EmbeddedStore,
    redis: Redis,
    bucket: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    root = f"{bucket}/warehouse"
    options = Options(url=store.url, namespaces=("ns",), warehouse=root, report=str(tmp_path))
    with job.leased(options) as leases:
        emit(redis, worked_example.RAW[:-4])
        job.land(spark, options, print, leases)
        stale = Landing(spark, root, EVENTS_LAND, {"url": store.url}, ("ns",))
        emit(redis, worked_example.RAW[-4:])
        snapshot = job.run(spark, options, print, leases).snapshot
    assert snapshot.folded["ns"].seq == len(worked_example.RAW)
    stays = Warehouse(spark, root).rows(BROKER_SESSIONS, snapshot)
    assert {(row["start_ms"], row["end_ms"]) for row in stays if row["broker"] == "a"} == {
        (at(-900), at(600)),
        (at(660), at(1920)),
        (at(2400), None),
    }
    assert "cluster" in (tmp_path / "report-ns.html").read_text()
    with pytest.raises(
        OtherWriter, match="another process has written batch 2 of s3://lake/warehouse/events"
    ):
        stale.land_available()
    stale.close()
    assert f"in order: events ({len(worked_example.RAW)} entries)" in invoked(
        "check", "-w", root, "--url", store.url
    )
    assert "10911" in invoked("route-at", "-w", root, "--namespace", "ns", "T1", str(at(2000)))
    assert "events" in invoked("compact", "-w", root)
    monkeypatch.setattr(reading, "FILES_MOST", 0)
    with pytest.raises(
        LakeError, match=r"no small table any more, and Spark cannot read s3://: add Hadoop's jar"
    ):
        read_events(spark, root)
