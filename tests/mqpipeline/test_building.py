"""What a run computes again and what it takes over: whichever it is, the rows are the same."""

from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import DataFrame, SparkSession

from mqpipeline import building, lean
from mqpipeline.building import Source, build
from mqpipeline.lake import reading
from mqpipeline.landing.reading import EVER, Since
from mqpipeline.options import Options
from mqpipeline.reports import catalogue
from mqpipeline.schemas import EVENTS, HEALTH, HEARTBEATS, TABLES
from mqpipeline.tables import health
from mqpipeline.warehouse import Snapshot, Warehouse
from mqpipeline.windows import windows
from tests.mqpipeline.rows import as_frame, distinct, frame, rows_of
from tests.mqpipeline.stream import (
    Stream,
    address,
    at,
    checkpoint,
    checkpointed,
    landed,
    registered,
    removed,
    started,
    topics,
)

DAY = 86_400
BEGIN, CUT, END = -3 * DAY, -DAY, 2 * DAY
"""In seconds: a run at CUT, in December, and one at END, in January, when December is closed."""
EIGHT, READ_ONLY = "8,8,6,0", "8,8,4,0"
DERIVED = (*(table for table in TABLES if table not in (EVENTS, HEARTBEATS)), *catalogue.TABLES)


def history() -> Stream:
    """Of each kind of thing that reports have something of in both months, and what lasts from one to the other."""
    stream = Stream(BEGIN).add(BEGIN, started())
    for i, broker in enumerate("abcd", 1):
        stream.add(
            BEGIN + i, registered("first", broker, i), topics("register", (broker, "", EIGHT, ["T"]), epoch=i)
        )
    odd = [("d", "", "3000000000,8,6,0", ["odd"]), ("d", "", "x,y,z,w", ["odder"])]
    stream.add(BEGIN + 5, topics("update", *odd, epoch=4))
    for month, since in enumerate((BEGIN, 600)):
        for away in range(3):  # d flaps
            gone = since + 1200 + 120 * away
            stream.add(gone, removed("lost", "d", 4, since=gone - 60, closed=gone - 0.2, topics=1))
            stream.add(gone + 60, registered("revive", "d", 4, timeout_ms=60_000))
        stream.add(since + 3000, topics("wipe", ("b", EIGHT, READ_ONLY, ["T"]), epoch=2), actor="token:alice")
        stream.add(
            since + 6000, topics("restore", ("b", READ_ONLY, EIGHT, ["T"]), epoch=2), actor="token:alice"
        )
        # a, b and c expire at once, and the last is back in the month behind
        for i, broker in enumerate("abc"):
            gone = since + 80_000 + i
            seen = gone - 120
            stream.add(
                gone + 1,
                removed("expired", broker, 1 + i + 4 * month, since=seen, last_seen=seen, effective=gone),
            )
        if not month:
            for i, broker in enumerate("abc", 5):
                reported = topics("register", (broker, "", EIGHT, ["T"]), epoch=i)
                stream.add((-7200, -3600, 300)[i - 5], registered("first", broker, i), reported)
    stream.add(END - 60, checkpoint("begin"))
    stream.add(END - 60, checkpointed("d", 4, {0: ("", 2100)}))
    stream.add(END - 60, checkpoint("topics", broker="d", epoch=4, rows=[("d", "", EIGHT, ["T"]), *odd]))
    return stream.add(END - 60, checkpoint("end"))


def heartbeats(spark: SparkSession) -> Any:
    times = [*range(BEGIN + 60, BEGIN + 900, 30), *range(-300, 300, 30)]
    member = {"namespace": "ns", "cluster": "c1", "broker": "d", "broker_id": 0, "addr": address("d")}
    return frame(spark, HEARTBEATS, [{**member, "id_ms": at(time), "id_n": 0, "code": 34} for time in times])


class AllRows(NamedTuple):
    """All rows of a landed table, whichever are asked for."""

    frame: DataFrame

    def rows(self, since: Since = EVER) -> DataFrame:
        return self.frame

    def has_rows(self, since: Since = EVER) -> bool:
        return True

    def first_ms(self) -> int | None:
        first: int | None = self.frame.agg({"id_ms": "min"}).collect()[0][0]
        return first


