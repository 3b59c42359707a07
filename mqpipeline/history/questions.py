"""The questions that can be asked, and their answers as JSON's values: what HTTP and the command line show.

Members are spelt as the name server's HTTP side spells them, times are Unix ms.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

import msgspec

from mqpipeline.history.answer import answer_of
from mqpipeline.history.causes import Caused
from mqpipeline.history.changes import Change, PermissionChange, permission_changes, timeline
from mqpipeline.history.diff import Difference, diff
from mqpipeline.history.routes import Shown, route_at
from mqpipeline.history.tables import Tables

Json = dict[str, Any]
LATE_MS: Final = 240_000
"""So long after an instant an expiry of before it may still come to be known, with the default timeouts."""
NO_CAUSE: Final = Caused(0)


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

    def knows(self, topic: str) -> bool:
        """Return whether they ever had this topic."""
        return any(self.tables.routes_during(self.from_ms, self.until_ms, [topic]))

    def within(self, seconds: float) -> "Reading":
        """Return the same, that raises TimeoutError once so much time has gone by."""
        return self._replace(tables=self.tables._replace(until_s=time.monotonic() + seconds))


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
    routes = route_at(reading.tables, topic, at_ms, as_recorded=as_recorded, acting_master=acting_master)
    return {
        "topic": topic,
        "atMillis": at_ms,
        "provisional": reading.until_ms < at_ms + LATE_MS,
        "route": answer_of(routes),
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
    changes = diff(reading.tables, from_ms, to_ms, topic, acting_master=acting_master, after=after)
    page = [*islice(changes, limit + 1)]
    return {
        "fromMillis": from_ms,
        "toMillis": to_ms,
        "provisional": reading.until_ms < to_ms + LATE_MS,
        "changes": [_difference(change) for change in page[:limit]],
        "next": page[limit - 1].key if len(page) > limit else None,
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
    return _newest(changes, limit, start, end)


def _timeline(
    reading: Reading, topic: str, from_ms: int | None = None, to_ms: int | None = None, limit: int = 1000
) -> Json:
    """What happened to a topic, the newest first; `more` if there was more before."""
    start, end = _within(reading, from_ms, to_ms)
    return _newest(timeline(reading.tables, topic, start, end), limit, start, end)


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


def _newest(changes: Sequence[PermissionChange | Change], limit: int, from_ms: int, to_ms: int) -> Json:
    by_pair = sorted(changes, key=lambda change: (change.topic, change.broker))
    newest = sorted(by_pair, key=lambda change: _age(change.by), reverse=True)
    return {
        "fromMillis": from_ms + 1,
        "toMillis": to_ms,
        "changes": [
            _pair(change.topic, change.broker, change.by) | _values(change) for change in newest[:limit]
        ],
        "more": len(newest) > limit,
    }


def _age(by: Caused) -> tuple[Any, ...]:
    return by.ms, by.id is not None, by.id


def _values(change: PermissionChange | Change) -> Json:
    values: Json = {"before": change.before, "after": change.after}
    return {"what": change.what} | values if isinstance(change, Change) else values


def _difference(change: Difference) -> Json:
    return _pair(change.topic, change.broker, change.by) | {
        "change": change.change,
        "fields": [_SPELT[name] for name in change.fields],
        "before": _shown(change.before),
        "after": _shown(change.after),
    }


def _pair(topic: str, broker: str, by: Caused | None) -> Json:
    cause = by or NO_CAUSE
    return {
        "topic": topic,
        "brokerName": broker,
        "atMillis": by and by.ms,
        "eventId": cause.id and f"{cause.id.ms}-{cause.id.n}",
        "cause": cause.cause,
        "actor": cause.actor,
        "op": cause.op,
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


def _shown(side: Shown | None) -> Json | None:
    if side is None:
        return None
    members = {_SPELT[name]: value for name, value in msgspec.structs.asdict(side).items()}
    addrs = sorted(side.addrs.items())
    return members | {"brokerAddrs": {str(number): address for number, address in addrs}}
