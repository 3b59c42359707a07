"""Whole runs: a stream in a real store becomes tables, reports, what is served."""

import json
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
import redis as redis_py
from pyspark.sql import SparkSession

from mqnamesrv.store import EmbeddedStore
from mqpipeline import building, job, schemas
from mqpipeline.building import Source
from mqpipeline.lake.log import LOG, LakeError, OtherWriter, this_process
from mqpipeline.landing import reading
from mqpipeline.landing.landing import Landing
from mqpipeline.landing.lease import Leases
from mqpipeline.landing.progress import Progress, StreamProgress
from mqpipeline.landing.reading import read_events
from mqpipeline.options import ALL, DAY_MS, Options
from mqpipeline.reports.catalogue import CATALOGUE
from mqpipeline.tables.health import ADDED, MISSING
from mqpipeline.warehouse import DERIVED, Snapshot, Warehouse
from pyspark_redis_stream.connection import Store
from pyspark_redis_stream.options import options_of
from registry.store.rights import pipeline_rules
from registry.store.url import with_login
from tests.mqpipeline import worked_example
from tests.mqpipeline.rows import rows_of
from tests.mqpipeline.stream import Stream, at, registered, started, topics

JOBS_MOST = 12
LATER_MS = 600_000  # more than a landing takes on a slow machine
"""Of Spark, in a run over a short history: they were 76."""
NOTEBOOK = Path(__file__).resolve().parents[2] / "docs" / "outage.ipynb"

NEXT: dict[Any, Any] = {
    "v": 1,
    "kind": "kv_changed",
    "cause": "put",
    "key": "k",
    "inc": worked_example.RAW[-1][1]["inc"],
    "seq": len(worked_example.RAW) + 1,
}
"""The entry behind those of the worked example."""


@pytest.fixture
def example(store: EmbeddedStore, redis: redis_py.Redis, tmp_path: Path) -> Iterator[Options]:
    """Of a run over the worked example, which is in the stream, with the least rights."""
    listed: Iterable[tuple[str, Any]] = worked_example.RAW
    for entry_id, fields in listed:
        redis.xadd("ns:{ns}:events", fields, id=entry_id)
    client: Any = redis
    client.execute_command(
        "ACL", "SETUSER", "pipeline", "on", ">secret", *pipeline_rules(["ns", "other"]).split()
    )
    url = with_login(store.url, "pipeline", "secret")
    yield Options(url=url, namespaces=("ns",), warehouse=str(tmp_path))
    assert not [refused for refused in redis.acl_log() if refused["username"] == "pipeline"]


@pytest.fixture
def without_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    """They take most of the time of a run."""
    monkeypatch.setattr(building, "_write_reports", lambda *_, **__: None)


def run(spark: SparkSession, options: Options, progress: Callable[[str], None]) -> Snapshot:
    with job.leased(options) as leases:
        return job.run(spark, options, progress, leases).snapshot


def land(spark: SparkSession, options: Options) -> None:
    with job.leased(options) as leases:
        job.land(spark, options, print, leases)


def stream(
    spark: SparkSession,
    options: Options,
    progress: Callable[[str], None],
    ending: threading.Event | None = None,
) -> None:
    with job.leased(options) as leases:
        stop = ending or threading.Event()
        job.stream(spark, options, progress, leases, stop, every_s=60, trigger_s=0.1)


