"""Workers of one gunicorn balance their connections, and do not wait for one that does not accept."""

import multiprocessing as mp
import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from testbed.eventually import eventually
from testbed.run_queue import waited_s
from tests.worker.transport.client import Client, Server, serving
from worker.transport.accept import GAP_S
from worker.transport.connection_balance import MARGIN, PLACES, ConnectionBalance, ConnectionCounts

FORK = mp.get_context("fork")
TRIES = 20


@contextmanager
def worker(counts: ConnectionCounts, connections: int, *, last: bool = False) -> Iterator[Any]:
    """A process that has a place among the counts, until the block ends or it is killed."""
    here, there = FORK.Pipe()

    def run() -> None:
        balance = ConnectionBalance(counts)
        balance.begin()
        balance.count(connections)
        if last:
            balance.defer_to_others()
        there.send("began")
        there.recv()

    process = FORK.Process(target=run)
    process.start()
    assert here.recv() == "began"
    try:
        yield process
    finally:
        process.kill()
        process.join()


@pytest.fixture
def counts() -> ConnectionCounts:
    return ConnectionCounts()


def balance_of(counts: ConnectionCounts, connections: int) -> ConnectionBalance:
    balance = ConnectionBalance(counts)
    balance.begin()
    balance.count(connections)
    return balance


@pytest.mark.parametrize(
    ("mine", "others", "exceeded"),
    [
        pytest.param(10, [], False, id="alone"),
        pytest.param(10, [10], False, id="equal"),
        pytest.param(10, [10 - MARGIN], False, id="a little more"),
        pytest.param(11, [10 - MARGIN], True, id="clearly more"),
        pytest.param(10, [30, 0], True, id="than one of them"),
        pytest.param(10, [30, 40], False, id="the least"),
    ],
)
def test_a_balance_is_exceeded_by_clearly_more_than_another_worker_has(
    counts: ConnectionCounts, mine: int, others: list[int], exceeded: bool
) -> None:
    if not others:
        assert balance_of(counts, mine).exceeded is exceeded
        return
    with worker(counts, others[0]), worker(counts, others[-1]):
        assert balance_of(counts, mine).exceeded is exceeded


def test_a_dead_worker_counts_as_nothing_and_its_place_is_free(counts: ConnectionCounts) -> None:
    with worker(counts, 0) as process:
        balance = balance_of(counts, 10)
        assert balance.exceeded
        process.kill()
        process.join()
        assert not balance.exceeded
        assert not any(counts.numbers.tolist()[:1])
    with worker(counts, 5):
        assert counts.numbers[0] == 6


def test_a_worker_that_ends_is_deferred_to_by_none_and_defers_to_all(counts: ConnectionCounts) -> None:
    with worker(counts, 0, last=True):
        balance = balance_of(counts, 10)
        assert not balance.exceeded
        balance.defer_to_others()
        assert not balance.exceeded  # both end: each takes what comes
    balance.count(3)
    assert not balance.exceeded
    with worker(counts, 1000):
        assert balance.exceeded


def test_a_worker_that_has_ended_frees_its_place(counts: ConnectionCounts) -> None:
    balance = balance_of(counts, 7)
    assert counts.numbers[0] == 8
    balance.end()
    balance.count(6)  # connections of its end
    assert not any(counts.numbers)
    with worker(counts, 0):
        assert counts.numbers[0] == 1
        assert not balance.exceeded


def test_more_workers_than_places_take_what_comes(counts: ConnectionCounts) -> None:
    def taken() -> None:
        for place in range(PLACES):
            assert counts.acquire(place)
        there.send("began")
        there.recv()

    here, there = FORK.Pipe()
    process = FORK.Process(target=taken)
    process.start()
    try:
        assert here.recv() == "began"
        assert not balance_of(counts, 1000).exceeded
    finally:
        process.kill()
        process.join()


def workers_of(server: Server, count: int) -> list[int]:
    """Their pids, once all accept."""
    eventually(lambda: server.log.count("accepting connections") == count)
    pid = server.process.pid
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def spread(clients: list[Client]) -> Counter[int]:
    """Worker -> how many of these connections it has."""
    return Counter(client.about()["pid"] for client in clients)


