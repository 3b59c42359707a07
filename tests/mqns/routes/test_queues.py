"""Queues, counted instead of listed."""

import pytest

from mqns.routes.queues import MessageQueue, QueueRun, Queues

QUEUES = Queues("T", [QueueRun("a", 2), QueueRun("none", 0), QueueRun("less", -3), QueueRun("b", 3)])
LISTED = [MessageQueue("T", name, number) for name, count in [("a", 2), ("b", 3)] for number in range(count)]


def test_they_are_a_sequence() -> None:
    assert list(QUEUES) == LISTED
    assert len(QUEUES) == 5
    assert [QUEUES[i] for i in range(-5, 5)] == LISTED * 2
    assert QUEUES[1:4] == LISTED[1:4]
    assert QUEUES[::-2] == LISTED[::-2]
    assert MessageQueue("T", "b", 2) in QUEUES
    assert MessageQueue("T", "b", 3) not in QUEUES
    for index in (5, -6):
        with pytest.raises(IndexError):
            QUEUES[index]


def test_none_at_all() -> None:
    assert list(Queues("T")) == []
    assert not Queues("T")


def test_equal_queues_are_equal() -> None:
    assert Queues("T", [QueueRun("a", 2), QueueRun("b", 3)]) == QUEUES
    assert hash(Queues("T", [QueueRun("a", 2), QueueRun("b", 3)])) == hash(QUEUES)
    assert Queues("U", [QueueRun("a", 2), QueueRun("b", 3)]) != QUEUES
    assert Queues("T", [QueueRun("a", 3), QueueRun("b", 2)]) != QUEUES


def test_a_number_that_no_broker_has_costs_nothing() -> None:
    many = Queues("T", [QueueRun("a", 2**31 - 1), QueueRun("b", 2**31 - 1)])
    assert len(many) == 2**32 - 2
    assert many[2**31 - 1] == MessageQueue("T", "b", 0)
