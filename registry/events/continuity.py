"""Whether an entry of the event stream follows another one, by their numbers (docs/events.md)."""

from typing import Literal

from registry.events.entry import Event, EventKind

__all__ = ["Break", "break_before"]

Break = Literal["hole", "rollback", "incarnation"]
"""Numbers are missing; numbers come a second time; the stream began again."""


def break_before(event: Event, incarnation: str | None, sequence: int) -> Break | None:
    """Return how the stream has a break between the last entry, of these, and this one, None where it goes on."""
    if incarnation is None:
        return None
    if event.incarnation != incarnation:
        return None if event.kind == EventKind.STREAM_STARTED else "incarnation"
    if event.sequence == sequence + 1:
        return None
    return "hole" if event.sequence > sequence else "rollback"
