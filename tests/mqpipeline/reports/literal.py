"""Rows of the tables as a test writes them down: times are seconds, what it does not say is filled in."""

from collections.abc import Iterable
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from mqpipeline.schemas import EVENTS
from mqpipeline.windows import Window
from tests.mqpipeline.rows import Literal, as_frame, frame

INC = 1
STATES = """namespace string, cluster string, broker string, broker_id bigint, state string, from_ms bigint,
    to_ms bigint"""


def ms(seconds: float) -> int:
    return round(seconds * 1000)


def window(begin: float, end: float, name: str = "1h") -> Window:
    return Window(name, ms(begin), ms(end))


def session(
    broker: str,
    start: float,
    end: float | None = None,
    end_cause: str | None = None,
    *,
    epoch: int = 1,
    recorded: float | None = None,
    last_seen: float | None = None,
    closed: float | None = None,
    **more: Any,
) -> dict[str, Any]:
    """A row of BROKER_SESSIONS: the master of `broker` in c1; open without `end`; recorded when it ended."""
    reported = end if recorded is None else recorded
    return {
        "namespace": "ns",
        "inc": INC,
        "cluster": "c1",
        "broker": broker,
        "broker_id": 0,
        "start_id": (ms(start), 0),
        "addr": f"{broker}:10911",
        "epoch": epoch,
        "start_ms": ms(start),
        "start_cause": "first",
        "end_ms": None if end is None else ms(end),
        "end_id": None if reported is None else (ms(reported), 0),
        "recorded_ms": None if reported is None else ms(reported),
        "end_cause": end_cause,
        "last_seen_ms": None if last_seen is None else ms(last_seen),
        "closed_ms": None if closed is None else ms(closed),
        "drained": False,
        "left_censored": False,
        "open": end is None,
    } | more


def version(
    topic: str, broker: str, data: str, begin: float, end: float | None = None, *, epoch: int = 1, **more: Any
) -> dict[str, Any]:
    """A row of ROUTE_VERSIONS; `data` is readQ,writeQ,perm,sysFlag."""
    read, write, perm, flag = map(int, data.split(","))
    return {
        "namespace": "ns",
        "inc": INC,
        "topic": topic,
        "broker": broker,
        "from_id": (ms(begin), 1),
        "epoch": epoch,
        "read_queues": read,
        "write_queues": write,
        "perm": perm,
        "sys_flag": flag,
        "from_ms": ms(begin),
        "to_ms": None if end is None else ms(end),
    } | more


def broker_version(broker: str, begin: float, end: float | None = None, **more: Any) -> dict[str, Any]:
    """A row of BROKER_VERSIONS in c1."""
    return {
        "namespace": "ns",
        "inc": INC,
        "broker": broker,
        "from_id": (ms(begin), 0),
        "cluster": "c1",
        "epoch": 1,
        "from_ms": ms(begin),
        "to_ms": None if end is None else ms(end),
    } | more


def state(broker: str, state: str, begin: float, end: float, **more: Any) -> dict[str, Any]:
    """An interval of a slot, or of a broker where the id is not asked for."""
    return {
        "namespace": "ns",
        "cluster": "c1",
        "broker": broker,
        "broker_id": 0,
        "state": state,
        "from_ms": ms(begin),
        "to_ms": ms(end),
    } | more


def states_frame(spark: SparkSession, rows: list[dict[str, Any]]) -> DataFrame:
    return as_frame(spark, rows, STATES)


class Log:
    """Clean events of one namespace, numbered in order. Each call is an entry; those of one operation share `op`."""

    def __init__(self, namespace: str = "ns") -> None:
        self.namespace = namespace
        self.rows: list[dict[str, Any]] = []

    def event(
        self, kind: str, cause: str, at: float, broker: str | None = None, op: str | None = None, **more: Any
    ) -> "Log":
        """`fields` is what only the entry as read has, `rows` are (broker, before, after, topics)."""
        seq = len(self.rows) + 1
        self.rows.append(
            {
                "namespace": self.namespace,
                "inc": INC,
                "seq": seq,
                "id_ms": ms(at),
                "id_n": seq,
                "v": 1,
                "kind": kind,
                "cause": cause,
                "op": op or f"op-{seq}",
                "broker": broker,
                "cluster": broker and "c1",
                "fields": {},
            }
            | more
        )
        return self

    def member(
        self, kind: str, cause: str, at: float, broker: str, op: str | None = None, **more: Any
    ) -> "Log":
        """A master's coming, change or going."""
        own = {"broker_id": 0, "addr": f"{broker}:10911", "epoch": 1, "topics": 0}
        return self.event(f"broker_{kind}", cause, at, broker, op, **own | more)

    def topics(self, cause: str, at: float, *rows: Any, op: str | None = None, **more: Any) -> "Log":
        """Changed queue data; it names the broker if it is one."""
        brokers = {broker for broker, *_ in rows}
        named = rows[0][0] if len(brokers) == 1 else None
        return self.event("topics_changed", cause, at, named, op, rows=list(rows), **more)


def clean(spark: SparkSession, rows: Iterable[Literal]) -> DataFrame:
    """Rows of EVENTS as `clean` gives them on."""
    return frame(spark, EVENTS, rows).withColumn("id", F.expr("named_struct('ms', id_ms, 'n', id_n)"))


Reported = dict[tuple[str, str, str], tuple[Any, ...]]


def reported(report: DataFrame, *columns: str) -> Reported:
    """These values of a report by namespace, window and unit; fails on two rows of one key. Rows are looked up by
    many tests, since each look at a report costs a Spark job."""
    rows = report.select("namespace", "window", "unit", "from_ms", *columns).collect()
    found = {(row[0], row[1], row[2]): tuple(row)[4:] for row in rows}
    assert len(found) == len(rows), "keys are there twice"
    return found


def cases(rows: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """The rows of all cases, each in the namespace of its name."""
    return [row | {"namespace": name} for name, listed in rows.items() for row in listed]
