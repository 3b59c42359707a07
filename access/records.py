"""What a process has seen of access and the store is to know, written in the background: no request waits for it."""

from collections.abc import Callable
from time import monotonic
from typing import Final

from access.uses import Uses
from registry.access_uses import note_uses
from registry.keys import Keys
from registry.plans import Origin, Plan

__all__ = ["WRITE_EVERY_S", "Records"]

WRITE_EVERY_S: Final = 10.0
"""How often `write` is to be called."""


class Records:
    """Threads may use it together. `clock` is in seconds and never goes back."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self.uses: Final = Uses(clock)

    @property
    def are_pending(self) -> bool:
        """Return whether there is something to write."""
        return len(self.uses) > 0

    def write(self, keys: Keys, origin: Origin) -> Plan[None]:
        """Write what is new; what cannot be written is so the next time. Raises StoreUnavailable."""
        yield from self._write_uses(keys, origin)

    def _write_uses(self, keys: Keys, origin: Origin) -> Plan[None]:
        taken = self.uses.take()
        try:
            yield from note_uses(keys, self.uses.ages_ms(taken), origin)
        except BaseException:  # cancelled, too
            self.uses.put_back(taken)
            raise
