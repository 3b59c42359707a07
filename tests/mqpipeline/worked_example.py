"""The worked example of the definitions: three brokers, one hour, and what led up to it.

Seconds from `W0`; the window is [0, 3600), `as_of` 3600, the objective 99.9 %. All ids are 0, in cluster c1, and
history is complete since -900."""

from typing import Any

from tests.mqpipeline.stream import Stream, at, registered, removed, started, topics

AS_OF = at(3600)
SLO = 0.999
ALICE = "token:alice"
FOUR, EIGHT, READ_ONLY, TWELVE, SIX = "4,4,6,0", "8,8,6,0", "8,8,4,0", "12,12,6,0", "6,6,6,0"


def _first(broker: str, epoch: int, *rows: tuple[str, str]) -> tuple[Any, ...]:
    """A new broker and its topics: one group."""
    listed = [(broker, "", data, [topic]) for topic, data in rows]
    return registered("first", broker, epoch), topics("register", *listed, epoch=epoch)


def stream() -> Stream:
    """Its entries, in order."""
    t1 = "T1"
    return (
        Stream(-900)
        .add(-900, started(), *_first("a", 1, (t1, FOUR)))
        .add(-900, *_first("b", 2, (t1, EIGHT)))
        .add(600, removed("lost", "a", 1, since=-900, closed=599.8, last_seen=585, topics=1))
        .add(660, *_first("a", 3, (t1, FOUR)))
        .add(1200, removed("unregistered", "b", 2, since=-900, last_seen=1190, topics=1))
        .add(1500, *_first("b", 4, (t1, EIGHT)))
        .add(1800, *_first("c", 5, (t1, TWELVE), ("T2", SIX)))
        .add(1923.4, removed("expired", "a", 3, since=660, last_seen=1800, effective=1920, topics=1))
        .add(2400, *_first("a", 6, (t1, FOUR)))
        .add(2700, topics("wipe", ("b", EIGHT, READ_ONLY, [t1]), epoch=4), actor=ALICE)
        .add(3000, topics("restore", ("b", READ_ONLY, EIGHT, [t1]), epoch=4), actor=ALICE)
        .add(3301.2, removed("expired", "c", 5, since=1800, last_seen=3180, effective=3300, topics=2))
    )


RAW: list[tuple[str, dict[str, str]]] = [(entry.id, entry.fields) for entry in stream().entries]
"""As the stream has them: id and fields."""

ROWS: list[dict[str, Any]] = stream().rows()
"""As the landing has them: rows of EVENTS, in namespace `ns`."""
