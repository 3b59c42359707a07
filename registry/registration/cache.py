"""What a process caches from one registration to the next; any other process does as well without it."""

from collections.abc import Callable
from typing import Final

from registry.limiter import Limiter
from registry.registration.cached_tables import CachedTables
from registry.registration.renewals import Renewals

BIG_AT_ONCE: Final = 2
"""Registrations of big tables carried out at once; more of them would delay each other past their claims."""


class RegistrationCache:
    """Of one process that follows every change; `clock` gives seconds and never goes back."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.renewals = Renewals(clock)
        self.tables = CachedTables()
        self.limiter = Limiter(BIG_AT_ONCE)