def close(clients: list[Client]) -> None:
    for client in clients:
        client.sock.close()


def assert_even(workers: list[int], connections_of_each: Callable[[], Counter[int]]) -> None:
    """Try until no worker has less than three quarters of its part; only one that waited for a core is excused."""
    for _ in range(TRIES):
        waited = waited_s(*workers)
        of_each = connections_of_each()
        if min(of_each[pid] for pid in workers) >= 0.75 * of_each.total() / len(workers):
            return
        assert waited_s(*workers) - waited > GAP_S, of_each
    pytest.fail(f"no worker had a core for long enough in {TRIES} tries")


@pytest.mark.parametrize("count", [2, 3])
def test_each_worker_gets_its_part(tmp_path: Path, count: int) -> None:
    """A worker without a core is not waited for: what came while one had none says nothing."""
    with serving(tmp_path, workers=count) as server:
        workers = workers_of(server, count)

        def connections_of_each(accepted_first: bool) -> Counter[int]:
            clients: list[Client] = []
            for _ in range(200):
                clients.append(server.connect())
                if accepted_first:
                    clients[-1].about()
            of_each = spread(clients)
            close(clients)
            return of_each

        for accepted_first in (False, True):
            assert_even(workers, partial(connections_of_each, accepted_first))


@pytest.mark.parametrize("count", [2, 3])
def test_workers_with_fewer_connections_get_the_next(tmp_path: Path, count: int) -> None:
    """One accepts alone for a while; then the others have as many, as far as the machine gives them a core."""
    with serving(tmp_path, workers=count) as server:
        workers = workers_of(server, count)

        def connections_of_each() -> Counter[int]:
            for pid in workers[1:]:
                os.kill(pid, signal.SIGSTOP)
            clients = [server.connect() for _ in range(200 // count)]
            assert spread(clients) == {workers[0]: 200 // count}
            for pid in workers[1:]:
                os.kill(pid, signal.SIGCONT)
            for _ in range(200 - 200 // count):
                clients.append(server.connect())
                clients[-1].about()
            of_each = spread(clients)
            close(clients)
            return of_each

        assert_even(workers, connections_of_each)


def test_no_peer_waits_for_a_worker_that_hangs(tmp_path: Path) -> None:
    with serving(tmp_path, workers=2) as server:
        workers = workers_of(server, 2)
        clients = [server.connect() for _ in range(40)]
        of = {client: client.about()["pid"] for client in clients}
        hangs, works = sorted(workers, key=lambda pid: sum(one == pid for one in of.values()))
        close([client for client in clients if of[client] == hangs])
        os.kill(hangs, signal.SIGSTOP)
        try:
            for _ in range(20):
                with server.connect() as client:
                    assert client.about()["pid"] == works
            crowd = [server.connect() for _ in range(200)]
            assert spread(crowd) == {works: 200}
            close(crowd)
        finally:
            os.kill(hangs, signal.SIGCONT)


def test_the_successor_of_a_killed_worker_catches_up(tmp_path: Path) -> None:
    with serving(tmp_path, workers=2) as server:
        killed, stays = workers_of(server, 2)
        before = [server.connect() for _ in range(100)]
        survivor_count = spread(before)[stays]
        os.kill(killed, signal.SIGKILL)
        eventually(lambda: server.log.count("accepting connections") == 3)
        after = [server.connect() for _ in range(survivor_count)]
        assert spread(after)[stays] <= 0.25 * survivor_count, spread(after)
        close(before + after)


def test_a_worker_that_ends_is_left_no_connections(tmp_path: Path) -> None:
    with serving(tmp_path, workers=2) as server:
        ends, _ = workers_of(server, 2)
        clients = [server.connect() for _ in range(60)]
        close([client for client in clients if client.about()["pid"] == ends])
        os.kill(ends, signal.SIGTERM)
        eventually(lambda: "draining" in server.log)
        crowd = [server.connect() for _ in range(20)]
        by_worker = spread(crowd)
        assert by_worker[ends] <= 5, by_worker
        close(crowd)
