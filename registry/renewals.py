"""The renewals of the last moment: a lease that was renewed just now need not be renewed again.

Brokers ask more often than leases move: 322 and 103 of one round, a beat to each of several addresses that are all
this service, 904 each second. A lease that was renewed less than a thousandth of its time-out ago (120 ms of 120 s)
is as good as renewed; the same request gets the same reply without the store.
"""

from collections.abc import Callable, Sequence

import msgspec

from registry.plans import Plan, ScriptItem

SHARE = 1000
MOST = 4096


class Renewed(msgspec.Struct, frozen=True):
    """What a renewal found: the data version as stored, master and HA address for a slave, the order table's reply.

    Until `until` (seconds of the clock of `Renewals`) the same request may be answered by it; `repeated` if it was."""

    version: str
    master: Sequence[str]
    order: list[str]
    until: float = 0.0
    repeated: bool = False


class Renewals:
    """Of one process that hears of every change; `clock` gives seconds, and never goes back.

    `generation` moves whenever what is remembered may no longer be true."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._kept: dict[tuple[str | bytes | int, ...], Renewed] = {}
        self.generation = 0

    def forget(self) -> None:
        """Something changed, or may have changed unseen."""
        self.generation += 1
        self._kept.clear()

    def still(self, _: object) -> bool:
        """Whether what was remembered before `generation` moved is true all the same: nobody knows."""
        return False

    def ask(self, item: ScriptItem) -> Plan[Renewed | str]:
        """Renew as lua/renew.lua does, or know that it was just done; else its refusal: unknown, lapsed, differs."""
        kept = self._kept.get(item.args)
        if kept is not None and self._clock() < kept.until:
            return kept
        began, generation = self._clock(), self.generation
        reply = yield item
        renewed = _renewed(reply)
        if isinstance(renewed, Renewed) and generation == self.generation:
            self._keep(item, renewed, began + int(reply[1]) / 1000 / SHARE)
        return renewed

    def _keep(self, item: ScriptItem, renewed: Renewed, until: float) -> None:
        if len(self._kept) >= MOST:
            self._kept.clear()
        self._kept[item.args] = msgspec.structs.replace(renewed, until=until, repeated=True)


def renew(item: ScriptItem, renewals: Renewals | None) -> Plan[Renewed | str]:
    """`Renewals.ask`, or the store each time for a process that does not hear of changes."""
    if renewals is None:
        return _renewed((yield item))
    return (yield from renewals.ask(item))


def _renewed(reply: list[object]) -> Renewed | str:
    """The reply of lua/renew.lua to one item."""
    if reply[0] != "renewed":
        return str(reply[0])
    _, _, version, master, order = reply
    return Renewed(version, master, order)  # type: ignore[arg-type]
