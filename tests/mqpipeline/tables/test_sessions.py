"""Sessions: one row of the definitions' edges each, and what bounds a history that was not read whole."""

from itertools import pairwise

import pytest
from pyspark.sql import SparkSession

from mqpipeline.clean import clean
from mqpipeline.tables.sessions import sessions
from tests.mqpipeline.stream import (
    Case,
    Reported,
    Stream,
    address,
    at,
    landing,
    registered,
    removed,
    started,
    topics,
)

pytestmark = pytest.mark.timeout(300)

A, OTHER = address("a"), "10.9.9.9:10911"
COLUMNS = (
    "broker",
    "broker_id",
    "addr",
    "epoch",
    "start_ms",
    "start_cause",
    "end_ms",
    "end_cause",
    "left_censored",
)


def stay(
    start: float,
    end: float | None,
    end_cause: str | None = None,
    start_cause: str | None = "first",
    *,
    addr: str = A,
    id: int = 0,
    epoch: int = 1,
) -> tuple[object, ...]:
    """A row expected; without `start_cause` it is left-censored."""
    end_ms = None if end is None else at(end)
    return ("a", id, addr, epoch, at(start), start_cause, end_ms, end_cause, start_cause is None)


def first(**more: object) -> Reported:
    return registered("first", "a", 1, **more)  # type: ignore[arg-type]


def gone(cause: str, since: float, **more: object) -> Reported:
    return removed(cause, "a", 1, since=since, **more)  # type: ignore[arg-type]


def lives(
    *, lost: int = 0, then: Reported | None = None, again: dict[int, tuple[str, float]] | None = None
) -> Stream:
    """In at 10, the last entry at 20; then a hole, and from 30 on what is given: a checkpoint of `a`, an entry."""
    stream = Stream().add(10, first()).add(20, registered("first", "z", 9)).lose(lost)
    if again is not None:
        stream.members(30, a_1=again, z_9={0: ("", 20)})
    return stream.add(40, then) if then else stream


