"""Workers of one gunicorn share their connections evenly, and wait for none that does not take its part."""

import multiprocessing as mp
import os
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.worker.transport.client import Client, Server, eventually, serving
from worker.share import MARGIN, PLACES, Board, Share

FORK = mp.get_context("fork")


@contextmanager
def worker(board: Board, connections: int, *, last: bool = False) -> Iterator[Any]:
    """A process that has a place on the board, until the block ends or it is killed."""
    here, there = FORK.Pipe()

    def run() -> None:
        share = Share(board)
        share.begin()
        share.have(connections)
        if last:
            share.be_last()
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
def board() -> Board:
    return Board()


def share_of(board: Board, connections: int) -> Share:
    share = Share(board)
    share.begin()
    share.have(connections)
    return share


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
def test_a_share_is_exceeded_by_clearly_more_than_somebody_has(
    board: Board, mine: int, others: list[int], exceeded: bool
) -> None:
    if not others:
        assert share_of(board, mine).exceeded is exceeded
        return
    with worker(board, others[0]), worker(board, others[-1]):
        assert share_of(board, mine).exceeded is exceeded


def test_who_has_died_counts_for_nothing_and_leaves_its_place(board: Board) -> None:
    with worker(board, 0) as process:
        share = share_of(board, 10)
        assert share.exceeded
        process.kill()
        process.join()
        assert not share.exceeded
        assert not any(board.numbers.tolist()[:1])
    with worker(board, 5):
        assert board.numbers[0] == 6


def test_who_ends_is_left_nothing_and_leaves_all_to_others(board: Board) -> None:
    with worker(board, 0, last=True):
        share = share_of(board, 10)
        assert not share.exceeded
        share.be_last()
        assert not share.exceeded  # both end: each takes what comes
    share.have(3)
    assert not share.exceeded
    with worker(board, 1000):
        assert share.exceeded


def test_who_has_ended_leaves_its_place(board: Board) -> None:
    share = share_of(board, 7)
    assert board.numbers[0] == 8
    share.end()
    share.have(6)  # connections of its end
    assert not any(board.numbers)
    with worker(board, 0):
        assert board.numbers[0] == 1
        assert not share.exceeded


def test_more_workers_than_places_take_what_comes(board: Board) -> None:
    def taken() -> None:
        for place in range(PLACES):
            assert board.take(place)
        there.send("began")
        there.recv()

    here, there = FORK.Pipe()
    process = FORK.Process(target=taken)
    process.start()
    try:
        assert here.recv() == "began"
        assert not share_of(board, 1000).exceeded
    finally:
        process.kill()
        process.join()


def workers_of(server: Server, count: int) -> list[int]:
    """Their pids, once all accept."""
    assert eventually(lambda: server.log.count("accepting connections") == count)
    pid = server.process.pid
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def spread(clients: list[Client]) -> Counter[int]:
    """Worker -> how many of these connections it has."""
    return Counter(client.about()["pid"] for client in clients)


def close(clients: list[Client]) -> None:
    for client in clients:
        client.sock.close()


@pytest.mark.parametrize("count", [2, 3])
def test_each_worker_gets_its_part(tmp_path: Path, count: int) -> None:
    with serving(tmp_path, workers=count) as server:
        workers = workers_of(server, count)
        burst = [server.connect() for _ in range(200)]
        assert min(spread(burst)[pid] for pid in workers) >= 0.75 * 200 / count, spread(burst)
        close(burst)
        one_by_one: list[Client] = []
        for _ in range(200):
            one_by_one.append(server.connect())
            one_by_one[-1].about()
        assert min(spread(one_by_one)[pid] for pid in workers) >= 0.75 * 200 / count, spread(one_by_one)
        close(one_by_one)


def test_nobody_waits_for_a_worker_that_hangs(tmp_path: Path) -> None:
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
        kept = spread(before)[stays]
        os.kill(killed, signal.SIGKILL)
        assert eventually(lambda: server.log.count("accepting connections") == 3)
        after = [server.connect() for _ in range(kept)]
        assert spread(after)[stays] <= 0.25 * kept, spread(after)
        close(before + after)


def test_a_worker_that_ends_is_left_no_connections(tmp_path: Path) -> None:
    with serving(tmp_path, workers=2) as server:
        ends, _ = workers_of(server, 2)
        clients = [server.connect() for _ in range(60)]
        close([client for client in clients if client.about()["pid"] == ends])
        os.kill(ends, signal.SIGTERM)
        assert eventually(lambda: "draining" in server.log)
        crowd = [server.connect() for _ in range(20)]
        found = spread(crowd)
        assert found[ends] <= 5, found
        close(crowd)
