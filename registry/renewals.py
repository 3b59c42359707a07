"""Leases that were renewed a moment ago need not be renewed again.

Brokers ask more often than leases move: 322 and 103 of one round, a beat to each of several addresses that are all
this service, 904 each second. A lease that was renewed less than a thousandth of its time-out ago (120 ms of 120 s)
is as good as renewed; the same request gets the same answer without the store.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from registry.plans import Plan, ScriptItem

SHARE = 1000
MOST = 4096


def good_for_s(timeout_ms: int) -> float:
    """How long a renewal makes another one needless."""
    return timeout_ms / 1000 / SHARE


class Again(msgspec.Struct, frozen=True):
    """How what renewed a lease, and did no more, is had once more, without a plan.

    While `item` gets this `reply`, a beat or registration finds what it found; a reply is good for `good_for_s`
    seconds."""

    item: ScriptItem
    reply: list[Any]

    @property
    def good_for_s(self) -> float:
        return good_for_s(int(self.reply[1]))


class Renewals:
    """What lua/renew.lua replied to registrations lately; of one process that hears of every change.

    `clock` gives seconds and never goes back. `generation` moves whenever what is remembered may no longer be true."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._kept: dict[tuple[str | bytes | int, ...], _Kept] = {}
        self.generation = 0

    def forget(self) -> None:
        """Something changed, or may have changed unseen."""
        self.generation += 1
        self._kept.clear()

    def ask(self, item: ScriptItem) -> Plan[list[Any]]:
        """The script's reply to an item, or its last one if that was a moment ago."""
        began, generation = self._clock(), self.generation
        kept = self._kept.get(item.args)
        if kept is not None and began < kept.until:
            return kept.reply
        reply = yield item
        if reply[0] == "renewed" and generation == self.generation:
            if len(self._kept) >= MOST:
                self._kept.clear()
            self._kept[item.args] = _Kept(reply, began + good_for_s(int(reply[1])))
        return reply  # type: ignore[no-any-return]

    def until(self, item: ScriptItem) -> float:
        """Until when (on the clock) the last reply to an item is good; 0 when there is none that is."""
        kept = self._kept.get(item.args)
        return 0.0 if kept is None else kept.until


class _Kept(msgspec.Struct, frozen=True):
    reply: list[Any]
    until: float