CASES = [
    Case("still open", Stream().add(10, first()).rows(), {stay(10, None)}),
    Case(
        "expired: it ended with its lease",
        Stream().add(10, first()).add(133, gone("expired", 10, effective=130, last_seen=10)).rows(),
        {stay(10, 130, "expired")},
    ),
    Case(
        "unregistered",
        Stream().add(10, first()).add(20, gone("unregistered", 10)).rows(),
        {stay(10, 20, "unregistered")},
    ),
    Case(
        "history begins later",
        Stream(seq=7).add(20, gone("lost", -5, closed=19)).rows(),
        {stay(-5, 20, "lost", None)},
    ),
    Case(
        "history begins later: a checkpoint lists the members",
        Stream(seq=7).members(20, a_1={0: ("", -5)}).rows(),
        {stay(-5, None, None, None)},
    ),
    Case(
        "a checkpoint of what is known",
        Stream().add(10, first()).members(20, a_1={0: ("", 10)}).add(30, gone("lost", 10)).rows(),
        {stay(10, 30, "lost")},
    ),
    Case(
        "slave becomes master: two slots",
        Stream()
        .add(10, registered("first", "a", 1, id=1))
        .add(20, gone("switched", 10, id=1), registered("switch", "a", 1, id=0))
        .rows(),
        {stay(10, 20, "switched", id=1), stay(20, None, None, "switch")},
    ),
    Case(
        "another address takes the slot: no gap",
        Stream()
        .add(10, first())
        .add(20, gone("replaced", 10), registered("takeover", "a", 1, addr=OTHER))
        .rows(),
        {stay(10, 20, "replaced"), stay(20, None, None, "takeover", addr=OTHER)},
    ),
    Case(
        "revive: a true gap",
        Stream()
        .add(10, first())
        .add(133, gone("expired", 10, effective=130), registered("revive", "a", 1))
        .rows(),
        {stay(10, 130, "expired"), stay(133, None, None, "revive")},
    ),
    Case(
        "a new incarnation ends what is open",
        Stream().add(10, first()).rows() + Stream(50).add(50, started(), registered("first", "a", 1)).rows(),
        {stay(10, 50, "incarnation"), stay(50, None)},
    ),
    Case(
        "one whose clock is behind does too",
        Stream().add(10, first()).add(20, registered("first", "b", 1)).rows(1)
        + Stream(-100).add(-90, registered("first", "a", 1)).rows(2),
        {stay(10, 20, "incarnation"), stay(20, None)},
    ),
    Case(
        "one that goes on after another, with a round",
        Stream().add(10, first()).rows(1)
        + Stream(50).add(50, started(), registered("first", "b", 1)).rows(2)
        + Stream(seq=2).members(60, a_1={0: ("", 10)}).rows(3),
        {stay(10, None)},
    ),
    Case(
        "one that goes on after another, with a removal",
        Stream().add(10, first()).rows(1)
        + Stream(50).add(50, started(), registered("first", "b", 1)).rows(2)
        + Stream(seq=2).add(70, gone("lost", 10)).rows(3),
        {stay(10, 70, "lost")},
    ),
    Case(
        "one that goes on after another, and says nothing of it",
        Stream().add(10, first()).rows(1)
        + Stream(50).add(50, started(), registered("first", "b", 1)).rows(2)
        + Stream(seq=2).add(70, registered("first", "c", 1)).rows(3),
        {stay(10, 50, "incarnation")},
    ),
    Case(
        "an incarnation over the same tables checkpoints the members",
        Stream().add(10, first()).rows()
        + Stream(50).add(50, started("stream_lost")).members(51, a_1={0: ("", 10)}).rows(),
        {stay(10, 50, "incarnation"), stay(50, None, None, None)},
    ),
    Case(
        "over a hole, checkpointed",
        lives(lost=3, again={0: ("", 10)}).rows(),
        {stay(10, None)},
    ),
    Case(
        "over a hole, checkpointed, and gone later",
        lives(lost=3, again={0: ("", 10)}, then=gone("closed", 10)).rows(),
        {stay(10, 40, "closed")},
    ),
    Case(
        "over a hole, checkpointed with a later beginning",
        lives(lost=3, again={0: ("", 25)}).rows(),
        {stay(10, 20, "gap"), stay(25, None, None, None)},
    ),
    Case(
        "over a hole, checkpointed with another address",
        lives(lost=3, again={0: (OTHER, 25)}).rows(),
        {stay(10, 20, "gap"), stay(25, None, None, None, addr=OTHER)},
    ),
    Case(
        "over a hole, another member came from elsewhere",
        lives(lost=3, again={0: (OTHER, 5)}).rows(),
        {stay(10, 20, "gap"), stay(20, None, None, None, addr=OTHER)},
    ),
    Case("a hole, not checkpointed", lives(lost=3, again={}).rows(), {stay(10, 20, "gap")}),
    Case(
        "a hole, and nothing recorded since",
        lives(lost=3, then=registered("first", "z", 10)).rows(),
        {stay(10, 20, "gap")},
    ),
    Case(
        "a hole, then a removal of the same stay",
        lives(lost=3, then=gone("lost", 10)).rows(),
        {stay(10, 40, "lost")},
    ),
    Case(
        "a hole, then a removal of a later stay",
        lives(lost=3, then=gone("lost", 25)).rows(),
        {stay(10, 20, "gap"), stay(25, 40, "lost", None)},
    ),
    Case(
        "a hole, then a registration",
        lives(lost=3, then=registered("join", "a", 1)).rows(),
        {stay(10, 20, "gap"), stay(40, None, None, "join")},
    ),
    Case(
        "a slave that became master keeps its since",
        Stream()
        .add(10, registered("first", "a", 1, id=1))
        .add(20, gone("switched", 10, id=1), registered("switch", "a", 1, id=0))
        .lose(2)
        .members(30, a_1={0: ("", 10)})
        .rows(),
        {stay(10, 20, "switched", id=1), stay(20, None, None, "switch")},
    ),
    Case(
        "two holes, checkpointed behind the first only",
        lives(lost=3, again={0: ("", 10)}).lose(2).add(50, registered("first", "z", 10)).rows(),
        {stay(10, 30, "gap")},
    ),
    Case(
        "two holes, checkpointed behind the second",
        lives(lost=3, then=registered("first", "z", 10)).lose(2).members(50, a_1={0: ("", 10)}).rows(),
        {stay(10, None)},
    ),
    Case(
        "start = end",
        Stream().add(10, first()).add(10, gone("unregistered", 10)).rows(),
        {stay(10, 10, "unregistered")},
    ),
    Case(
        "a lease that ended before it began: the clock went back",
        Stream().add(10, first()).add(12, gone("expired", 10, effective=8)).rows(),
        {stay(10, 10, "expired")},
    ),
    Case(
        "a lease that ends after its record",
        Stream().add(10, first()).add(12, gone("expired", 10, effective=14)).rows(),
        {stay(10, 12, "expired")},
    ),
    Case(
        "half a group is none",
        Stream()
        .add(10, first())
        .add(20, gone("lost", 10), topics("acting", ("a", "1,1,6,0", "", ["T"])))
        .rows()[:-1],
        {stay(10, None)},
    ),
]
Rows = dict[str, list[dict[str, object]]]


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> Rows:
    """The sessions of broker a in every case."""
    rows: Rows = {}
    for row in sessions(clean(landing(spark, CASES)).localCheckpoint()).where("broker = 'a'").collect():
        rows.setdefault(row.namespace, []).append(row.asDict(recursive=True))
    return rows


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_edges(found: Rows, case: Case) -> None:
    rows = [tuple(row[name] for name in COLUMNS) for row in found[case.id]]
    assert set(rows) == case.expected
    assert len(rows) == len(case.expected)


def test_every_session_is_sound(found: Rows) -> None:
    """start <= end <= recorded; those of a slot do not overlap; open is without end."""
    for rows in found.values():
        slots: dict[object, list[dict[str, object]]] = {}
        for row in rows:
            assert row["open"] == (row["end_ms"] is None)
            if not row["open"]:
                assert row["start_ms"] <= row["end_ms"] <= row["recorded_ms"]  # type: ignore[operator]
            slots.setdefault((row["cluster"], row["broker"], row["broker_id"]), []).append(row)
        for stays in slots.values():
            stays.sort(key=lambda row: (row["start_ms"], row["inc"]))
            for one, then in pairwise(stays):
                assert one["end_ms"] <= then["start_ms"]  # type: ignore[operator]


def test_what_a_removal_says(found: Rows) -> None:
    [row] = found["expired: it ended with its lease"]
    assert (row["recorded_ms"], row["last_seen_ms"], row["drained"]) == (at(133), at(10), False)
    assert row["start_id"] == {"ms": at(10), "n": 0}
    assert row["end_id"] == {"ms": at(133), "n": 0}
    [lost] = found["history begins later"]
    assert lost["closed_ms"] == at(19)
