"""What differs between two times: the worked example, and each kind of change as a topic of its own."""

from itertools import islice, product
from typing import Any

import pytest
from pyspark.sql import SparkSession

from mqpipeline.history.diff import Difference, diff
from mqpipeline.history.tables import Id
from tests.mqpipeline.history.example import S, attributes, entry, session, tables, version


def test_the_worked_example(spark: SparkSession) -> None:
    (row,) = diff(tables(spark), 1910 * S, 1930 * S, "T1")
    assert (row.topic, row.broker, row.change, row.fields, row.after) == ("T1", "a", "removed", (), None)
    assert row.by
    assert (row.by.ms, row.by.id, row.by.cause) == (1920 * S, Id(*entry(1923.4)), "expired")
    assert row.before
    assert row.before.addrs == {0: "10.0.0.a:10911"}


def member(
    broker: str, number: int, start: float = 0, end: float | None = None, cause: str = "", **more: Any
) -> Any:
    addr = f"10.0.0.{number}:10911"
    return (
        dict(session(broker, more.pop("epoch", 1), start, end, cause))
        | {"broker_id": number, "addr": addr}
        | more
    )


FROM, TO = 100, 200
BY_BOB: Any = {"from_cause": "topic_register", "from_actor": "token:bob", "from_op": "op9"}


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> dict[str, Difference]:
    """broker -> its row; a broker for each case, all of topic T but one."""
    sessions = [
        member("same", 0),
        member("came and went", 0, 120, 150, "lost"),
        member("went and came", 0, 0, 120, "lost"),
        member("went and came", 0, 150, epoch=2),
        member("first", 0, 150),
        member("revived", 0, 0, 90, "expired"),
        member("revived", 0, 150, start_cause="revive"),
        member("left", 0, 0, 200, "unregistered"),
        member("left at from", 0, 0, 100, "unregistered"),
        member("last of two", 0, 0, 150, "lost"),
        member("last of two", 1, 0, 160, "closed"),
        member("slave lost", 0),
        member("slave lost", 1, 0, 150, "lost"),
        member("new slave", 0),
        member("new slave", 1, 150, start_cause="join"),
        member("wiped", 0),
        member("wiped twice", 0),
        member("deleted", 0),
        member("created", 0),
        member("created and changed", 0),
        member("drained", 0),
        member("undrained", 0),
        member("drain over", 0),
        member("zone", 0),
        member("late", 0, 200.001),
    ]
    held = [
        attributes("drained", 1, 0, 150),
        attributes("drained", 1, 150, drain=("alice", "", None)),
        attributes("undrained", 1, 0, 150, drain=("alice", "", None)),
        attributes("undrained", 1, 150),
        attributes("drain over", 1, 0, drain=("alice", "", 150 * S)),
        attributes("zone", 1, 0, 150, zone="z1"),
        attributes("zone", 1, 150, zone="z2"),
    ]
    stored = "8,8,6,0"
    special = ("wiped", "wiped twice", "deleted", "created", "created and changed", "went and came")
    versions = [
        *(
            version("T", name, 1, 0, stored)
            for name in dict.fromkeys(row["broker"] for row in sessions)
            if name not in special
        ),
        version("T", "went and came", 1, 0, stored, 150, to_cause="epoch"),
        version("T", "went and came", 2, 150, stored),
        version("T", "wiped", 1, 0, stored, 150),
        version("T", "wiped", 1, 150, "8,8,4,0", **BY_BOB),
        version("T", "wiped twice", 1, 0, stored, 150),
        version("T", "wiped twice", 1, 150, "8,8,4,0", 160),
        version("T", "wiped twice", 1, 160, stored),
        version("T", "deleted", 1, 0, stored, 150, to_cause="topic_delete", to_actor="token:bob"),
        version("T", "created", 1, 150, stored, **BY_BOB),
        version("T", "created and changed", 1, 150, "1,1,6,0", 160, **BY_BOB),
        version("T", "created and changed", 1, 160, stored),
        version("other", "same", 1, 0, stored),
    ]
    rows = [*diff(tables(spark, sessions, held, versions), FROM * S, TO * S)]
    assert {row.topic for row in rows} == {"T"}
    assert len({row.broker for row in rows}) == len(rows)
    return {row.broker: row for row in rows}


