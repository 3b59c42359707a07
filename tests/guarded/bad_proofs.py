"""Hosts that are shut out for a while, because of the bad proofs that came from them."""

from typing import Final

BAD_MOST: Final = 10
WITHIN_S: Final = 60.0
SHUT_S: Final = 60.0


class BadProofs:
    """Bad proofs by host, of one process."""

    def __init__(self) -> None:
        self._times: dict[str, list[float]] = {}
        self._shut_until: dict[str, float] = {}

    def add(self, host: str, now: float) -> None:
        times = [at for at in self._times.get(host, []) if now - at < WITHIN_S] + [now]
        self._times[host] = times
        if len(times) >= BAD_MOST:
            self._times[host] = []
            self._shut_until[host] = now + SHUT_S

    def is_shut(self, host: str, now: float) -> bool:
        return self._shut_until.get(host, now) > now
