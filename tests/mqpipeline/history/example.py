"""The tables that the definitions' worked example leaves: seconds from w0 as ms, all of broker id 0 in cluster c1."""

from collections.abc import Iterable
from typing import Any

from pyarrow.dataset import dataset
from pyspark.sql import DataFrame, SparkSession

from mqpipeline.history.tables import Tables
from mqpipeline.schemas import BROKER_SESSIONS, BROKER_VERSIONS, ROUTE_VERSIONS
from tests.mqpipeline.rows import Literal, frame

S = 1000


def entry(seconds: float, n: int = 0) -> tuple[int, int]:
    """An entry's id."""
    return round(seconds * S), n


def session(
    broker: str, epoch: int, start: float, end: float | None = None, cause: str | None = None, **more: Any
) -> Literal:
    """One stay of a master; `recorded` is when its end was written, if that was later."""
    recorded = more.pop("recorded", end)
    return {
        "namespace": "default",
        "inc": 1,
        "cluster": "c1",
        "broker": broker,
        "broker_id": 0,
        "start_id": entry(start),
        "addr": f"10.0.0.{broker}:10911",
        "epoch": epoch,
        "start_ms": entry(start)[0],
        "start_cause": "first",
        "end_ms": None if end is None else entry(end)[0],
        "end_id": None if recorded is None else entry(recorded),
        "recorded_ms": None if recorded is None else entry(recorded)[0],
        "end_cause": cause,
        "drained": False,
        "left_censored": False,
        "open": end is None,
    } | more


def version(
    topic: str, broker: str, epoch: int, start: float, queues: str, end: float | None = None, **more: Any
) -> Literal:
    """Queue data as stored, from a registration unless `more` says otherwise."""
    read, write, perm, flag = map(int, queues.split(","))
    return {
        "namespace": "default",
        "inc": 1,
        "topic": topic,
        "broker": broker,
        "from_id": entry(start, 1),
        "epoch": epoch,
        "read_queues": read,
        "write_queues": write,
        "perm": perm,
        "sys_flag": flag,
        "from_ms": entry(start)[0],
        "from_cause": "register",
        "from_actor": f"wire:{broker}",
        "from_op": f"op{start:g}",
        "to_ms": None if end is None else entry(end)[0],
        "to_id": None if end is None else entry(end, 1),
    } | more


def attributes(broker: str, epoch: int, start: float, end: float | None = None, **more: Any) -> Literal:
    """What held of a broker name."""
    return {
        "namespace": "default",
        "inc": 1,
        "broker": broker,
        "from_id": entry(start),
        "cluster": "c1",
        "epoch": epoch,
        "acting": False,
        "from_ms": entry(start)[0],
        "to_ms": None if end is None else entry(end)[0],
    } | more


SESSIONS = (
    session("a", 1, -900, 600, "lost"),
    session("a", 3, 660, 1920, "expired", recorded=1923.4),
    session("a", 6, 2400),
    session("b", 2, -900, 1200, "unregistered"),
    session("b", 4, 1500),
    session("c", 5, 1800, 3300, "expired", recorded=3301.2),
)
BROKERS = tuple(
    attributes(broker, epoch, start, end)
    for broker, epoch, start, end in (
        ("a", 1, -900, 600),
        ("a", 3, 660, 1923.4),
        ("a", 6, 2400, None),
        ("b", 2, -900, 1200),
        ("b", 4, 1500, None),
        ("c", 5, 1800, 3301.2),
    )
)
BY_ALICE: Any = {"from_actor": "token:alice", "from_op": "wiping", "from_cause": "wipe"}
EPOCH: Any = {"to_cause": "epoch"}
VERSIONS = (
    version("T1", "a", 1, -900, "4,4,6,0", 660, **EPOCH),
    version("T1", "a", 3, 660, "4,4,6,0", 2400, **EPOCH),
    version("T1", "a", 6, 2400, "4,4,6,0"),
    version("T1", "b", 2, -900, "8,8,6,0", 1500, **EPOCH),
    version("T1", "b", 4, 1500, "8,8,6,0", 2700, to_cause="wipe", to_actor="token:alice"),
    version("T1", "b", 4, 2700, "8,8,4,0", 3000, to_cause="restore", to_actor="token:alice", **BY_ALICE),
    version("T1", "b", 4, 3000, "8,8,6,0", **BY_ALICE | {"from_cause": "restore", "from_op": "restoring"}),
    version("T1", "c", 5, 1800, "12,12,6,0"),
    version("T2", "c", 5, 1800, "6,6,6,0"),
)


def frames(
    spark: SparkSession,
    sessions: Iterable[Literal] = SESSIONS,
    brokers: Iterable[Literal] = BROKERS,
    versions: Iterable[Literal] = VERSIONS,
) -> tuple[DataFrame, DataFrame, DataFrame]:
    """Sessions, versions of names and of routes; without arguments those of the example."""
    return (
        frame(spark, BROKER_SESSIONS, sessions),
        frame(spark, BROKER_VERSIONS, brokers),
        frame(spark, ROUTE_VERSIONS, versions),
    )


def tables(spark: SparkSession, *rows: Iterable[Literal]) -> Tables:
    """The same as history reads them."""
    return in_memory("default", *frames(spark, *rows))


def in_memory(namespace: str, *made: DataFrame) -> Tables:
    """The tables of one name server, not as files."""
    sessions, names, routes = (dataset(one.toArrow()) for one in made)
    return Tables(namespace, sessions, names, routes)
