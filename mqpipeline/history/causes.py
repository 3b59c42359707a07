"""What made a change."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from mqpipeline.history.tables import Id, RouteVersion, Session


class Caused(NamedTuple):
    """Time, entry of the stream, cause, actor and operation; None where the tables have none."""

    ms: int
    id: Id | None = None
    cause: str | None = None
    actor: str | None = None
    op: str | None = None


def began(version: RouteVersion) -> Caused:
    """Return what made a route version begin."""
    return Caused(version.from_ms, version.from_id, version.from_cause, version.from_actor, version.from_op)


def ended(version: RouteVersion) -> Caused:
    """Return what ended it."""
    return Caused(version.until_ms, version.to_id, version.to_cause, version.to_actor)


def came(session: Session) -> Caused:
    """Return what made a session begin; sessions have no actor."""
    return Caused(session.start_ms, session.start_id, session.start_cause)


def left(session: Session) -> Caused:
    """Return what ended it."""
    return Caused(session.until_ms, session.end_id, session.end_cause)


def last(causes: Iterable[Caused]) -> Caused | None:
    """Return the last of them, None of none: of one instant the one with the later entry."""
    return max(causes, key=_order, default=None)


def is_within(ms: int, from_ms: int, to_ms: int) -> bool:
    """Return whether a time was after `from_ms`, and at `to_ms` at the latest."""
    return from_ms < ms <= to_ms


def _order(caused: Caused) -> list[tuple[bool, Any]]:
    return [(value is not None, value) for value in caused]
