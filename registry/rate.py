"""Whether a caller keeps within a rate: the generic cell rate algorithm, in memory and for all processes of a store.

A caller that has been silent may send `burst` requests at once, and then one each `1 / per_second`. All that is kept
is one time: when the caller's bucket will be empty again (ITU-T I.371, annex A: the theoretical arrival time).

The library `limits` (5.8) has no bursts, its memory no bound, and its scripts need more rights and no guard of a slot
that moves (`registry.keys.guard_of`)."""

from collections.abc import Callable
from threading import Lock
from time import monotonic
from typing import Final

import msgspec

from registry.caching.bounded import Bounded
from registry.damage.key_types import healed, types_of_writes
from registry.keys import Keys
from registry.plans import Origin, Plan, ScriptCall, ask

__all__ = ["Rate", "RateMeter", "acquire_write"]

MEMORY_BYTES: Final = 4 << 20
ENTRY_BYTES: Final = 250
"""What a caller takes beside its name."""
ROUNDING: Final = 0.5
"""Of a request: sums of floating intervals may come out a little longer than the whole."""


class Rate(msgspec.Struct, frozen=True):
    """So many requests each second, at least one, and so many at once."""

    per_second: int
    burst: int

    @property
    def interval_ms(self) -> float:
        """From one request to the next."""
        return 1000 / self.per_second


class RateMeter:
    """Requests of callers in the memory of this process, whose threads share it.

    Where callers are more than the memory has room for, the one that was silent longest is forgotten."""

    def __init__(
        self, rate: Rate, memory_bytes: int = MEMORY_BYTES, clock: Callable[[], float] = monotonic
    ) -> None:
        self._interval_s = rate.interval_ms / 1000
        self._longest_s = (rate.burst + ROUNDING) * self._interval_s
        self._clock = clock
        self._lock = Lock()
        self._empty_at_s: Bounded[str, float] = Bounded(
            memory_bytes, lambda caller, _: len(caller.encode(errors="replace")) + ENTRY_BYTES
        )

    def admits(self, caller: str) -> bool:
        """Count a request of a caller; return whether it is within the rate, else it is not counted."""
        now_s = self._clock()
        with self._lock:
            empty_at_s = max(self._empty_at_s.get(caller) or now_s, now_s) + self._interval_s
            if empty_at_s - now_s > self._longest_s:
                return False
            self._empty_at_s.put(caller, empty_at_s)
            return True


def acquire_write(keys: Keys, caller: str, rate: Rate, origin: Origin) -> Plan[bool]:
    """Count a write of a caller over HTTP, among those of all processes; return whether it is within the rate, else it
    is not counted. Raises StoreUnavailable."""
    call = ScriptCall("acquire_write", (keys.http_writes(caller),), (f"{rate.interval_ms:.6f}", rate.burst))
    acquired: int = yield from healed(keys, origin, lambda: ask(call), lambda: types_of_writes(keys, caller))
    return bool(acquired)
