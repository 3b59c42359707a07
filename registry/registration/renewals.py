"""Cached replies of lease renewals: a lease that was renewed a moment ago need not be renewed again.

Brokers ask more often than leases move: 322 and 103 of one round, a heartbeat to each of several addresses that are all
this service, 904 each second. A lease that was renewed less than a thousandth of its time-out ago (120 ms of 120 s)
is as good as renewed; the same request gets the same reply without the store.
"""

from collections.abc import Callable, Iterable
from sys import getsizeof
from typing import Any, Final, Self

import msgspec
from msgspec.structs import replace

from registry.caching.bounded import Bounded
from registry.caching.stamp import Source, Stamp
from registry.plans import Argument, Expected, Plan, ScriptItem
from registry.registration.request import RegisterContext

FRACTION: Final = 1000
"""A renewal is good for this fraction of the time-out."""
BYTES_MOST: Final = 4 << 20
"""Bytes of all cached replies together."""
COST: Final = 1000
"""Bytes that one takes beside the arguments of its item."""

Arguments = tuple[Argument, ...]


def good_for_s(timeout_ms: str) -> float:
    """Return for how long a renewal makes another one needless; `timeout_ms` is as the script replies it."""
    return int(timeout_ms) / 1000 / FRACTION


class Renewal(msgspec.Struct, frozen=True):
    """How a request that renewed a lease, and did no more, is repeated without a plan.

    While `item` gets this `reply`, the heartbeat or registration has the same answer; a reply is good for `good_for_s`
    seconds. `context` is of a registration, without its body, one with other topics of which may go the straight way
    (`registry.registration.straight`)."""

    item: ScriptItem
    reply: list[Any]
    good_for_s: float
    context: RegisterContext | None = None

    @classmethod
    def of(
        cls, item: ScriptItem, reply: list[Any], words: Iterable[str], context: RegisterContext | None = None
    ) -> Self:
        """Return how what got `["renewed", timeout, …]` is repeated; `words` are those of the reply, which the script
        does not say again."""
        expecting = replace(item, expected=Expected(" ".join(words), reply))
        return cls(expecting, reply, good_for_s(reply[1]), context)


class Renewals:
    """The last replies of lua/renew_registration.lua, by the arguments of their items.

    Of one process that follows every change; `clock` gives seconds and never goes back. `generation` moves with each
    change."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._replies: Bounded[Arguments, _Renewed] = Bounded(BYTES_MOST, _cost)
        self._order_table: object = None
        self.generation = 0

    def invalidate(self) -> None:
        """Invalidate all replies: something changed, or may have changed unseen."""
        self.generation += 1

    def ask(self, item: ScriptItem) -> Plan[list[Any]]:
        """Return the script's reply to an item, the cached one while that is true."""
        began, generation = self._clock(), self.generation
        cached = self._replies.get(item.args)
        if cached is not None and cached.is_valid(began):
            return cached.reply
        reply = yield item
        self._share_order_table(reply)
        match reply:
            case ["renewed", timeout_ms, *_] if generation == self.generation:
                self._replies.put(item.args, _Renewed(self, began + good_for_s(timeout_ms), reply))
        return reply  # type: ignore[no-any-return]

    def _share_order_table(self, reply: list[Any]) -> None:
        """Let replies share the order table, which may be long, as long as it stays the same."""
        if reply[-1] == self._order_table:
            reply[-1] = self._order_table
        elif isinstance(reply[-1], list):
            self._order_table = reply[-1]

    def until(self, item: ScriptItem) -> float:
        """Return until when (on the clock) the cached reply to an item is true; 0 for none."""
        cached = self._replies.get(item.args)
        return 0.0 if cached is None or cached.generation != self.generation else cached.until


class _Renewed(Stamp):
    __slots__ = ("reply",)

    def __init__(self, source: Source, until: float, reply: list[Any]) -> None:
        super().__init__(source, until)
        self.reply = reply


def _cost(args: Arguments, _: _Renewed) -> int:
    return COST + sum(map(getsizeof, args))
