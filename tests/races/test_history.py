"""The judge of the races, on a history of three operations: what it lets pass, and what it does not."""

import pytest
import redis as redis_py

from registry.keys import Keys
from tests.races.history import BEGIN, Claim, Group, Position, Route, broken, groups
from tests.races.judgement import judged
from tests.races.operations import Answered, Claimed, Leaving, Note, Seen
from tests.registry.brokers import address
from tests.registry.namespace import Namespace
from tests.registry.stored import entries

TEXTS = ("1,8,6,0", "2,8,6,0")
HERE = address("b1")
ROUTES: tuple[Route, ...] = ({}, *({"b1": ({0: HERE}, text)} for text in TEXTS), {})


@pytest.fixture
def history(redis: redis_py.Redis) -> list[Group]:
    """Two registrations and a removal."""
    ns = Namespace(redis, Keys())
    for version, text in enumerate(TEXTS, 1):
        ns.register("b1", topics={"T1": text, "T2": text}, version=version)
    ns.unregister("b1")
    return groups(entries(redis, ns.keys))


def at(history: list[Group], number: int) -> Position:
    """Return the end of the stream after so many operations."""
    return history[number - 1].at if number else BEGIN


def read(history: list[Group], number: int, lo: int, hi: int) -> Answered:
    """Return a lookup of the route after `number` operations, read between two others."""
    return Answered("T1", ROUTES[number], at(history, lo), at(history, hi))


@pytest.mark.parametrize("number", range(4))
def test_each_state_was_seen_at_its_own_time_only(history: list[Group], number: int) -> None:
    assert broken(history, [[read(history, number, number, number)]]) == []
    for other in {0, 1, 2, 3} - {number} - ({0, 3} if number in (0, 3) else set()):
        assert len(broken(history, [[read(history, number, other, other)]])) == 1


def test_reads_of_one_connection_do_not_go_back(history: list[Group]) -> None:
    old, new = read(history, 1, 0, 3), read(history, 2, 0, 3)
    assert broken(history, [[old, old, new, new]]) == []
    assert len(broken(history, [[new, old]])) == 1
    assert broken(history, [[new], [old]]) == []
    assert len(broken(history, [[read(history, 0, 0, 3), read(history, 1, 2, 3)]])) == 1


def test_a_route_of_two_rounds_was_never_there(history: list[Group]) -> None:
    seen = Seen(at(history, 2), 0, 0, {"T1": ROUTES[1], "T2": ROUTES[2]}, {"b1": {0: HERE}})
    claims: list[Claim] = [seen]
    assert len(broken(history, [claims])) == 1


def test_the_stream_never_ends_within_a_group(history: list[Group]) -> None:
    inside = history[0].events[0].id
    assert broken(history, [[Answered("T1", {}, inside, inside)]])


@pytest.mark.parametrize(
    ("op", "in_stream", "complaints"),
    [
        pytest.param("", True, [], id="as it was"),
        pytest.param("x", True, ["not in the history"], id="of another"),
        pytest.param("", False, ["acknowledged an entry that is not its last"], id="without its entry"),
    ],
)
def test_an_operation_is_in_the_stream_as_it_was_acknowledged(
    history: list[Group], op: str, in_stream: bool, complaints: list[str]
) -> None:
    event = history[1].events[-1]
    true = Leaving("b2", HERE)
    note = Note(
        op or event.get("op"),
        true,
        at(history, 1),
        at(history, 2),
        "done",
        str(event.id) if in_stream else "",
    )
    assert [text.partition(":")[0] for text in judged(history, [note], [])] == complaints


def test_what_was_acknowledged_must_be_so(history: list[Group]) -> None:
    gone = Note("x", Leaving("b1", HERE), BEGIN, at(history, 3), "done")
    assert broken(history, [[Claimed(gone, at(history, 3), at(history, 3))]]) == []
    assert len(broken(history, [[Claimed(gone, at(history, 1), at(history, 2))]])) == 1
