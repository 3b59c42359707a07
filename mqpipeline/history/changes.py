"""What happened to a topic, in order; and the changes of permissions, with their actors."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from mqpipeline.history.causes import Caused, began, came, ended, is_within, left
from mqpipeline.history.routes import PERM_WRITE
from mqpipeline.history.tables import GroupKey, NameVersion, RouteVersion, Tables

Name = tuple[int, str]
"""A broker name in an incarnation of the stream."""


class PermissionChange(NamedTuple):
    """A change of the permissions of a topic on a broker."""

    topic: str
    broker: str
    by: Caused
    before: int
    after: int


class Change(NamedTuple):
    """A change of a topic's route. `what` is `queues` (`readQ,writeQ,perm,sysFlag` as stored), `member` (`id=address`),
    `zone`, `acting` or `drain` (its owner); `before` and `after` are None for nothing."""

    topic: str
    broker: str
    by: Caused
    what: str
    before: str | None
    after: str | None


class DrainChange(NamedTuple):
    """A drain that begins (`drained`) or ends."""

    drained: bool
    by: Caused


def permission_changes(
    tables: Tables, from_ms: int, to_ms: int, *, topic: str | None = None, broker: str | None = None
) -> list[PermissionChange]:
    """Return each time in (from_ms, to_ms] that a topic's permission on a broker became another.

    Of one topic, of one broker name, or of all. Permissions are as stored, whether the broker was there or not; a drain
    takes the write bit away (`drain`, its owner as actor) and gives it back (`undrain`)."""
    topics, brokers = (None if chosen is None else [chosen] for chosen in (topic, broker))
    versions = [*tables.routes_during(from_ms, to_ms, topics, brokers)]
    names = tables.names_during(from_ms, to_ms, {version.broker for version in versions})
    drains = {
        name: sorted(
            (change for change in _drains(of_name) if is_within(change.by.ms, from_ms, to_ms)), key=_time
        )
        for name, of_name in _by_name(names).items()
    }
    stored = (
        PermissionChange(now.topic, now.broker, began(now), before.perm, now.perm)
        for of_pair in _by_pair(versions)
        for before, now in pairwise(of_pair)
        if before.perm != now.perm and is_within(now.from_ms, from_ms, to_ms)
    )
    overlaid = (
        _overlaid(version, drain)
        for version in versions
        if version.perm & PERM_WRITE
        for drain in _meanwhile(drains.get((version.inc, version.broker), ()), version)
    )
    return [*stored, *overlaid]


def timeline(tables: Tables, topic: str, from_ms: int, to_ms: int) -> list[Change]:
    """Return all that changed of a topic's route in (from_ms, to_ms]."""
    versions = [*tables.routes_during(from_ms, to_ms, [topic])]
    holders = {version.group for version in versions}
    changes = (
        *_queues(versions),
        *_members(tables, topic, holders, from_ms, to_ms),
        *_attributes(tables, topic, {(group.inc, group.broker) for group in holders}, from_ms, to_ms),
    )
    return [change for change in changes if is_within(change.by.ms, from_ms, to_ms)]


def _by_pair(versions: Iterable[RouteVersion]) -> Iterator[list[RouteVersion]]:
    """Yield the versions of each topic on each broker, in order."""
    pairs: dict[tuple[str, str], list[RouteVersion]] = defaultdict(list)
    for version in versions:
        pairs[version.topic, version.broker].append(version)
    for of_pair in pairs.values():
        yield sorted(of_pair, key=lambda version: (version.inc, version.from_id))


def _by_name(names: Iterable[NameVersion]) -> dict[Name, list[NameVersion]]:
    """Return what held of each name, in order."""
    by_name: dict[Name, list[NameVersion]] = defaultdict(list)
    for version in names:
        by_name[version.inc, version.broker].append(version)
    return {name: sorted(of_name, key=lambda version: version.from_id) for name, of_name in by_name.items()}


def _drains(names: list[NameVersion]) -> Iterator[DrainChange]:
    """Yield the drains of one name that begin, and those that end; of the first version only the end is known."""
    for before, now in pairwise(names):
        at, was = (now.from_ms, now.from_id), before.drain
        if was is None and now.drain is not None:
            yield DrainChange(True, Caused(*at, "drain", now.drain.owner))
        if was is not None and now.drain is None and (was.until_ms is None or was.until_ms > now.from_ms):
            yield DrainChange(False, Caused(*at, "undrain"))
    for version in names:
        over_ms = None if version.drain is None else version.drain.until_ms
        if over_ms is not None and over_ms <= version.until_ms:
            yield DrainChange(False, Caused(over_ms, None, "drain_end"))


def _time(change: DrainChange) -> int:
    return change.by.ms


def _meanwhile(drains: Sequence[DrainChange], version: RouteVersion) -> Sequence[DrainChange]:
    """Return those, in order, that came while a route version was stored."""
    first = bisect_left(drains, version.from_ms, key=_time)
    return drains[first : bisect_left(drains, version.until_ms, key=_time)]


def _overlaid(version: RouteVersion, drain: DrainChange) -> PermissionChange:
    free, drained = version.perm, version.perm & ~PERM_WRITE
    before, after = (free, drained) if drain.drained else (drained, free)
    return PermissionChange(version.topic, version.broker, drain.by, before, after)


def _queues(versions: Iterable[RouteVersion]) -> Iterator[Change]:
    """Yield versions as they begin, and as they end where none begins at the same instant."""
    for of_pair in _by_pair(versions):
        for before, now, after in zip([None, *of_pair], of_pair, [*of_pair[1:], None], strict=False):
            was = before.queues if before and before.to_ms == now.from_ms else None
            yield Change(now.topic, now.broker, began(now), "queues", was, now.queues)
            if now.to_ms is not None and (after is None or after.from_ms != now.to_ms):
                yield Change(now.topic, now.broker, ended(now), "queues", now.queues, None)


def _members(
    tables: Tables, topic: str, holders: set[GroupKey], from_ms: int, to_ms: int
) -> Iterator[Change]:
    for session in tables.sessions_during(from_ms, to_ms, {group.broker for group in holders}):
        if session.group in holders:
            member = f"{session.broker_id}={session.addr}"
            yield Change(topic, session.broker, came(session), "member", None, member)
            if session.end_ms is not None:
                yield Change(topic, session.broker, left(session), "member", member, None)


def _attributes(tables: Tables, topic: str, holders: set[Name], from_ms: int, to_ms: int) -> Iterator[Change]:
    """Yield zone, acting and drain, where one of them became another."""
    names = _by_name(tables.names_during(from_ms, to_ms, {broker for _, broker in holders}))
    for name in names.keys() & holders:
        for before, now in pairwise(names[name]):
            for what, was, value in zip(_WHAT, _attributes_of(before), _attributes_of(now), strict=True):
                if was != value:
                    yield Change(topic, now.broker, _by(what, now), what, was, value)


_WHAT = ("zone", "acting", "drain")


def _attributes_of(version: NameVersion) -> tuple[str | None, str | None, str | None]:
    acting = None if version.acting is None else str(version.acting).lower()
    return version.zone, acting, None if version.drain is None else version.drain.owner


def _by(what: str, now: NameVersion) -> Caused:
    if what != "drain":
        return Caused(now.from_ms, now.from_id, "register")
    if now.drain is None:
        return Caused(now.from_ms, now.from_id, "undrain")
    return Caused(now.from_ms, now.from_id, "drain", now.drain.owner)
