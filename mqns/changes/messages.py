"""What `/v1/watch` sends (docs/watch.md), and what it says of topics."""

from collections.abc import Iterator, Set
from typing import Any

import msgspec

__all__ = ["ChangeMessage", "Entry", "ResetCause"]

ResetCause = str
"""`trimmed`, `incarnation`, `rollback`, `hole`, `unreadable`, `unknown_kind` (docs/watch.md), or what later servers
have; `begun` before the first message of a stream that began with now (`stream.py`)."""


class Entry(msgspec.Struct, frozen=True, rename="camel"):
    """An entry of the event stream; `data` are the fields of its kind."""

    id: str
    at_millis: int
    kind: str | None = None
    cause: str | None = None
    actor: str | None = None
    data: dict[str, Any] = {}

    def brokers(self) -> Iterator[str]:
        """Yield the broker names that a change of routes names."""
        yield from _texts(self.data.get("broker"))
        for row in _list(self.data.get("rows")):
            yield from _texts(*_list(row)[:1])

    def topics(self) -> Iterator[str]:
        """Yield the topics that a change of routes names: in rows, or as the key of an order configuration."""
        yield from _texts(self.data.get("topic"), self.data.get("key"))
        for row in _list(self.data.get("rows")):
            for member in _list(row)[1:]:
                yield from _texts(*(_list(member) or [member]))


class ChangeMessage(msgspec.Struct, frozen=True):
    """The entries of one change. `reset`, if it is not None: before this, entries may be missing, or some that were
    sent never happened; read again what you keep."""

    id: str
    reset: ResetCause | None
    events: tuple[Entry, ...] = ()

    def may_concern(self, topics: Set[str], brokers: Set[str]) -> bool:
        """Return whether routes of these topics, which these brokers serve, may be others now."""
        if self.reset is not None:
            return True
        return any(
            entry.kind in ("hold_changed", "settings_changed", "tables_repaired")
            or not topics.isdisjoint(entry.topics())
            or not brokers.isdisjoint(entry.brokers())
            for entry in self.events
        )


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _texts(*values: Any) -> Iterator[str]:
    return (value for value in values if isinstance(value, str))
