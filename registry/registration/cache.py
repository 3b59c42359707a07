"""What a process caches from one registration to the next; any other process does as well without it."""

from collections.abc import Callable
from typing import Final

from registry.kv import sendable
from registry.long_work.limiter import Limiter
from registry.registration.cached_tables import CachedTables
from registry.registration.renewals import Renewals
from rocketmq_remoting.kv_table import KVTable, encode_kv_table

BIG_AT_ONCE: Final = 2
"""Registrations of big tables carried out at once; more of them would delay each other past their claims."""


class RegistrationCache:
    """What a process that follows every change caches of registrations; `clock` gives seconds and never goes back."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.renewals = Renewals(clock)
        self.tables = CachedTables()
        self.limiter = Limiter(BIG_AT_ONCE)
        self._order: tuple[dict[str, str], bytes] = {}, encode_kv_table(KVTable({}))

    def order_body(self, order_table: dict[str, str]) -> bytes:
        """Return the order table encoded: the same bytes for all brokers as long as it stays the same."""
        table, body = self._order
        if table != order_table:
            body = encode_kv_table(KVTable(sendable(order_table)))
            self._order = order_table, body
        return body
