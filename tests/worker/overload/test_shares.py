"""How many requests of one peer are admitted beside those of others."""

from collections.abc import Set as AbstractSet

import pytest
from msgspec import Struct

from worker.overload.known_hosts import KnownHosts
from worker.overload.shares import CALM, FEW, SHARED_FROM, Shares
from worker.peer import NONE_REGISTERED

CAPACITY = 10_000
BROKER = frozenset({"c1:10.0.0.1:10911"})


class Connected(Struct):
    id: str
    host: str
    registered: AbstractSet[str] = NONE_REGISTERED


def take_all(shares: Shares, peer: Connected, most: int = CAPACITY) -> int:
    """Take until a share is exceeded, `most` or the capacity reached; return how many."""
    for taken in range(most):
        full = shares.total >= shares.capacity
        if full or (shares.total >= shares.calm and shares.exceeded(peer)):  # type: ignore[arg-type]
            return taken
        shares.take(peer)  # type: ignore[arg-type]
    return most


def test_one_connection_has_its_part_and_leaves_a_host_and_others_theirs() -> None:
    shares = Shares(KnownHosts(), CAPACITY)
    one = take_all(shares, Connected("1", "a", BROKER))
    same_host = take_all(shares, Connected("2", "a", BROKER))
    other = take_all(shares, Connected("3", "b", BROKER))
    assert CAPACITY / 8 < one < CAPACITY / 5
    assert one > same_host > one / 2
    assert other > CAPACITY / 10


@pytest.mark.parametrize("hosts", [1, 2, 9])
def test_each_of_some_hosts_has_an_even_share_and_so_much_is_left(hosts: int) -> None:
    shares = Shares(KnownHosts(), CAPACITY)
    while True:  # each of 200 connections of each host in turn, until none gets on
        got = [
            take_all(shares, Connected(f"{host}-{number}", str(host), BROKER), 1)
            for host in range(hosts)
            for number in range(200)
        ]
        if not any(got):
            break
    left = CAPACITY - shares.total
    assert left >= CAPACITY / (hosts + 1) - CALM
    assert take_all(shares, Connected("new", "new", BROKER)) >= left / 8


def test_hosts_without_a_broker_leave_a_quarter_to_those_with_one() -> None:
    known = KnownHosts()
    shares = Shares(known, CAPACITY)
    for number in range(1000):
        take_all(shares, Connected(str(number), f"host-{number}"), FEW)
    assert shares.total == CAPACITY * 3 / 4
    assert take_all(shares, Connected("x", "new")) == 0
    known.add(Connected("b", "host-of-broker"))  # type: ignore[arg-type]
    assert take_all(shares, Connected("b2", "host-of-broker")) > CAPACITY / 32


def test_what_is_answered_no_longer_counts() -> None:
    shares = Shares(KnownHosts(), CAPACITY)
    peer = Connected("1", "a", BROKER)
    before = take_all(shares, peer)
    for _ in range(before):
        shares.give_back(peer)  # type: ignore[arg-type]
    assert shares.total == 0
    assert take_all(shares, peer) == before


@pytest.mark.parametrize("capacity", [SHARED_FROM, 200, 256, 1000, CAPACITY])
def test_a_peer_with_some_connections_leaves_room_to_brokers_whatever_the_capacity(capacity: int) -> None:
    shares = Shares(KnownHosts(), capacity)
    for number in range(4):
        take_all(shares, Connected(f"over-{number}", "of-brokers", BROKER))
    assert shares.total < capacity * 3 / 4
    same_host = [take_all(shares, Connected(f"b{n}", "of-brokers", BROKER), 1) for n in range(4)]
    other_host = [take_all(shares, Connected(f"c{n}", "of-others", BROKER), 1) for n in range(capacity // 5)]
    assert all(same_host)
    assert all(other_host)


@pytest.mark.parametrize("capacity", [SHARED_FROM, 200, 256, 1000])
def test_a_quarter_of_a_small_capacity_is_for_hosts_with_a_broker_too(capacity: int) -> None:
    known = KnownHosts()
    shares = Shares(known, capacity)
    for number in range(1000):
        take_all(shares, Connected(str(number), f"host-{number}"))
    assert shares.total == capacity * 3 / 4
    known.add(Connected("b", "host-of-broker"))  # type: ignore[arg-type]
    assert take_all(shares, Connected("b2", "host-of-broker")) >= capacity / 32


@pytest.mark.parametrize("capacity", [SHARED_FROM - 1, 1, 0, -1])
def test_the_smallest_capacities_are_not_shared(capacity: int) -> None:
    assert take_all(Shares(KnownHosts(), capacity), Connected("1", "a")) == max(capacity, 1)
