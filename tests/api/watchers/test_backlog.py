"""The newest messages: which number follows a position, and what is dropped."""

from api.watchers.backlog import MOST_MESSAGES, Backlog
from api.watchers.messages import LEAST_BYTES, Message, change, reset
from registry.events.entry import Event, EventId


def at(ms: int) -> Message:
    return change([Event(EventId(ms), {"kind": "kv_changed"})])


def test_what_follows_a_position_has_a_number() -> None:
    backlog = Backlog(EventId(5))
    assert backlog.number_behind(EventId(5)) == backlog.end == 0
    for ms in (7, 9):
        backlog.append(at(ms))
    assert [backlog.number_behind(EventId(ms)) for ms in (5, 7, 9)] == [0, 1, 2]
    assert backlog.number_behind(EventId(8)) is None
    assert (backlog.end, backlog.position) == (2, EventId(9))
    assert backlog.message(1).position == EventId(9)


def test_older_messages_can_be_put_before() -> None:
    backlog = Backlog(EventId(5))
    backlog.append(at(7))
    assert backlog.prepend(at(5), EventId(3))
    assert backlog.first == -1
    assert backlog.message(-1).position == EventId(5)
    assert [backlog.number_behind(EventId(ms)) for ms in (3, 5, 7)] == [-1, 0, 1]


def test_a_reader_before_a_reset_gets_it_and_so_does_one_that_may_be_there() -> None:
    backlog = Backlog(EventId(5))
    backlog.append(at(7))
    backlog.append(reset(EventId(7), "hole"))
    backlog.append(at(9))
    assert backlog.number_behind(EventId(7)) == 1
    assert backlog.number_behind(EventId(9)) == 3


def test_behind_a_reset_to_another_position_one_goes_on_there() -> None:
    backlog = Backlog(EventId(9))
    backlog.append(reset(EventId(6), "rollback"))
    assert backlog.number_behind(EventId(9)) == 0
    assert backlog.number_behind(EventId(6)) == 1
    assert backlog.position == EventId(6)


def test_the_oldest_go_when_there_is_no_room() -> None:
    size = at(1).bytes
    backlog = Backlog(EventId(0), most_bytes=3 * size)
    for ms in range(1, 6):
        backlog.append(at(ms))
    assert (backlog.first, backlog.end) == (2, 5)
    assert [backlog.number_behind(EventId(ms)) for ms in range(6)] == [None, None, 2, 3, 4, 5]


def test_one_message_may_be_longer_than_all_may_be() -> None:
    backlog = Backlog(EventId(0), most_bytes=1)
    backlog.append(at(1))
    backlog.append(at(2))
    assert (backlog.first, backlog.end) == (1, 2)
    assert not backlog.prepend(at(1), EventId(0))


def test_their_number_is_bounded_too() -> None:
    backlog = Backlog(EventId(0), most_bytes=LEAST_BYTES * MOST_MESSAGES * 9)
    for ms in range(1, MOST_MESSAGES + 100):
        backlog.append(at(ms))
    assert backlog.end - backlog.first == MOST_MESSAGES


def test_a_dropped_reset_leaves_its_position_unknown() -> None:
    size = at(1).bytes
    backlog = Backlog(EventId(5), most_bytes=2 * size)
    backlog.append(reset(EventId(5), "hole"))
    backlog.append(at(6))
    backlog.append(at(7))
    assert backlog.first == 1
    assert backlog.number_behind(EventId(5)) is None
