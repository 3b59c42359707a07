"""What the end of a connection means for the brokers that registered over it.

Java unregisters at once. With workers behind a balancer a closed connection says little: only the connection
is released as owner, and after the last one the broker's own address is probed before the broker is removed. One that
may not be probed (`worker.outgoing`) goes as with Java.
"""

import asyncio
import itertools
import logging
from collections.abc import Callable
from typing import TypeVar

from registry.drivers import AsyncDriver
from registry.errors import StoreUnavailable
from registry.expiry.worker_lease import is_member
from registry.keys import Keys, member_key, split_member_key
from registry.options.catalogue import Options
from registry.options.networks import link_of
from registry.plans import Origin, Plan
from registry.removal import Disconnected, release_owner, remove_disconnected
from worker import outgoing
from worker.background import end
from worker.counters import Counters
from worker.logs.rate_limited_log import RateLimitedLog
from worker.outgoing import Endpoint
from worker.peer import NONE_REGISTERED, Peer
from worker.watch.host_semaphore import HostSemaphore
from worker.watch.probes import Probe, probe_twice

PROBES_MAX = 64
RETRY_S = 1.0
RETRY_FOR_S = 120.0
COME_BACK_S = 75.0
"""Brokers register each 60 s at the latest (registerNameServerPeriod), and first have to notice."""
ASKING_MAX = 128  # the others wait: while the store is away, all that ask again would keep the worker busy

log = logging.getLogger(__name__)
rate_limited = RateLimitedLog(log)
T = TypeVar("T")


class Members(set[str]):
    """The members that registered over one connection, whose peer came from `host`."""

    __slots__ = ("host", "probes")

    def __init__(self, host: str) -> None:
        super().__init__()
        self.host = host
        self.probes = outgoing.MOST
        """How many of them may still be probed."""


