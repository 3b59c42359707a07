"""Replay of the event stream: the tables that its entries lead to (docs/events.md).

For programs that follow the stream, and for tests, which prove entries and tables against each other. `replay` verifies
that no entry is missing and that each one starts from what the entries before it led to.
"""

from collections.abc import Callable, Iterable
from typing import Final

from msgspec.structs import replace

from registry.events import replay_changes as changes
from registry.events.entry import Event, EventKind
from registry.events.replay_checks import CheckpointDiffers, ReplayError
from registry.events.replay_rounds import checkpoint
from registry.events.tables import UNKNOWN, BrokerState, MemberState, Tables

__all__ = [
    "STEPS",
    "UNKNOWN",
    "BrokerState",
    "CheckpointDiffers",
    "MemberState",
    "ReplayError",
    "Tables",
    "replay",
]


def replay(tables: Tables, events: Iterable[Event]) -> Tables:
    """Return what `tables` become by these entries, in order. Raises ReplayError, CheckpointDiffers."""
    for event in events:
        tables = _next(tables, event)
    return tables


def _next(tables: Tables, event: Event) -> Tables:
    step = STEPS.get(event.kind)
    if step is None:
        raise ReplayError(f"{event.id}: unknown kind {event.kind!r}")
    inc, seq = event.incarnation, event.number("seq")
    follows = (inc, seq) == (tables.inc, tables.seq + 1) or event.kind == EventKind.STREAM_STARTED
    if not follows and (tables.whole or tables.inc):
        raise ReplayError(f"{event.id}: {inc}/{seq} follows {tables.inc}/{tables.seq}")
    after = step(tables, event)
    if tables.round is not None and event.kind not in ROUNDS_OWN:
        after = replace(after, round=replace(tables.round, tables=step(tables.round.tables, event)))
    return replace(after, inc=inc, seq=seq)


STEPS: Final[dict[str, Callable[[Tables, Event], Tables]]] = {
    EventKind.STREAM_STARTED: changes.stream_started,
    EventKind.BROKER_REGISTERED: changes.broker_registered,
    EventKind.BROKER_UPDATED: changes.broker_updated,
    EventKind.BROKER_REMOVED: changes.broker_removed,
    EventKind.TOPICS_CHANGED: changes.topics_changed,
    EventKind.MAPPINGS_CHANGED: changes.mappings_changed,
    EventKind.DRAIN_CHANGED: changes.drain_changed,
    EventKind.KV_CHANGED: changes.kv_changed,
    EventKind.SETTINGS_CHANGED: changes.settings_changed,
    EventKind.HOLD_CHANGED: changes.hold_changed,
    EventKind.ACCESS_CHANGED: changes.nothing,
    EventKind.ACCESS_DENIED: changes.nothing,
    EventKind.CONFLICT_SEEN: changes.nothing,
    EventKind.TABLES_REPAIRED: changes.tables_repaired,
    EventKind.DRIFT_CHANGED: changes.nothing,
    EventKind.CHECKPOINT: checkpoint,
}
ROUNDS_OWN: Final = frozenset({EventKind.STREAM_STARTED, EventKind.TABLES_REPAIRED, EventKind.CHECKPOINT})
"""Kinds that do not change the tables of a round under way: they begin, void or continue it."""
