"""Races over the wire, against a server with two workers: lookups of connections, and events."""

import os
import time
from collections import Counter
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from mqnamesrv.store import EmbeddedStore
from registry.events.entry import Event
from registry.store.connect import connect
from testbed.broker import Broker
from testbed.connection import Connection
from testbed.eventually import eventually
from testbed.nameserver import NameServer
from tests.races.clean_up import clean_up_ends
from tests.races.clients import Report, Step, race
from tests.races.history import Group, groups, states
from tests.races.judgement import judged
from tests.races.operations import LARGE, SMALL
from tests.races.wire import (
    Line,
    administers,
    kills_workers,
    looks,
    looks_over,
    registers,
    registers_and_disconnects,
    route_over,
    unregisters,
)
from tests.registry.check_tables import check_tables
from tests.registry.stored import assert_replays, entries

MINUTES = float(os.environ.get("RACES_MINUTES", "0"))
SHOWN = (SMALL[0], SMALL[1], LARGE[-1])  # of the routes
B1 = Broker("b1", addr="127.41.0.1:10911")
B1_ELSEWHERE = Broker("b1", addr="127.41.0.2:10911")
B2 = Broker("b2", addr="127.41.0.3:10911")
B3 = Broker("b3", addr="127.41.0.4:10911")

Clients = Callable[[NameServer], tuple[dict[str, Step], dict[str, Step]]]


def small_tables(server: NameServer) -> tuple[dict[str, Step], dict[str, Step]]:
    """Return the clients with all steps, and the clients that go on until these are done."""
    return (
        {
            "w1": registers(Line(server), B1, SMALL, shown=SHOWN),
            "w2": registers(Line(server), B2, SMALL, shown=SHOWN),
            "w3": registers_and_disconnects(server, B3, SMALL[:2]),
        },
        {
            "w4": unregisters(Line(server), B1, shown=SHOWN),
            "w5": administers(Line(server), B2, SMALL[1]),
            "reader": looks(server, SHOWN),
        },
    )


def slices_and_takeovers(server: NameServer) -> tuple[dict[str, Step], dict[str, Step]]:
    return (
        {
            "w1": registers(Line(server), B1, LARGE, shown=SHOWN),
            "w2": registers(Line(server), B1_ELSEWHERE, LARGE, shown=SHOWN),
        },
        {
            "w3": unregisters(Line(server), B1, shown=SHOWN),
            "w4": unregisters(Line(server), B1_ELSEWHERE, shown=SHOWN),
            "w5": administers(Line(server), B1, SMALL[1]),
            "reader": looks(server, SHOWN),
        },
    )


def killed_workers(server: NameServer) -> tuple[dict[str, Step], dict[str, Step]]:
    def line() -> Line:
        return Line(server, lossy=True)

    return (
        {
            "w1": registers(line(), B1, LARGE, shown=SHOWN),
            "w2": registers(line(), B1_ELSEWHERE, LARGE, shown=SHOWN),
            "w3": kills_workers(server),
        },
        {
            "w4": unregisters(line(), B1, shown=SHOWN),
            "w5": unregisters(line(), B1_ELSEWHERE, shown=SHOWN),
            "w6": registers(line(), B1, SMALL, shown=SHOWN),
            "reader": looks_over(line(), SHOWN),
        },
    )


@pytest.mark.timeout(240 + 60 * MINUTES)
@pytest.mark.parametrize(
    ("clients", "rounds"),
    [
        pytest.param(small_tables, 40, id="small"),
        pytest.param(slices_and_takeovers, 8, id="large"),
        pytest.param(killed_workers, 6, id="killed"),
    ],
)
def test_races_over_the_wire(store: EmbeddedStore, tmp_path: Path, clients: Clients, rounds: int) -> None:
    options = {"remotingWorkers": str(NameServer.workers)}
    server = NameServer(tmp_path, options, url=store.url, namespace="wire")
    server.start()
    try:
        races, reports = _races(store.url, server, clients, rounds)
        with connect(store.url) as client:
            over = [Connection(server.port) for _ in range(2 * server.workers)]
            eventually(lambda: _same_routes(over, entries(client, server.keys)))
            history = groups(entries(client, server.keys))
    finally:
        server.stop()
    assert ("SIGKILL" in server.said()) == (clients is killed_workers)
    sequences = [sequence for report in reports for sequence in report.answered]
    assert judged(history, [], sequences) == []
    recorded = _recorded_versions(history)
    sent = Counter((one.actor, str(one.version)) for report in reports for one in report.sent)
    assert sent  # the system may give a port, and so an actor, to the connection of a later race again
    assert {key: recorded[key] for key in sent} == sent
    with connect(store.url) as client:
        clean_up_ends(client, server.keys)
        check_tables(client, server.keys)
        assert_replays(client, server.keys)
    lookups = sum(len(sequence) for sequence in sequences)
    print(f"\n{clients.__name__}, {store.name}: {races} races of {rounds} rounds, {lookups} lookups")


def _same_routes(over: list[Connection], stream: list[Event]) -> bool:
    """Assert that each connection is answered what a stream leads to.

    The stream is read for each look: what the last connections of a race leave is written after they have ended."""
    *_, last = states(groups(stream))
    expected = {topic: last.route(topic) for topic in SHOWN}
    for one in over:
        assert {topic: route_over(one, topic) for topic in SHOWN} == expected
    return True


def _races(url: str, server: NameServer, clients: Clients, rounds: int) -> tuple[int, list[Report]]:
    """Run one race, with RACES_MINUTES more; return their number and reports."""
    end = time.monotonic() + 60 * MINUTES / 6
    reports: list[Report] = []
    for seed in count(1):
        reports += race(url, server.keys, *clients(server), rounds, seed).values()
        if time.monotonic() > end:
            return seed, reports
    raise AssertionError("unreachable")


def _recorded_versions(history: list[Group]) -> Counter[tuple[str, str]]:
    """Return how often the stream has a version of a member, by actor and counter."""
    return Counter(
        (event.get("actor"), event.get("dv").rpartition(":")[2])
        for group in history
        for event in group.events
        if "dv_before" in event.fields or (event.kind == "broker_registered" and "dv" in event.fields)
    )
