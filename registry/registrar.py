"""What a process keeps from one registration to the next; any other process does as well without it."""

from collections.abc import Callable
from typing import Final

from registry.known_tables import KnownTables
from registry.renewals import Renewals
from registry.room import Room

BIG_AT_ONCE: Final = 2
"""Registrations of big tables carried out at once; more of them would only hold each other up past their claims."""


class Registrar:
    """Of one process that hears of every change; `clock` gives seconds and never goes back."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.renewals = Renewals(clock)
        self.tables = KnownTables()
        self.room = Room(BIG_AT_ONCE)