CASES = [
    ("first", "added", (), 150, "first", None),
    ("revived", "added", (), 150, "revive", None),
    ("left", "removed", (), 200, "unregistered", None),
    ("last of two", "removed", (), 160, "closed", None),
    ("slave lost", "changed", ("addrs",), 150, "lost", None),
    ("new slave", "changed", ("addrs",), 150, "join", None),
    ("wiped", "changed", ("perm",), 150, "topic_register", "token:bob"),
    ("deleted", "removed", (), 150, "topic_delete", "token:bob"),
    ("created", "added", (), 150, "topic_register", "token:bob"),
    ("created and changed", "added", (), 150, "topic_register", "token:bob"),
    ("drained", "changed", ("perm",), 150, "drain", "alice"),
    ("undrained", "changed", ("perm",), 150, "undrain", None),
    ("drain over", "changed", ("perm",), 150, "drain_end", None),
    ("zone", "changed", ("zone",), 150, "register", None),
]


@pytest.mark.parametrize(
    ("broker", "change", "fields", "at", "cause", "actor"),
    [pytest.param(*case, id=case[0]) for case in CASES],
)
def test_each_change_and_what_made_it(
    found: dict[str, Difference],
    broker: str,
    change: str,
    fields: tuple[str, ...],
    at: int,
    cause: str,
    actor: str | None,
) -> None:
    row = found[broker]
    assert (row.change, row.fields) == (change, fields)
    assert row.by
    assert (row.by.ms, row.by.cause, row.by.actor) == (at * S, cause, actor)
    assert (row.before is None, row.after is None) == (change == "added", change == "removed")


def test_what_is_the_same_at_both_times_is_no_difference(found: dict[str, Difference]) -> None:
    assert found.keys() == {case[0] for case in CASES}


def test_an_operation_is_shown_whole(found: dict[str, Difference]) -> None:
    wiped = found["wiped"]
    assert wiped.by
    assert (wiped.by.op, wiped.by.id) == ("op9", Id(*entry(150, 1)))
    assert wiped.before
    assert wiped.after
    assert (wiped.before.perm, wiped.after.perm) == (6, 4)


def test_one_topic_of_many(spark: SparkSession) -> None:
    rows = diff(tables(spark), 1700 * S, 1900 * S, "T2")
    assert [(row.topic, row.broker, row.change) for row in rows] == [("T2", "c", "added")]


def test_pages_are_whole_whatever_names_there_are(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names with blanks, as those of other programs may be, at the end of what is read at once."""
    monkeypatch.setattr("mqpipeline.history.diff.TOPICS_AT_ONCE", 2)
    names = ["a", "a b", "a-b", "a%20b", "b"]
    brokers = ("b c", "c", "x")
    history = tables(
        spark,
        [session(broker, 1, 100) for broker in brokers],
        (),
        [version(topic, broker, 1, 150, "8,8,6,0") for topic in names for broker in brokers],
    )
    pairs, after = [], ""
    while page := [*islice(diff(history, FROM * S, TO * S, after=after), 4)]:
        pairs += [(row.topic, row.broker) for row in page]
        after = page[-1].key
    assert pairs == sorted(product(names, brokers))


def test_members_known_from_one_entry_are_in_one_order(spark: SparkSession) -> None:
    """However their rows lie in the files."""
    members = [session("a", 1, 0, cluster=name, broker_id=number) for number, name in enumerate(("c2", "c1"))]
    added = [
        next(diff(tables(spark, rows, (), [version("T", "a", 1, 150, "8,8,6,0")]), FROM * S, TO * S)).after
        for rows in (members, members[::-1])
    ]
    assert added[0] == added[1]