def run_notebook(path: Path) -> dict[str, Any]:
    """Run its cells one after the other; return the names that they leave."""
    names: dict[str, Any] = {}
    for cell in json.loads(path.read_text())["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    return names


def test_a_namespace_without_entries_gets_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    streams = {"empty": StreamProgress("empty"), "ns": StreamProgress("ns", entries=1)}
    job._warn(Progress(1, streams, frozenset(streams)))
    (said,) = caplog.messages
    assert said.startswith("empty has no entry: ")


def test_what_has_landed_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    def landing(**entries: int) -> Any:
        streams = {name: StreamProgress(name, entries=count) for name, count in entries.items()}
        return SimpleNamespace(progress=Progress(1, streams, frozenset(streams)))

    with caplog.at_level(logging.INFO, "mqpipeline"):
        said = job._say_landed([landing(a=3), landing(b=0)], {})
        job._say_landed([landing(a=3), landing(b=2)], said)
    assert caplog.messages == ["3 entries of a have landed by now", "2 entries of b have landed by now"]


def test_a_stream_ahead_of_its_clock_gets_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    ahead, as_of_ms = 2 * DAY_MS, 10 * DAY_MS
    streams = {
        name: StreamProgress(name, id=f"{as_of_ms + by}-0", as_of_ms=as_of_ms, entries=1)
        for name, by in (("in time", 0), ("a little ahead", DAY_MS // 2), ("ahead", ahead))
    }
    job._warn(Progress(1, streams, frozenset(streams)))
    (said,) = caplog.messages
    assert said.startswith(f"the newest entry of ahead, {as_of_ms + ahead}-0, is ahead of the store's clock")


def test_no_namespace_is_known_until_an_earlier_time_than_before() -> None:
    known = job._latest({"a": 5, "b": 4, "no longer there": 9}, {"a": 3, "b": 6, "new": 1})
    assert known == {"a": 5, "b": 6, "new": 1}


def test_the_worked_example_from_the_stream_to_what_is_served(
    spark: SparkSession,
    example: Options,
    redis: redis_py.Redis,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps: list[str] = []
    jobs = spark.sparkContext.statusTracker().getJobIdsForGroup
    before = {*jobs()}
    with caplog.at_level(logging.INFO, "mqpipeline"), job.leased(example) as leases:
        snapshot = job.run(spark, example, steps.append, leases).snapshot
    assert len(steps) == job.STEPS
    assert 5 < len({*jobs()} - before) <= JOBS_MOST
    assert f"{len(worked_example.RAW)} entries of ns:{{ns}}:events have landed by now" in caplog.messages
    assert f"{tmp_path}/report-ns.html is written" in caplog.messages
    warehouse = Warehouse(spark, str(tmp_path))
    assert snapshot.folded["ns"].seq == len(worked_example.RAW)
    stays = warehouse.read(schemas.BROKER_SESSIONS).where("broker = 'a'")
    assert rows_of(stays, "start_ms", "end_ms", "end_cause") == {
        (at(-900), at(600), "lost"),
        (at(660), at(1920), "expired"),
        (at(2400), None, None),
    }
    versions = warehouse.read(schemas.ROUTE_VERSIONS).where("topic = 'T1' and broker = 'b'")
    assert rows_of(versions, "epoch", "from_ms", "to_ms", "perm") == {
        (2, at(-900), at(1500), 6),
        (4, at(1500), at(2700), 6),
        (4, at(2700), at(3000), 4),
        (4, at(3000), None, 6),
    }
    assert redis.hget("ns:{ns}:report:meta", "events") == str(len(worked_example.RAW))
    (health,) = warehouse.rows(schemas.HEALTH, snapshot)
    assert health["entries"] == len(worked_example.RAW)
    assert {health[name] for name in (*ADDED, *MISSING, "waiting", "rejected")} == {0}
    held = json.loads(redis.hget("ns:{ns}:events:consumers", "pipeline:main") or "{}")
    assert (held["id"], held["hold"]) == (worked_example.RAW[-1][0], 1)
    assert "cluster" in (tmp_path / "report-ns.html").read_text()
    monkeypatch.setenv("MQNS_PIPELINE_WAREHOUSE", str(tmp_path))
    found = run_notebook(NOTEBOOK)
    assert (found["broker"], found["longest"]["end_cause"]) == ("a", "expired")
    assert (found["unnoticed_s"], [*found["taken"]], found["only_there"]) == (120.0, ["T1"], [])
    assert "broker_removed" in set(found["around"]["kind"])


def test_a_further_run_reads_no_file_of_closed_windows(
    spark: SparkSession,
    example: Options,
    redis: redis_py.Redis,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    land(spark, example)
    now_ms = int(time.time() * 1000)
    warehouse, whole = Warehouse(spark, str(tmp_path)), Warehouse(spark, f"{tmp_path}-whole")
    steps: list[str] = []

    def build(of: Warehouse, as_of_ms: int) -> None:
        landed = reading.events(spark, example.warehouse), reading.heartbeats(spark, example.warehouse)
        building.build(of.begin(), Source(*landed, as_of_ms), Options(), steps.append)

    of_events = tuple(report for report in CATALOGUE if report.name in ("detect", "flap", "churn"))
    monkeypatch.setattr(building, "CATALOGUE", of_events)  # the others are of the tables
    build(warehouse, now_ms)
    old = [*tmp_path.glob("events/day=*/*.parquet")]
    redis.xadd("ns:{ns}:events", NEXT)
    land(spark, example)
    for file in old:
        file.rename(file.with_suffix(".away"))
    build(warehouse, now_ms + LATER_MS)
    build(warehouse, now_ms + 2 * LATER_MS)
    assert [step for step in steps if "last run" in step] == [
        "reading what came since the last run",
        "nothing has come since the last run",
    ]
    with pytest.raises(LakeError, match="is damaged"):
        build(whole, now_ms + 2 * LATER_MS)
    for file in old:
        file.with_suffix(".away").rename(file)
    build(whole, now_ms + 2 * LATER_MS)
    for table in (table for table in DERIVED if table is not schemas.RUNS):
        names = [name for name in table.schema.names if name != "as_of"]
        assert rows_of(warehouse.read(table), *names) == rows_of(whole.read(table), *names), table.name


@pytest.mark.usefixtures("without_reports")
def test_entries_that_wait_for_the_rest_of_their_group_are_read_again(
    spark: SparkSession, example: Options, redis: redis_py.Redis, tmp_path: Path
) -> None:
    redis.delete("ns:{ns}:events")
    group = registered("first", "a", 1), topics("register", ("a", "", "8,8,6,0", ["T"]), epoch=1)
    *begun, last = Stream(0).add(0, started()).add(1, *group).entries
    warehouse = Warehouse(spark, str(tmp_path))
    steps: list[str] = []
    for some in (begun, [last]):
        for entry in some:
            fields: dict[Any, Any] = {**entry.fields}
            redis.xadd("ns:{ns}:events", fields)  # now, since no closed month may change
        run(spark, example, steps.append)
    assert "reading what came since the last run" in steps
    assert rows_of(warehouse.read(schemas.BROKER_SESSIONS), "broker") == {("a",)}
    assert rows_of(warehouse.read(schemas.ROUTE_VERSIONS), "topic", "broker") == {("T", "a")}


@pytest.mark.usefixtures("without_reports")
def test_what_lands_under_the_number_of_a_batch_that_was_lost_is_read(
    spark: SparkSession, example: Options, redis: redis_py.Redis, tmp_path: Path
) -> None:
    """The log's newest entry is gone, and what it said lands again with more."""
    before = run(spark, example, lambda _: None)
    max((tmp_path / "events" / LOG).glob("*.json")).unlink()
    redis.xadd("ns:{ns}:events", NEXT)
    after = run(spark, example, lambda _: None)
    assert after.folded["ns"].batch == before.folded["ns"].batch
    assert after.folded["ns"].seq == before.folded["ns"].seq + 1


@pytest.mark.usefixtures("without_reports")
def test_a_namespace_that_is_gone_is_said_and_not_published(
    spark: SparkSession,
    example: Options,
    redis: redis_py.Redis,
    caplog: pytest.LogCaptureFixture,
) -> None:
    land(spark, example)
    redis.delete("ns:{ns}:events")
    redis.xadd(
        "ns:{other}:events", {"v": 1, "kind": "key_painted", "inc": 1, "seq": 1, "cause": "put", "key": "k"}
    )
    both = msgspec.structs.replace(example, namespaces=("ns", "other"), url=example.url)
    with job.leased(both) as leases:
        snapshot, missing = job.run(spark, both, lambda _: None, leases)
    assert missing == ("ns",)
    gone = "ns:{ns}:events is gone or no longer named: known until "
    assert [line for line in caplog.messages if line.startswith(gone)]
    assert snapshot.as_of_ms > snapshot.as_of["ns"]
    assert not redis.exists("ns:{ns}:report:meta")
    assert redis.hget("ns:{other}:report:meta", "unknown") == "1"


def test_streaming_lands_and_reports_and_breaks_off_when_it_is_to_end(
    spark: SparkSession, example: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    received: list[str] = []
    ending = threading.Event()

    def report(_: SparkSession, of: Options, reported: Callable[[str], None]) -> None:
        reported(f"{read_events(spark, of.warehouse).count()} events")
        ending.set()
        reported("another step")

    monkeypatch.setattr(job, "report", report)
    stream(spark, example, received.append, ending)
    assert received == [f"{len(worked_example.RAW)} events"]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("landing")]


def test_a_landing_that_fails_ends_the_streaming(
    spark: SparkSession, example: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: Landing) -> None:
        raise RuntimeError("no space left")

    monkeypatch.setattr(Landing, "land_available", fails)
    ending = threading.Event()
    with pytest.raises(RuntimeError, match="no space left"):
        stream(spark, example, print, ending)


@pytest.mark.parametrize("command", [run, stream])
def test_beside_another_landing_a_run_ends_with_its_name(
    spark: SparkSession, example: Options, command: Callable[..., object]
) -> None:
    store = Store(options_of({"url": example.url, "pattern": "*"}))
    with closing(Leases(store, f"pipeline:{example.consumer}")) as other:
        other.require(["ns"])
        with pytest.raises(OtherWriter, match=rf"^{this_process()} lands namespace ns since "):
            command(spark, example, print)
    assert read_events(spark, example.warehouse).count() == 0
    land(spark, example)
    assert read_events(spark, example.warehouse).count() == len(worked_example.RAW)


def test_a_report_that_another_run_was_quicker_than_does_not_end_the_landing(
    spark: SparkSession, example: Options, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ending = threading.Event()

    def report(*_: object) -> None:
        threading.Timer(0.5, ending.set).start()
        raise OtherWriter("another run has written")

    monkeypatch.setattr(job, "report", report)
    stream(spark, example, print, ending)
    assert "another run has written; the next report is in 60 s" in caplog.messages


def test_a_landing_that_is_refused_ends_the_report_under_way(
    spark: SparkSession, example: Options, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    land(spark, example)
    begun = threading.Event()

    def lands(_: Landing) -> None:
        if begun.is_set():
            raise OtherWriter("refused")

    def report(_: SparkSession, __: Options, progress: Callable[[str], None]) -> None:
        begun.set()
        while True:
            progress("a step")
            time.sleep(0.05)

    monkeypatch.setattr(Landing, "land_available", lands)
    monkeypatch.setattr(job, "report", report)
    with pytest.raises(OtherWriter, match="refused"):
        stream(spark, example, lambda _: None)
    assert not [line for line in caplog.messages if "the next report" in line]


def test_before_its_first_look_nothing_is_reported(
    spark: SparkSession, example: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second landing of all namespaces is refused only then."""
    land(spark, example)
    store = Store(options_of({"url": example.url, "pattern": "*"}))
    every = msgspec.structs.replace(example, namespaces=(ALL,))
    monkeypatch.setattr(job, "report", lambda *_: pytest.fail("reported"))
    with closing(Leases(store, f"pipeline:{example.consumer}")) as other:
        other.require(["ns"])
        with pytest.raises(OtherWriter, match="lands namespace ns since "):
            stream(spark, every, print)


def test_a_batch_under_way_does_not_hold_up_the_end(
    spark: SparkSession, example: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_files(landing: Landing, *_: object) -> None:
        ending.set()
        landing._spark.range(1).selectExpr("java_method('java.lang.Thread', 'sleep', 600000L)").collect()

    monkeypatch.setattr(Landing, "_write_files", write_files)
    ending = threading.Event()
    stream(spark, example, print, ending)
    assert read_events(spark, example.warehouse).count() == 0
