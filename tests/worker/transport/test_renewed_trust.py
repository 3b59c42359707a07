"""Connections whose certificates were verified by signers that are others now: closed one after the other."""

from typing import Any

import pytest

from worker.transport.renewed_trust import CLOSED_WITHIN_S, SPREAD_S, RenewedTrust


class Session:
    def __init__(self, *, established: bool, has_certificate: bool) -> None:
        self.established = established
        self.has_certificate = has_certificate


class FakeConnection:
    def __init__(self, tls: Session | None, *, busy: bool = False) -> None:
        self.tls = tls
        self.busy = busy
        self.closed = False

    def close(self, reason: str, end: str) -> None:
        assert not self.closed
        self.closed = True


def verified(**more: bool) -> FakeConnection:
    return FakeConnection(Session(established=True, has_certificate=True), **more)


class Watched:
    """Connections of a worker, which are swept each half second."""

    def __init__(self, *connections: FakeConnection) -> None:
        self.connections = connections
        self.now = 1000.0
        self.came_back: list[FakeConnection] = []
        given: Any = lambda: self.connections  # noqa: E731
        noted: Any = self.came_back.append
        self.trust = RenewedTrust(given, noted, lambda: self.now)

    def pass_s(self, seconds: float) -> None:
        for _ in range(int(seconds * 2)):
            self.now += 0.5
            self.trust.sweep()

    @property
    def open(self) -> int:
        return sum(not connection.closed for connection in self.connections)


def test_they_are_closed_one_after_the_other() -> None:
    watched = Watched(*(verified() for _ in range(100)))
    watched.trust.begin()
    watched.trust.sweep()
    assert watched.open == 100
    for passed in range(1, 6):
        watched.pass_s(SPREAD_S / 5)
        assert watched.open == pytest.approx(100 - 20 * passed, abs=3)
    assert watched.open == 0
    assert watched.came_back == list(watched.connections)


def test_those_that_rely_on_no_certificate_stay() -> None:
    plain, anonymous = FakeConnection(None), FakeConnection(Session(established=True, has_certificate=False))
    shaking_hands = FakeConnection(Session(established=False, has_certificate=False))
    watched = Watched(plain, anonymous, shaking_hands)
    watched.trust.begin()
    watched.pass_s(CLOSED_WITHIN_S)
    assert (plain.closed, anonymous.closed, shaking_hands.closed) == (False, False, True)


def test_one_that_waits_for_replies_is_closed_when_it_has_them_and_in_time_in_any_case() -> None:
    soon, never = verified(busy=True), verified(busy=True)
    watched = Watched(soon, never)
    watched.trust.begin()
    watched.pass_s(SPREAD_S)
    assert watched.open == 2
    soon.busy = False
    watched.pass_s(0.5)
    assert (soon.closed, never.closed) == (True, False)
    watched.pass_s(CLOSED_WITHIN_S - SPREAD_S - 0.5)
    assert never.closed


def test_one_that_has_ended_by_itself_is_left_alone() -> None:
    connection = verified()
    watched = Watched(connection)
    watched.trust.begin()
    connection.closed = True
    watched.pass_s(CLOSED_WITHIN_S)
    assert watched.came_back == []


def test_another_change_soon_after_puts_none_off_and_closes_what_came_between() -> None:
    old, busy, new = verified(), verified(busy=True), verified()
    watched = Watched(old, busy)
    watched.trust.begin()
    watched.pass_s(SPREAD_S - 2)
    assert not busy.closed
    watched.connections += (new,)
    watched.trust.begin()
    watched.pass_s(CLOSED_WITHIN_S - SPREAD_S + 2)
    assert (old.closed, busy.closed, new.closed) == (True, True, False)
    watched.pass_s(CLOSED_WITHIN_S)
    assert new.closed
