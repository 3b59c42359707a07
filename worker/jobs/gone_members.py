"""Notes members that leave without unregistering, and those that come back."""

from typing import Final

from registry import gone_members
from registry.events.entry import Event, EventKind
from registry.gone_members import MemberName
from registry.keys import Keys
from registry.plans import Plan

__all__ = ["GoneMembers"]

LEFT: Final = frozenset({"closed", "expired", "lost"})
"""Causes of removals that were not asked for."""


class GoneMembers:
    """An observer of each entry; `note` writes what it saw."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys
        self._changes: dict[MemberName, int | None] = {}

    def recall(self, event: Event) -> None:
        """Do nothing: what another process observed is noted."""

    def observe(self, event: Event) -> None:
        """Remember which member left or came."""
        if event.kind == EventKind.BROKER_REGISTERED:
            self._changes[_name(event)] = None
        elif event.kind == EventKind.BROKER_REMOVED:
            self._changes[_name(event)] = event.id.ms if event.cause in LEFT else None

    def note(self) -> Plan[None]:
        """Write it; it is remembered until that has succeeded."""
        if self._changes:
            yield from gone_members.note(self._keys, self._changes)
            self._changes = {}


def _name(event: Event) -> MemberName:
    return MemberName(event.get("cluster"), event.get("broker"), event.get("id"))
