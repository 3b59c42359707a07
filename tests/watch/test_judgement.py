"""The judge itself: what it lets pass, and what it complains of."""

import pytest

from registry.events.entry import Event, EventId
from registry.events.watched import Wanted
from tests.watch.judgement import Opened, Received, complaints

E = EventId


def event(ms: int, number: int = 0, **fields: str) -> Event:
    return Event(E(ms, number), {"kind": "kv_changed", "kv_ns": "n", "key": "k", **fields})


STREAM = [
    (event(1),),
    (
        event(2, 0, kind="broker_registered", broker="b", cause="first"),
        event(2, 1, kind="drain_changed", broker="b"),
    ),
    (event(3),),
]
ALL, OF_B = Wanted(), Wanted(broker="b")
FIRST, SECOND, THIRD = Received(E(1), (E(1),)), Received(E(2, 1), (E(2), E(2, 1))), Received(E(3), (E(3),))
LATER = [
    (event(1, kind="topics_changed", rows='[["b","","8,8,6,0",["T"]]]'),),
    (event(2, kind="broker_removed", broker="b"),),
    (event(3, kind="broker_removed", broker="c"),),
]


def test_a_watcher_of_a_topic_lacks_no_change_of_a_broker_that_held_it() -> None:
    at_once: list[Opened | Received] = [Opened(E(0)), Received(E(1), (E(1),))]
    removed, other = Received(E(2), (E(2),)), Received(E(3), (E(3),))
    topic = Wanted(topic="T")
    assert list(complaints(topic, [*at_once, removed, Opened(E(3))], LATER)) == []
    assert list(complaints(topic, [*at_once, removed, other], LATER)) == []
    (complaint,) = complaints(topic, [*at_once, Opened(E(3))], LATER)
    assert complaint.startswith("nothing is missing")


GOOD: dict[str, tuple[Wanted, list[Opened | Received]]] = {
    "all": (ALL, [Opened(E(0)), FIRST, SECOND, THIRD]),
    "from a position on": (ALL, [Opened(E(1)), SECOND, THIRD]),
    "positions between": (ALL, [Opened(E(1)), Opened(E(1)), SECOND, Opened(E(2, 1)), THIRD, Opened(E(3))]),
    "what is wanted": (OF_B, [Opened(E(0)), SECOND, Opened(E(3))]),
    "a reset, and less": (ALL, [Opened(E(0)), FIRST, Received(E(2, 1), (), "hole"), THIRD]),
    "of a topic perhaps more": (Wanted(topic="T"), [Opened(E(0)), SECOND]),
}
BAD: dict[str, tuple[Wanted, list[Opened | Received], str]] = {
    "one is missing": (ALL, [Opened(E(0)), FIRST, THIRD], "nothing is missing"),
    "one is missing before a position": (ALL, [Opened(E(0)), FIRST, Opened(E(3))], "nothing is missing"),
    "twice": (ALL, [Opened(E(0)), FIRST, FIRST], "each once, in order"),
    "not in order": (ALL, [Opened(E(0)), FIRST, SECOND, FIRST], "each once, in order"),
    "a part of a change": (ALL, [Opened(E(1)), SECOND._replace(entries=(E(2),))], "whole changes"),
    "more than is wanted": (OF_B, [Opened(E(0)), Received(E(1), (E(1),))], "whole changes"),
    "never recorded": (ALL, [Opened(E(1)), SECOND, Received(E(2, 5), (E(2, 5),))], "only what was recorded"),
}


@pytest.mark.parametrize("name", GOOD)
def test_as_promised(name: str) -> None:
    wanted, seen = GOOD[name]
    assert list(complaints(wanted, seen, STREAM)) == []


@pytest.mark.parametrize("name", BAD)
def test_not_as_promised(name: str) -> None:
    wanted, seen, rule = BAD[name]
    assert {text.partition(":")[0] for text in complaints(wanted, seen, STREAM)} == {rule}
