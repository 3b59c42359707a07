"""What the store has behind a position: whole groups, and a reset wherever something is missing."""

import pytest
import redis as redis_py

from api.watchers.history import COUNT, GROUP_MOST, History
from registry.drivers import run
from registry.events.entry import FIRST, EventId
from registry.keys import Keys

KEYS = Keys()
Messages = list[tuple[str, str | None, int]]


def add(redis: redis_py.Redis, event_id: str, seq: int | str, **fields: str) -> None:
    entry = {"v": "1", "kind": "conflict_seen", "inc": "1", "seq": str(seq), **fields}
    redis.xadd(KEYS.events, entry, id=event_id)  # type: ignore[arg-type]


def fill(redis: redis_py.Redis, first: int, last: int) -> None:
    for seq in range(first, last + 1):
        add(redis, f"{seq}-0", seq)


def read(redis: redis_py.Redis, after: EventId) -> Messages:
    """Return position, cause and number of entries of all that is behind an id."""
    history = History(KEYS, after)
    messages: Messages = []
    is_last = False
    while not is_last:
        found, is_last = run(history.next_messages(), redis)
        messages += [(str(one.position), one.cause, len(one.entries)) for one in found]
    return messages


def test_what_is_behind_an_entry_comes_once_and_in_order(redis: redis_py.Redis) -> None:
    fill(redis, 1, 2 * COUNT + 5)
    expected = [(f"{seq}-0", None, 1) for seq in range(4, 2 * COUNT + 6)]
    assert read(redis, EventId(3)) == expected
    assert read(redis, EventId(2 * COUNT + 5)) == []


def test_groups_stay_whole_across_reads(redis: redis_py.Redis) -> None:
    parts = COUNT + 10
    fill(redis, 1, 2)
    for part in range(parts):
        add(redis, f"3-{part}", 3 + part, part=f"{part + 1}/{parts}")
    assert read(redis, EventId(1)) == [("2-0", None, 1), (f"3-{parts - 1}", None, parts)]


def test_a_group_that_is_not_complete_waits(redis: redis_py.Redis) -> None:
    add(redis, "1-0", 1)
    add(redis, "2-0", 2, part="1/2")
    history = History(KEYS, EventId(1))
    assert run(history.next_messages(), redis) == ([], True)
    add(redis, "2-1", 3, part="2/2")
    found, _ = run(history.next_messages(), redis)
    assert [(str(one.position), len(one.entries)) for one in found] == [("2-1", 2)]


def test_a_break_before_a_group_that_is_not_complete_is_said_once(redis: redis_py.Redis) -> None:
    add(redis, "1-0", 1)
    add(redis, "2-0", 5, part="1/2")
    history = History(KEYS, EventId(1))
    assert [one.cause for one in run(history.next_messages(), redis)[0]] == ["hole"]
    add(redis, "2-1", 6, part="2/2")
    found, _ = run(history.next_messages(), redis)
    assert [(one.cause, len(one.entries)) for one in found] == [(None, 2)]


def test_a_group_without_an_end_ends_somewhere(redis: redis_py.Redis) -> None:
    add(redis, "1-0", 1)
    for seq in range(2, GROUP_MOST + 10):
        add(redis, f"{seq}-0", seq, part="1/2")
    history = History(KEYS, EventId(1))
    found: list[int] = []
    for _ in range(10):
        messages, _ = run(history.next_messages(), redis)
        found += [len(one.entries) for one in messages]
    assert found == [GROUP_MOST]


def test_the_rest_of_a_group_is_behind_an_entry_within_it(redis: redis_py.Redis) -> None:
    add(redis, "1-0", 1, part="1/2")
    add(redis, "1-1", 2, part="2/2")
    assert read(redis, EventId(1)) == [("1-1", None, 1)]


def test_a_whole_stream_is_read_from_the_beginning_without_a_reset_of_its_own(redis: redis_py.Redis) -> None:
    add(redis, "1-0", 1, kind="stream_started", cause="empty_store")
    add(redis, "2-0", 2)
    begun = [("0-0", "incarnation", 0), ("1-0", None, 1), ("2-0", None, 1)]
    assert read(redis, FIRST) == begun
    assert read(redis, EventId(0, 7)) == begun


def test_before_the_first_entry_of_a_trimmed_stream_something_is_missing(redis: redis_py.Redis) -> None:
    fill(redis, 5, 6)
    expected = [("0-0", "trimmed", 0), ("5-0", None, 1), ("6-0", None, 1)]
    assert read(redis, EventId(4)) == expected
    assert read(redis, FIRST) == expected


def test_a_position_that_the_stream_lost_is_reset(redis: redis_py.Redis) -> None:
    fill(redis, 1, 3)
    add(redis, "5-0", 4)
    assert read(redis, EventId(4)) == [("4-0", "rollback", 0), ("5-0", None, 1)]
    assert read(redis, EventId(9)) == [("5-0", "rollback", 0)]


def test_an_empty_store_has_nothing_and_resets_a_reader_that_had_something(redis: redis_py.Redis) -> None:
    assert read(redis, FIRST) == []
    assert read(redis, EventId(4)) == [("0-0", "incarnation", 0)]


@pytest.mark.parametrize(
    ("fields", "cause"),
    [
        ({"seq": "7"}, "hole"),
        ({"seq": "1"}, "rollback"),
        ({"inc": "2"}, "incarnation"),
        ({"seq": ""}, "unreadable"),
    ],
)
def test_breaks_within_what_is_read(redis: redis_py.Redis, fields: dict[str, str], cause: str) -> None:
    fill(redis, 1, 2)
    third = {"v": "1", "kind": "conflict_seen", "inc": "1", "seq": "3"} | fields
    redis.xadd(KEYS.events, third, id="3-0")  # type: ignore[arg-type]
    messages = read(redis, EventId(1))
    behind = [] if cause == "unreadable" else [("3-0", None, 1)]
    assert messages == [("2-0", None, 1), ("3-0" if cause == "unreadable" else "2-0", cause, 0), *behind]


def test_an_entry_of_a_later_release_is_sent_behind_a_reset(redis: redis_py.Redis) -> None:
    fill(redis, 1, 1)
    add(redis, "2-0", 2, kind="a_later_kind")
    assert read(redis, EventId(1)) == [("1-0", "unknown_kind", 0), ("2-0", None, 1)]


def test_a_new_stream_behind_an_old_one_says_that_it_begins(redis: redis_py.Redis) -> None:
    add(redis, "9-0", 1, kind="stream_started", inc="9", cause="empty_store")
    assert read(redis, EventId(4)) == [("0-0", "incarnation", 0), ("9-0", None, 1)]
