"""Connections whose replies are read at some pace, and what another client of the same worker meets meanwhile."""

import selectors
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from rocketmq_remoting.codes import RequestCode
from testbed.broker import A
from testbed.connection import Connection
from testbed.nameserver import NameServer
from testbed.run_queue import waited_s
from tests.hostile.watch import resident

RESIDENT_BYTES = 200 << 20
LOOKUPS = 200
EVERY_S = 0.005
ANSWER_S = 0.05
"""For 99 of 100 lookups."""
TRIES = 3


class Reading(threading.Thread):
    """Connections whose replies are read, `bytes_a_second` of each, as fast as they come (None) or not at all (0)."""

    def __init__(self, opened: list[socket.socket], count: int, bytes_a_second: int | None) -> None:
        super().__init__(daemon=True)
        self.left = dict.fromkeys(opened, count)
        self._pause_s = 0.0 if not bytes_a_second else (1 << 16) / bytes_a_second
        self._silent = bytes_a_second == 0
        self._over = threading.Event()
        self._wanted = dict.fromkeys(opened, 0)  # bytes of the frame that is being read
        self._heads = dict.fromkeys(opened, b"")

    def run(self) -> None:
        with selectors.DefaultSelector() as selector:
            for connection in self.left:
                connection.setblocking(False)
                selector.register(connection, selectors.EVENT_READ)
            while not self._silent and self.left and not self._over.wait(self._pause_s):
                for key, _ in selector.select(0.05):
                    self._take(key.fileobj, selector)  # type: ignore[arg-type]

    def end(self) -> None:
        self._over.set()
        self.join()

    def _take(self, connection: socket.socket, selector: selectors.BaseSelector) -> None:
        data = b""
        with suppress(BlockingIOError):
            data = connection.recv(1 << 16)
        data, at = self._heads[connection] + data, 0
        while at < len(data):
            if self._wanted[connection]:
                taken = min(len(data) - at, self._wanted[connection])
                self._wanted[connection] -= taken
                at += taken
                self.left[connection] -= not self._wanted[connection]
            elif len(data) - at >= 4:
                self._wanted[connection] = int.from_bytes(data[at : at + 4], "big")
                at += 4
            else:
                break
        self._heads[connection] = data[at:]
        if not self.left[connection]:
            selector.unregister(connection)
            del self.left[connection]


@contextmanager
def on_one_worker(server: NameServer, count: int) -> Iterator[tuple[int, list[Connection]]]:
    """Yield a worker and so many connections to it."""
    opened: dict[int, list[Connection]] = {}
    try:
        while True:
            connection = Connection(server.port)
            assert connection.usable()
            mine = opened.setdefault(server.worker_of(connection), [])
            mine.append(connection)
            if len(mine) == count:
                yield server.worker_of(connection), mine
                return
    finally:
        for connections in opened.values():
            for connection in connections:
                connection.close()


class Beside:
    """What another client of the attacked worker met."""

    def __init__(self, worker: int, connection: Connection) -> None:
        self._worker = worker
        self._connection = connection
        self.took_s: list[float] = []
        self.most_bytes = resident(worker)

    def looks_up(self, until: Callable[[], bool]) -> None:
        """Look a topic up so many times, and until this is true; a lookup that a late one delays is as late."""
        due = self._clock()
        while len(self.took_s) < LOOKUPS or not until():
            assert (
                self._connection.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": A.topics[0].name}).code
                == 0
            )
            self.took_s.append(self._clock() - due)
            self.most_bytes = max(self.most_bytes, resident(self._worker))
            due += EVERY_S
            time.sleep(max(due - self._clock(), 0.0))

    @property
    def p99_s(self) -> float:
        return sorted(self.took_s)[len(self.took_s) * 99 // 100 - 1]

    def _clock(self) -> float:
        """The time, which stands still while the worker or this thread waits for a core."""
        return time.monotonic() - waited_s(self._worker, "thread-self")


def assert_in_time(attack: Callable[[], Beside]) -> None:
    """Attack up to three times: memory is bounded each time; others are late where other work has the machine."""
    for _ in range(TRIES):
        beside = attack()
        assert beside.most_bytes < RESIDENT_BYTES
        if beside.p99_s < ANSWER_S:
            return
    pytest.fail(f"in {TRIES} attacks the p99 of others' lookups was {beside.p99_s:.3f} s and more")
