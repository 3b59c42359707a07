"""Following a broker in what the name server answers, in the background."""

import threading
import time

from testbed.rocketmq.servers import NameServer

EVERY_S = 0.2


class Watch:
    """Looks from now on whether a broker is listed (106); a thread, since others test meanwhile."""

    def __init__(self, server: NameServer, name: str, broker_id: int) -> None:
        self.began = time.monotonic()
        self.gone_after_s: float | None = None
        self._stop = threading.Event()
        self._looks = (server, name, broker_id)
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def stop(self, after_s: float) -> None:
        """Look on until the broker is gone, or until `after_s` from the beginning."""
        self._thread.join(max(0.0, self.began + after_s - time.monotonic()))
        self._stop.set()
        self._thread.join()

    def _look(self) -> None:
        server, name, broker_id = self._looks
        while not self._stop.wait(EVERY_S):
            if broker_id not in server.brokers(name):
                self.gone_after_s = time.monotonic() - self.began
                return