def run(
    spark: SparkSession, folder: Path, until: int, reported: list[str], of: Stream | None = None
) -> Snapshot:
    """As of that second, of this history."""
    entries = (of or history()).entries
    rows = [landed(one, batch=1 if one.ms < at(CUT) else 2) for one in entries if one.ms < at(until)]
    kept = heartbeats(spark).where(f"id_ms < {at(until)}")
    source = Source(AllRows(frame(spark, EVENTS, rows)), AllRows(kept), at(until))
    return build(Warehouse(spark, str(folder)).begin(), source, Options(), reported.append)


def found(spark: SparkSession, folder: Path) -> dict[str, set[tuple[Any, ...]]]:
    """All tables but for when a row was made."""
    warehouse = Warehouse(spark, str(folder))
    snapshot = warehouse.snapshot
    return {
        table.name: distinct(
            [row[name] for name in table.schema.names if name != "as_of"]
            for row in warehouse.rows(table, snapshot)
        )
        for table in DERIVED
    }


def test_month_by_month_and_run_by_run_as_at_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported: list[str] = []
    with monkeypatch.context() as patch:
        patch.setattr(building, "_write_reports", lambda *_, **__: None)  # all are open, and made again
        run(spark, tmp_path / "by run", CUT, reported)
    with monkeypatch.context() as patch:
        patch.setattr(reading, "FILES_MOST", 0)
        patch.setattr(building, "VERSIONS_TOGETHER", 0)
        patch.setattr(building, "VERSIONS_AT_ONCE", 1)
        patch.setattr(building, "VERSIONS_OF_A_PARTITION", 12)
        run(spark, tmp_path / "by run", END, reported)
    assert [line for line in reported if line.startswith("reading")] == [
        "reading all that was landed",
        "reading what came since the last run",
    ]
    assert {line.rpartition(" ")[2] for line in reported if "from 20" in line} == {"2025-12-01", "2025-12-04"}
    run(spark, tmp_path / "at once", END, reported)
    by_run, at_once = found(spark, tmp_path / "by run"), found(spark, tmp_path / "at once")
    for name, rows in at_once.items():
        assert by_run[name] == rows, name
    empty = {name for name, rows in at_once.items() if not rows}
    assert empty == {"gaps", "report_conflicts"}
    assert "incidents" in at_once
    warehouse = Warehouse(spark, str(tmp_path / "by run"))
    (seen,) = warehouse.rows(HEALTH, warehouse.snapshot)
    compared = ("round", "proves", "members", "members_differing", "pairs", "pairs_differing")
    assert [seen[name] for name in compared] == ["r1", True, 1, 0, 3, 0]