class ClosedConnections:
    """Which member registered over which connection; releases these owners when connections end."""

    def __init__(
        self,
        driver: AsyncDriver,
        keys: Keys,
        worker_id: str,
        options: Callable[[], Options],
        counters: Counters,
    ) -> None:
        self._driver = driver
        self._keys = keys
        self._worker_id = worker_id
        self._options = options
        self._counters = counters
        self._peers: dict[str, set[Peer]] = {}
        self._registered: set[Peer] = set()
        self._probes = HostSemaphore(PROBES_MAX)
        self._asking = asyncio.Semaphore(ASKING_MAX)
        self._numbers = itertools.count(1)
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def registered_peers(self) -> int:
        """Return over how many open connections a member has registered."""
        return len(self._registered)

    def owner(self, peer: Peer) -> str:
        """Return the connection as owner, as the store has it."""
        return f"{self._worker_id}/{peer.id}"

    def registers(self, peer: Peer, member: str) -> bool:
        """Note that a member is about to register over this connection; return whether it has not before."""
        if member in peer.registered:
            return False
        if not isinstance(peer.registered, Members):
            peer.registered = Members(peer.host)
        peer.registered.add(member)
        self._registered.add(peer)
        self._peers.setdefault(member, set()).add(peer)
        return True

    def refused(self, peer: Peer, member: str) -> None:
        """Note that a first registration was refused, so nothing of it is to be released."""
        if isinstance(peer.registered, Members):
            peer.registered.discard(member)
        if not peer.registered:
            self._registered.discard(peer)
        self._forget(peer, member)

    def registered(self, peer: Peer) -> None:
        """Note that a registration is done: a connection that ended before could not be released then."""
        if peer.closed:
            self.closed(peer)

    def closed(self, peer: Peer, *, shutting_down: bool = False) -> None:
        """Release a connection that has ended; those of a worker that shuts down end with its own lease."""
        members = peer.registered
        if isinstance(members, Members):
            self._registered.discard(peer)
            for member in members:
                self._forget(peer, member)
                if not shutting_down:
                    self._begin_release(member, self.owner(peer), members)

    def comes_back(self, peer: Peer) -> None:
        """Note that a living peer's connection is closed from here: it is released once its brokers have had time to
        register over another one."""
        members = peer.registered
        if isinstance(members, Members):
            peer.registered = NONE_REGISTERED
            self._registered.discard(peer)
            for member in members:
                self._forget(peer, member)
            self._add(asyncio.get_running_loop().create_task(self._release_late(self.owner(peer), members)))

    def expired(self, member: str) -> None:
        """Close the connections that a member registered over whose lapse was recorded, unless it is back."""
        if member in self._peers:
            task = asyncio.get_running_loop().create_task(self._close(member))
            self._add(task)

    async def stop(self) -> None:
        """End what is under way."""
        await end(self._tasks)

    def _forget(self, peer: Peer, member: str) -> None:
        peers = self._peers.get(member, set())
        peers.discard(peer)
        if not peers:
            self._peers.pop(member, None)

    def _begin_release(self, member: str, owner: str, members: Members) -> None:
        self._add(asyncio.get_running_loop().create_task(self._release(member, owner, members)))

    def _add(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _close(self, member: str) -> None:
        try:
            if await self._driver.run(is_member(self._keys, member)):
                return
        except Exception as error:
            rate_limited.warning(
                "connections of member %s, which has expired, stay open: %s; their idle time ends them",
                member,
                error,
            )
            return
        for peer in tuple(self._peers.get(member, ())):
            peer.close("a broker that registered over it has expired")

    async def _release_late(self, owner: str, members: Members) -> None:
        await asyncio.sleep(COME_BACK_S)
        for member in members:
            self._begin_release(member, owner, members)

    async def _release(self, member: str, owner: str, members: Members) -> None:
        cluster, address = split_member_key(member)
        try:
            disconnected = await self._retried(lambda: release_owner(self._keys, cluster, address, owner))
            if disconnected is not None:
                await self._remove_unless_reachable(disconnected, members)
        except Exception as error:
            rate_limited.warning(
                "connection %s of member %s was not released: %s; the member leaves when its lease ends",
                owner,
                member,
                error,
            )

    async def _remove_unless_reachable(self, member: Disconnected, members: Members) -> None:
        """Probe the address of a member without connections, and remove the member unless it accepts.

        A probe may take its whole time-out: no host's brokers wait behind all of another's."""
        options, cause = self._options(), "closed"
        if options.connection_loss_probe and (to := _probed(member.address, members, options)) is not None:
            cause, host = "lost", link_of(members.host)
            if not await self._probes.acquire(host, member_key(member.cluster, member.address)):
                return
            try:
                found = await probe_twice(to, options.probe_timeout_millis / 1000)
            finally:
                self._probes.release(host)
            self._counters.probes.add(found)
            if found is Probe.REACHABLE:
                self._counters.probes_reachable += 1
                return
        origin = Origin(f"{self._worker_id}-{cause}-{next(self._numbers):x}", f"worker:{self._worker_id}")
        await self._retried(lambda: remove_disconnected(self._keys, member, cause, origin))

    async def _retried(self, plan: Callable[[], Plan[T]]) -> T:
        """Run a plan, again each second while the store is away; StoreUnavailable after two minutes of that."""
        time = asyncio.get_running_loop().time
        last = time() + RETRY_FOR_S
        async with self._asking:
            while True:
                try:
                    return await self._driver.run(plan())
                except StoreUnavailable:
                    if time() >= last:
                        raise
                await asyncio.sleep(RETRY_S)


def _probed(address: str, members: Members, options: Options) -> Endpoint | None:
    """Return where to probe a member, None if it is to go without that."""
    to = outgoing.endpoint(address, (members.host,), options)
    if to is None:
        rate_limited.warning(
            "broker %s is removed with its connection, unprobed: it came from %s; if living brokers are, list their "
            "networks in probeNetworks, or their balancer in proxyTrustedCidrs",
            address,
            members.host,
        )
    elif not members.probes:
        rate_limited.warning(
            "broker %s is removed with its connection, unprobed: %d that registered over it were probed; "
            "a living one is back with its next registration",
            address,
            outgoing.MOST,
        )
        return None
    else:
        members.probes -= 1
    return to
