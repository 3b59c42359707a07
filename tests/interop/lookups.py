"""Looking a topic up again and again, beside what a test does."""

import threading
import time
from collections.abc import Callable
from typing import Self, TypeVar

from testbed.rocketmq.servers import NameServer

T = TypeVar("T")
PAUSE_S = 0.05


class Lookups:
    """Asks for a topic's route, over a new connection each time, and notes what was wrong with an answer.

    `brokers` is how many of them serve it; `away_s` is for how long connections may be refused."""

    def __init__(self, server: NameServer, topic: str, brokers: int, *, away_s: float = PAUSE_S) -> None:
        self.count = 0
        self.wrong: list[str] = []
        self.reconnects = 0
        self._asks = (server, topic, brokers)
        self._away_s = away_s
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        server, topic, brokers = self._asks
        while not self._end.wait(PAUSE_S):
            self.count += 1
            try:
                route = self._ask(lambda: server.route(topic))
            except OSError as error:
                self.wrong.append(f"lookup {self.count}: {error!r}")
                continue
            if not route or len(route.queue_datas) != brokers:
                self.wrong.append(f"lookup {self.count}: {route}")

    def _ask(self, ask: Callable[[], T]) -> T:
        """Again after a pause when there is no connection: a worker went, or the balancer did."""
        last = time.monotonic() + self._away_s
        while True:
            begun = time.monotonic()
            try:
                return ask()
            except OSError:
                if begun >= last:
                    raise
                self.reconnects += 1
                time.sleep(PAUSE_S)