def test_a_month_learns_of_the_end_of_its_outages(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(building, "CATALOGUE", (catalogue.REPAIR,))
    monkeypatch.setattr(building, "_write_health", lambda *_, **__: None)
    away = Stream(BEGIN).add(BEGIN, started()).add(BEGIN + 1, registered("first", "a", 1))
    away.add(-1000, removed("lost", "a", 1, since=BEGIN + 1, closed=-1000))
    away.add(END + 500, registered("first", "a", 2))
    reported: list[str] = []
    with lean.planning_for(spark, len(away.entries)):
        closed = [run(spark, tmp_path, until, reported, away).final_ms for until in (END, END + 1000)]
    assert closed == [at(-31 * DAY), at(0)]
    assert reported.count("reading what came since the last run") == 1
    rows = Warehouse(spark, str(tmp_path)).read(catalogue.REPAIR.table).where("window = 'month'")
    december = rows.where(f"from_ms = {at(-31 * DAY)} and unit like 'broker:%'")
    assert rows_of(december, "outages", "n_open", "p50_ms") == {(1, 0, 1000 * (END + 1500))}


@pytest.mark.parametrize(("entries", "has_lost"), [(4, False), (3, False), (2, True)])
def test_tables_of_entries_that_are_lost_are_made_again(
    spark: SparkSession, tmp_path: Path, entries: int, has_lost: bool
) -> None:
    known = health.health(health.Seen([], [], []), [], {"ns": health.Entries(3, 0)}, {}, 1)
    first = Warehouse(spark, str(tmp_path)).begin()
    first.write_rows(HEALTH, known)
    first.commit(as_of_ms=1, final_ms=0, folded={})
    rows = AllRows(frame(spark, EVENTS, []))
    source = Source(rows, rows, 2, landed={"ns": health.Entries(entries, 0)})
    assert building._has_lost(first.warehouse.begin(), source) is has_lost


@pytest.mark.parametrize(
    ("first_ms", "expected"),
    [
        (None, at(0)),
        (at(-DAY), at(-DAY)),
        (1, at(0) - building.LONGEST_MS),
        (-(2**63), at(0) - building.LONGEST_MS),
    ],
)
def test_when_windows_begin(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, first_ms: int | None, expected: int
) -> None:
    rows = AllRows(frame(spark, EVENTS, []))
    monkeypatch.setattr(AllRows, "first_ms", lambda _: first_ms)
    begin_ms = building._begin_ms(Source(rows, rows, at(0)))
    assert begin_ms == expected
    assert windows(at(0), begin_ms)[-1].to_ms == at(0)


SETTLED = at(600)
"""So late that December is over for good."""


@pytest.mark.parametrize(
    ("outage", "heartbeats_s", "closed_ms", "expected"),
    [
        pytest.param(None, inf, 0, at(0), id="all of December is known"),
        pytest.param((-60, 30), inf, 0, at(0), id="its outages are over"),
        pytest.param((60, 600), inf, 0, at(0), id="an outage of January lasts"),
        pytest.param((-60, 600), inf, 0, at(-31 * DAY), id="an outage lasts"),
        pytest.param((-40 * DAY, 600), inf, at(-31 * DAY), at(-31 * DAY), id="what is closed stays so"),
        pytest.param(None, 100, 0, at(-31 * DAY), id="heartbeats are behind"),
        pytest.param(None, -70 * DAY, at(-31 * DAY), at(-31 * DAY), id="heartbeats are far behind"),
    ],
)
def test_which_months_are_closed(
    spark: SparkSession,
    outage: tuple[int, int] | None,
    heartbeats_s: float,
    closed_ms: int,
    expected: int,
) -> None:
    rows = [("ns", "c1", "a", "DOWN", at(begin), at(end)) for begin, end in ([outage] if outage else [])]
    of_brokers = "namespace string, cluster string, broker string, state string, from_ms long, to_ms long"
    brokers = as_frame(spark, rows, of_brokers)
    none = AllRows(frame(spark, EVENTS, []))
    known_ms = heartbeats_s if heartbeats_s == inf else at(heartbeats_s)
    source = Source(none, none, SETTLED, heartbeats_as_of_ms=known_ms)
    of = windows(SETTLED, max(closed_ms, at(BEGIN)))
    states = building.States(brokers, brokers, brokers)
    assert building._final_ms(source, Options(), states, of, closed_ms) == expected


@pytest.mark.parametrize(
    ("as_of", "is_back"),
    [
        ({"n": 200, "gone": 50}, False),
        ({"n": 200, "gone": 51}, True),
        ({"n": 200}, False),
        ({"n": 100, "gone": 50}, False),
    ],
)
def test_windows_that_were_closed_without_a_namespace_are_made_again_once_it_is_back(
    as_of: dict[str, int], is_back: bool
) -> None:
    base = Snapshot(as_of_ms=150, as_of={"n": 150, "gone": 50}, final_ms=100)
    assert building._is_back(base, as_of) is is_back


def test_a_checkpoint_that_differs_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    row = {"namespace": "ns", "round": "r1", "proves": True, "members_differing": 2, "pairs_differing": 0}
    building.log_differences([row, row | {"members_differing": 0}, row | {"proves": False}])
    (said,) = caplog.messages
    assert said.startswith(
        "checkpoint round r1 of ns differs from the tables: 2 members, 0 topics on brokers; "
    )
