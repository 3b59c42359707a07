"""Connections that wait: until when, and which of them make room for others."""

import selectors
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from api.transport.connection import Connection
from api.transport.limits import Phase, limits_of
from api.transport.waiting import Waiting
from registry.options.catalogue import Options

SECONDS = {Phase.IDLE: 60.0, Phase.CLOSING: 2.0, Phase.HEAD: 10.0, Phase.BODY: 30.0, Phase.ANSWER: 20.0}
CFG: Any = None


@pytest.fixture
def new() -> Iterator[Callable[[], Connection]]:
    ends: list[socket.socket] = []

    def connection() -> Connection:
        ours, theirs = socket.socketpair()
        ends.extend((ours, theirs))
        return Connection(CFG, ours, "client", "server", limits_of(Options()))

    yield connection
    for end in ends:
        end.close()


class World:
    def __init__(self) -> None:
        self.now_s = 1000.0
        self.poller = selectors.DefaultSelector()
        self.waiting = Waiting(self.poller, SECONDS, lambda: self.now_s)

    def enter(self, connection: Connection, phase: Phase) -> Connection:
        self.waiting.enter(connection, phase, lambda _: None)
        return connection


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    yield world
    world.poller.close()


def test_a_wait_is_not_prolonged(world: World, new: Callable[[], Connection]) -> None:
    one = world.enter(new(), Phase.HEAD)
    world.now_s += 9
    world.enter(one, Phase.HEAD)
    assert (world.waiting.overdue(), world.waiting.pause_s(5.0)) == ([], 1.0)
    world.now_s += 1
    assert (world.waiting.overdue(), world.waiting.pause_s(5.0)) == ([one], 0.0)


def test_each_phase_has_its_own_time(world: World, new: Callable[[], Connection]) -> None:
    one = world.enter(new(), Phase.HEAD)
    world.now_s += 9
    world.enter(one, Phase.BODY)
    world.now_s += 29
    assert world.waiting.overdue() == []
    world.waiting.leave(one)
    world.now_s += 100
    assert (world.waiting.overdue(), world.waiting.pause_s(5.0)) == ([], 5.0)
    assert not world.poller.get_map()


def test_those_that_lose_least_make_room_first(world: World, new: Callable[[], Connection]) -> None:
    order = (Phase.ANSWER, Phase.HEAD, Phase.BODY, Phase.IDLE, Phase.IDLE)
    made = [world.enter(new(), phase) for phase in order]
    left = []
    while (one := world.waiting.first()) is not None:
        left.append(made.index(one))
        world.waiting.leave(one)
    assert left == [3, 4, 1, 2, 0]


def test_a_worker_that_ends_keeps_none_long(world: World, new: Callable[[], Connection]) -> None:
    one = world.enter(new(), Phase.IDLE)
    world.waiting.shorten(Phase.IDLE, 2.0)
    world.now_s += 1
    two = world.enter(new(), Phase.IDLE)
    assert world.waiting.pause_s(5.0) == 1.0
    world.now_s += 2
    assert world.waiting.overdue() == [one, two]
