"""For how long a worker that is cut off from the store answers routes as they were (`staleServeMaxSeconds`)."""

import logging
from collections.abc import Callable
from typing import Final

from worker.background import pause
from worker.watch.stream_connection import StreamConnection

LOOK_EVERY_S: Final = 0.5

log = logging.getLogger(__name__)


class StaleServing:
    """`longest_s` is the option, 0 for no limit."""

    def __init__(self, follower: StreamConnection, longest_s: Callable[[], float]) -> None:
        self._follower = follower
        self._longest_s = longest_s

    def is_over(self) -> bool:
        """Return whether no change of the store has been seen for too long to answer routes without it."""
        return 0 < self._longest_s() < self._follower.disconnected_for_s()

    async def run(self) -> None:
        """Log when that begins and ends, until cancelled."""
        was_over = False
        while True:
            if self.is_over() and not was_over:
                log.warning(
                    "the changes of the store were not followed for over %g s (staleServeMaxSeconds): lookups get no "
                    "routes from memory, and code 1 where the store does not answer, so that clients keep what they "
                    "have; see to the store",
                    self._longest_s(),
                )
                was_over = True
            elif was_over and self._follower.connected:
                log.warning("lookups are answered from memory again")
                was_over = False
            await pause(LOOK_EVERY_S)
