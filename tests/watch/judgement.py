"""The rules of docs/watch.md, judged from what one watcher was sent and from the stream, as another reader had it."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from registry.events.entry import Event, EventId
from registry.events.watched import NamedEntry, Wanted, holders_after

__all__ = ["Opened", "Received", "complaints"]


class Opened(NamedTuple):
    """A watcher's first position, or one that a heartbeat moved it to."""

    position: EventId


class Received(NamedTuple):
    """A message."""

    position: EventId
    entries: tuple[EventId, ...] = ()
    reset: str | None = None


Stream = Sequence[Sequence[Event]]
"""Groups in the order of the stream."""


def complaints(wanted: Wanted, seen: Sequence[Opened | Received], stream: Stream) -> Iterator[str]:
    """Yield what is not as promised to a watcher; `stream` begins with an empty store. A watcher of a topic may have
    changes of other brokers too, and lacks none of those that held the topic."""
    held = [*zip(stream, _holders(wanted.topic, stream), strict=True)]
    at: EventId | None = None
    for one in seen:
        if at is None or (isinstance(one, Received) and one.reset is not None):
            at = one.position  # behind a reset it goes on wherever it is
            continue
        yield from _between(wanted, at, one, held)
        at = max(at, one.position)


def _holders(topic: str | None, stream: Stream) -> Iterator[frozenset[str]]:
    """Yield which brokers held a topic before each group, or do so behind it."""
    holders: frozenset[str] = frozenset()
    for group in stream:
        after = None if topic is None else holders_after(holders, topic, [*map(NamedEntry, group)])
        yield holders | (after or frozenset())
        holders = after or frozenset()


def _between(
    wanted: Wanted,
    at: EventId,
    one: Opened | Received,
    stream: Sequence[tuple[Sequence[Event], frozenset[str]]],
) -> Iterator[str]:
    if isinstance(one, Received) and one.position <= at:
        yield f"each once, in order: {one.position} behind {at}"
        return
    for group, held in stream:
        last = group[-1].id
        if not at < last <= one.position:
            continue
        least, most = (_ids(wanted, group, holders) for holders in (held, None))
        if isinstance(one, Received) and last == one.position:
            if not set(least) <= set(one.entries) <= set(most):
                yield f"whole changes: {one.entries} of {least} at {last}"
        elif least:
            yield f"nothing is missing: {last} is behind {at}, and the next is {one.position}"
    if isinstance(one, Received) and all(group[-1].id != one.position for group, _ in stream):
        yield f"only what was recorded: {one.position}"


def _ids(wanted: Wanted, group: Sequence[Event], holders: frozenset[str] | None) -> tuple[EventId, ...]:
    return tuple(event.id for event in group if wanted.wants(NamedEntry(event), holders))
