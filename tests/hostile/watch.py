"""Effects of a hostile client on others: their latency, the workers' memory, and the log."""

import os
import re
import threading
import time
from contextlib import suppress
from pathlib import Path

from rocketmq_remoting.codes import RequestCode
from testbed.broker import A
from testbed.connection import Connection
from testbed.nameserver import NameServer
from testbed.run_queue import waited_s

ASK_EVERY_S = 0.05
ANSWER_S = 2.0 - ASK_EVERY_S
"""A healthy client's slowest reply, without the time in which the worker or the client waited for a core; some 10 ms.
Before bodies were decoded cooperatively it was up to 9 s. No worker that stands still for 2 s goes unnoticed."""
GROWTH_BYTES = 80 << 20
"""How much a worker may have grown in the end: the allocator keeps what frames under way may take together, 72 MiB
(worker/transport/frame_memory.py), but no leak is hidden by that."""
EVERY_S = 5.0
"""RateLimitedLog lets one line of a kind through in so many seconds."""
_LINE = re.compile(r"connection \S+ of \S+ (closed|cut off|met a fault)|request \d+ of \S+ failed")


class Healthy(threading.Thread):
    """A client of one worker, which asks for a route all the time, over one connection."""

    def __init__(self, connection: Connection, worker: int) -> None:
        super().__init__(daemon=True)
        self.slowest_s = 0.0
        self.error: Exception | None = None
        self._connection = connection
        self._worker = worker
        self._over = threading.Event()

    def run(self) -> None:
        try:
            over = False
            while not over:
                over = self._over.wait(ASK_EVERY_S)  # once more after all is done
                began = self._clock()
                reply = self._connection.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": A.topics[0].name})
                assert reply.code == 0, reply.remark
                self.slowest_s = max(self.slowest_s, self._clock() - began)
        except Exception as error:  # checked by Watch.end
            self.error = error

    def end(self) -> None:
        self._over.set()
        self.join()

    def _clock(self) -> float:
        """Return the time in seconds, which stands still while the worker or this thread waits for a core."""
        return time.monotonic() - waited_s(self._worker, "thread-self")


class Watch:
    """Checks both workers of a server with broker-a, from its construction to `end`."""

    def __init__(self, server: NameServer) -> None:
        self.server = server
        self._connections: dict[int, Connection] = {}
        while len(self._connections) < server.workers:
            connection = Connection(server.port)
            assert connection.usable()
            if self._connections.setdefault(server.worker_of(connection), connection) is not connection:
                connection.close()
        self._before = {pid: resident(pid) for pid in self._connections}
        self._said = len(server.said())
        self._began = time.monotonic()
        self._clients = [Healthy(connection, worker) for worker, connection in self._connections.items()]
        for client in self._clients:
            client.start()

    def end(self) -> None:
        """Assert that clients got replies in time, that workers neither changed nor grew, and that the log is short."""
        for client in self._clients:
            client.end()
        for client in self._clients:
            assert client.error is None, repr(client.error)
            assert client.slowest_s < ANSWER_S, f"a reply took {client.slowest_s:.2f} s"
        for pid, before in self._before.items():
            assert (grown := resident(pid) - before) < GROWTH_BYTES, f"grown by {grown >> 20} MiB"
        kinds = 6
        assert len(self.lines()) <= len(self._before) * kinds * (
            1 + (time.monotonic() - self._began) / EVERY_S
        )
        said = self.server.said()[self._said :]
        assert "Traceback" not in said
        assert "a fault of this server" not in said
        assert "since the store refuses" not in said
        for connection in self._connections.values():
            with suppress(OSError):
                connection.close()

    @property
    def workers(self) -> list[int]:
        """Return the workers' process ids."""
        return list(self._connections)

    def connections(self) -> int:
        """Return how many files the workers have open, nearly all of them connections."""
        return sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in self.workers)

    def lines(self) -> list[str]:
        """Return the log lines of failed connections and requests."""
        return [line for line in self.server.said()[self._said :].splitlines() if _LINE.search(line)]


def resident(pid: int) -> int:
    """Return the resident memory of a process in bytes."""
    match = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert match
    return int(match[1]) << 10
