"""The questions that can be asked, and their answers as JSON's values: what HTTP and the command line show.

Members are spelt as the name server's HTTP side spells them, times are Unix ms.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from mqpipeline.history.answer import answer_of
from mqpipeline.history.causes import PAIR
from mqpipeline.history.changes import permission_changes, timeline
from mqpipeline.history.diff import diff
from mqpipeline.history.routes import route_at
from mqpipeline.history.tables import Tables

Json = dict[str, Any]
LATE_MS = 240_000
"""So long after an instant an expiry of before it may still come to be known, with the default timeouts."""


class Reading(NamedTuple):
    """The tables, and the times that they cover."""

    tables: Tables
    from_ms: int
    until_ms: int

    def landed(self, *instants: int) -> bool:
        """Return whether they cover all these."""
        return all(self.from_ms <= instant <= self.until_ms for instant in instants)

    def frame(self) -> Json:
        """As answers name it."""
        return {"fromMillis": self.from_ms, "untilMillis": self.until_ms}


def ask(reading: Reading, question: str, arguments: Mapping[str, Any]) -> Json:
    """One of QUESTIONS by its name. `landed` in the answer are the times that the tables cover; if the question is
    outside of them, `outside` is true and nothing else is there."""
    return {"outside": False, "landed": reading.frame()} | QUESTIONS[question](reading, **arguments)


def _route(
    reading: Reading, topic: str, at_ms: int, as_recorded: bool = False, acting_master: bool = False
) -> Json:
    """`route` is TopicRouteData or null; it is `provisional` while an expiry of before may still come to be known."""
    if not reading.landed(at_ms):
        return {"outside": True}
    rows = route_at(reading.tables, topic, at_ms, as_recorded=as_recorded, acting_master=acting_master)
    return {
        "topic": topic,
        "atMillis": at_ms,
        "provisional": reading.until_ms < at_ms + LATE_MS,
        "route": answer_of(rows.collect()),
    }


def _diff(
    reading: Reading,
    from_ms: int,
    to_ms: int,
    topic: str | None = None,
    acting_master: bool = False,
    limit: int = 1000,
    after: str = "",
) -> Json:
    """A page of changes by topic and broker; `next` is the `after` of the one that follows."""
    if not reading.landed(from_ms, to_ms):
        return {"outside": True}
    changes = diff(reading.tables, from_ms, to_ms, topic, acting_master=acting_master)
    key = F.concat_ws(" ", "topic", "broker")
    rows = (
        changes.withColumn("key", key).where(F.col("key") > after).orderBy("key").limit(limit + 1).collect()
    )
    return {
        "fromMillis": from_ms,
        "toMillis": to_ms,
        "provisional": reading.until_ms < to_ms + LATE_MS,
        "changes": [_change(row) for row in rows[:limit]],
        "next": rows[limit - 1].key if len(rows) > limit else None,
    }


def _permissions(
    reading: Reading,
    from_ms: int | None = None,
    to_ms: int | None = None,
    topic: str | None = None,
    broker: str | None = None,
    limit: int = 1000,
) -> Json:
    """The newest changes first; `more` if there were others before."""
    start, end = _within(reading, from_ms, to_ms)
    changes = permission_changes(reading.tables, start, end, topic=topic, broker=broker)
    return _newest(changes, limit, start, end, lambda row: {"before": row.before, "after": row.after})


def _timeline(
    reading: Reading, topic: str, from_ms: int | None = None, to_ms: int | None = None, limit: int = 1000
) -> Json:
    """What happened to a topic, the newest first; `more` if there was more before."""
    start, end = _within(reading, from_ms, to_ms)
    changes = timeline(reading.tables, topic, start, end)
    return _newest(
        changes, limit, start, end, lambda row: {"what": row.what, "before": row.before, "after": row.after}
    )


QUESTIONS: Mapping[str, Callable[..., Json]] = {
    "route": _route,
    "diff": _diff,
    "permissions": _permissions,
    "timeline": _timeline,
}


def _within(reading: Reading, from_ms: int | None, to_ms: int | None) -> tuple[int, int]:
    """Return the time asked for, as far as the tables cover it."""
    start = reading.from_ms if from_ms is None else max(from_ms, reading.from_ms)
    return start - 1, reading.until_ms if to_ms is None else min(to_ms, reading.until_ms)


def _newest(changes: DataFrame, limit: int, from_ms: int, to_ms: int, values: Callable[[Row], Json]) -> Json:
    rows = changes.orderBy(F.desc("by.ms"), F.desc("by.id"), *PAIR[1:]).limit(limit + 1).collect()
    return {
        "fromMillis": from_ms + 1,
        "toMillis": to_ms,
        "changes": [_pair(row) | values(row) for row in rows[:limit]],
        "more": len(rows) > limit,
    }


def _change(row: Row) -> Json:
    return _pair(row) | {
        "change": row.change,
        "fields": [_SPELT[name] for name in row.fields or ()],
        "before": _shown(row.before),
        "after": _shown(row.after),
    }


def _pair(row: Row) -> Json:
    by = row.by
    return {
        "topic": row.topic,
        "brokerName": row.broker,
        "atMillis": by.ms,
        "eventId": f"{by.id.ms}-{by.id.n}" if by.id is not None else None,
        "cause": by.cause,
        "actor": by.actor,
        "op": by.op,
    }


_SPELT = {
    "cluster": "cluster",
    "read_queues": "readQueueNums",
    "write_queues": "writeQueueNums",
    "perm": "perm",
    "sys_flag": "topicSysFlag",
    "addrs": "brokerAddrs",
    "acting": "enableActingMaster",
    "zone": "zoneName",
}


def _shown(side: Row | None) -> Json | None:
    if side is None:
        return None
    members = {_SPELT[name]: value for name, value in side.asDict().items()}
    addrs = sorted(members["brokerAddrs"].items())
    return members | {"brokerAddrs": {str(number): address for number, address in addrs}}
