"""Changes of permissions with their actors, and what happened to a topic."""

import pytest
from pyspark.sql import SparkSession

from mqpipeline.history.changes import PermissionChange, permission_changes, timeline
from mqpipeline.history.tables import Tables
from tests.mqpipeline.history.example import SESSIONS, VERSIONS, S, attributes, session, tables, version

HELD = (
    attributes("b", 2, -900, 1000),
    attributes("b", 2, 1000, 1100, drain=("alice", "why", None)),
    attributes("b", 2, 1100, 1200),
    attributes("b", 4, 1500, 2000),
    attributes("b", 4, 2000, 2500, drain=("carol", "", 2100 * S)),
    attributes("b", 4, 2500, 3100),
    attributes("b", 4, 3100, zone="z", acting=True),
)


@pytest.fixture(scope="module")
def history(spark: SparkSession) -> Tables:
    """The worked example, with a broker that is drained twice, and one that is not asked for."""
    other = (version("T9", "x", 9, 0, "1,1,6,0", 2800), version("T9", "x", 9, 2800, "1,1,2,0"))
    return tables(spark, (*SESSIONS, session("x", 9, 0)), HELD, (*VERSIONS, *other))


def shown(row: PermissionChange) -> tuple[object, ...]:
    return row.by.ms / S, row.by.cause, row.by.actor, row.topic, row.broker, row.before, row.after


def test_permission_changes_of_a_topic(history: Tables) -> None:
    found = permission_changes(history, 0, 3600 * S, topic="T1")
    assert sorted(shown(row) for row in found) == [
        (1000, "drain", "alice", "T1", "b", 6, 4),
        (1100, "undrain", None, "T1", "b", 4, 6),
        (2000, "drain", "carol", "T1", "b", 6, 4),
        (2100, "drain_end", None, "T1", "b", 4, 6),
        (2700, "wipe", "token:alice", "T1", "b", 6, 4),
        (3000, "restore", "token:alice", "T1", "b", 4, 6),
    ]


def test_the_actor_of_a_wipe(history: Tables) -> None:
    (row,) = permission_changes(history, 2650 * S, 2700 * S, topic="T1")
    assert shown(row) == (2700, "wipe", "token:alice", "T1", "b", 6, 4)
    assert row.by.op == "wiping"


def test_of_a_broker(history: Tables) -> None:
    found = permission_changes(history, 2600 * S, 3600 * S, broker="x")
    assert [shown(row)[3:] for row in found] == [("T9", "x", 6, 2)]


def test_what_happened_to_a_topic(history: Tables) -> None:
    found = sorted(
        timeline(history, "T1", 1850 * S, 3600 * S), key=lambda row: (row.by.ms, row.by.id, row.what)
    )
    reported = [(row.by.ms / S, row.broker, row.what, row.before, row.after, row.by.cause) for row in found]
    a, c = "0=10.0.0.a:10911", "0=10.0.0.c:10911"
    assert reported == [
        (1920, "a", "member", a, None, "expired"),
        (2000, "b", "drain", None, "carol", "drain"),
        (2400, "a", "member", None, a, "first"),
        (2400, "a", "queues", "4,4,6,0", "4,4,6,0", "register"),
        (2500, "b", "drain", "carol", None, "undrain"),
        (2700, "b", "queues", "8,8,6,0", "8,8,4,0", "wipe"),
        (3000, "b", "queues", "8,8,4,0", "8,8,6,0", "restore"),
        (3100, "b", "acting", "false", "true", "register"),
        (3100, "b", "zone", None, "z", "register"),
        (3300, "c", "member", c, None, "expired"),
    ]


def test_a_topic_that_is_deleted(spark: SparkSession) -> None:
    versions = (version("T1", "a", 1, 0, "4,4,6,0", 10, to_cause="topic_delete", to_actor="token:bob"),)
    found = timeline(tables(spark, (session("a", 1, 0),), (), versions), "T1", 5 * S, 20 * S)
    assert [(row.what, row.before, row.after, row.by.actor) for row in found] == [
        ("queues", "4,4,6,0", None, "token:bob")
    ]
