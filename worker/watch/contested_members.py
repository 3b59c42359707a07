"""Members in the way of a request that only their owners may make (`registry.ownership`): one that has no connection is
probed, and removed unless its address accepts one, so that another waits for it only while it answers.

Where its address may not be probed (`worker.outgoing`), the other waits for the end of its lease: connections end with
the worker that has them, too, and that alone gives no broker away."""

from collections import Counter
from collections.abc import Callable
from typing import Final, NamedTuple

from registry.caching.bounded import Bounded
from registry.drivers import AsyncDriver
from registry.holder import Holder
from registry.keys import Keys, member_key
from registry.options.catalogue import Options
from registry.options.networks import link_of
from registry.plans import Origin
from registry.removal import Disconnected, remove_disconnected
from worker import outgoing
from worker.counters import Counters
from worker.outgoing import Endpoint
from worker.watch.probes import Probe, probe_twice

__all__ = ["ContestedMembers", "Reserved"]

AT_ONCE: Final = 16
"""Probes under way in a worker; a request beyond them is refused. So is one of a host that has as many as are left: no
host keeps others from theirs."""
EACH_S: Final = 5.0
"""How often a member is probed at most."""
BYTES: Final = 1 << 20
COST: Final = 150
"""Bytes that a member takes beside its own."""


class Reserved(NamedTuple):
    """A probe that is counted as under way: of what, where, for a request of which host."""

    holder: Holder
    to: Endpoint
    host: str


class ContestedMembers:
    """Of one worker; `clock` gives seconds, `options` those in force."""

    def __init__(
        self,
        driver: AsyncDriver,
        keys: Keys,
        worker_id: str,
        options: Callable[[], Options],
        counters: Counters,
        clock: Callable[[], float],
    ) -> None:
        self._driver = driver
        self._keys = keys
        self._actor = f"worker:{worker_id}"
        self._options = options
        self._counters = counters
        self._clock = clock
        self._probing = Counter[str]()  # by host
        self._next: Bounded[str, float] = Bounded(BYTES, lambda member, _: COST + len(member))

    def reserve(self, holder: Holder, host: str) -> Reserved | None:
        """Return where to probe a member for a request of `host`, and count that as under way; None if it has a
        connection, or may not be probed, at all or yet. `remove_unless_reachable` follows."""
        options, member, now = self._options(), member_key(holder.cluster, holder.address), self._clock()
        host = link_of(host)
        has_none_left = self._probing[host] >= AT_ONCE - self._probing.total()
        if holder.connected or not options.connection_loss_probe or has_none_left:
            return None
        to = outgoing.endpoint(holder.address, holder.hosts, options)
        if to is None or now < (self._next.get(member) or 0):
            return None
        self._next.put(member, now + EACH_S)
        self._probing[host] += 1
        return Reserved(holder, to, host)

    async def remove_unless_reachable(self, reserved: Reserved, op: str) -> bool:
        """Probe a member's address; return whether it accepted no connection, and the member was removed unless its
        lease was renewed meanwhile. `op` is the request in whose way it is."""
        holder = reserved.holder
        try:
            seen = await probe_twice(reserved.to, self._options().probe_timeout_millis / 1000)
        finally:
            self._probing -= Counter((reserved.host,))
        self._counters.probes.add(seen)
        if seen is Probe.REACHABLE:
            return False
        member = Disconnected(holder.cluster, holder.address, holder.now_ms, holder.lease_ms)
        await self._driver.run(remove_disconnected(self._keys, member, "lost", Origin(op, self._actor)))
        return True
