"""What the end of a connection means for the brokers that registered over it.

Java unregisters at once. With workers behind a balancer a closed connection says little: only the connection's own
mark goes, and when it was the last one, the broker's own address is tried before the broker is taken for dead.
"""

import asyncio
import itertools
import logging
from collections.abc import Callable
from typing import TypeVar

from registry.drivers import AsyncDriver
from registry.errors import RegistryError, StoreUnavailable
from registry.keys import Keys, split_member_key
from registry.liveness import is_member
from registry.options import Options
from registry.plans import Act, Plan
from registry.removal import Orphan, let_go, lose
from worker.counters import Counters
from worker.ending import end
from worker.peer import Peer

PROBES_MAX = 64
SECOND_LOOK_S = 0.25  # a dying process may still have its port when its connections are gone
RETRY_S = 1.0
RETRIES = 120

log = logging.getLogger(__name__)
T = TypeVar("T")


class ClosedConnections:
    """Keeps which member registered over which connection, and lets go of them."""

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
        self._probes = asyncio.Semaphore(PROBES_MAX)
        self._numbers = itertools.count(1)
        self._tasks: set[asyncio.Task[None]] = set()

    def mark(self, peer: Peer) -> str:
        """The owner mark of a connection in the store."""
        return f"{self._worker_id}/{peer.id}"

    def registers(self, peer: Peer, member: str) -> None:
        """A member is about to register over this connection."""
        peer.registered |= {member}
        self._peers.setdefault(member, set()).add(peer)

    def registered(self, peer: Peer) -> None:
        """A registration is done: if the connection has ended meanwhile, its mark came too late to be let go of."""
        if peer.closed:
            self.closed(peer)

    def closed(self, peer: Peer, *, shutting_down: bool = False) -> None:
        """A connection has ended; a worker that shuts down lets go of nobody, its marks end with its own lease."""
        for member in peer.registered:
            peers = self._peers.get(member, set())
            peers.discard(peer)
            if not peers:
                self._peers.pop(member, None)
            if not shutting_down:
                self._start(member, self.mark(peer))

    def expired(self, member: str) -> None:
        """A lapse was recorded: close the connections it registered over, unless it is back."""
        if member in self._peers:
            task = asyncio.get_running_loop().create_task(self._close(member))
            self._keep(task)

    async def stop(self) -> None:
        """End what is under way."""
        await end(self._tasks)

    def _start(self, member: str, mark: str) -> None:
        self._keep(asyncio.get_running_loop().create_task(self._let_go(member, mark)))

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _close(self, member: str) -> None:
        try:
            if await self._driver.run(is_member(self._keys, member)):
                return
        except StoreUnavailable:
            return  # nothing is known: the idle time ends the connection if need be
        for peer in tuple(self._peers.get(member, ())):
            peer.close("a broker that registered over it has expired")

    async def _let_go(self, member: str, mark: str) -> None:
        cluster, address = split_member_key(member)
        try:
            orphan = await self._patiently(lambda: let_go(self._keys, cluster, address, mark))
            if orphan is not None:
                await self._judge(orphan)
        except RegistryError as error:
            log.warning("connection %s of member %s was not let go: %s", mark, member, error)

    async def _judge(self, orphan: Orphan) -> None:
        options, cause = self._options(), "closed"
        if options.connection_loss_probe:
            cause = "lost"
            async with self._probes:
                reachable = await self._answers(orphan.address, options.probe_timeout_millis / 1000)
            if reachable:
                self._counters.probes_reachable += 1
                return
            self._counters.probes_unreachable += 1
        act = Act(f"{self._worker_id}-{cause}-{next(self._numbers):x}", f"worker:{self._worker_id}")
        await self._patiently(lambda: lose(self._keys, orphan, cause, act))

    async def _patiently(self, plan: Callable[[], Plan[T]]) -> T:
        """Run a plan, again and again while the store is away; StoreUnavailable after two minutes of that."""
        for _ in range(RETRIES):
            try:
                return await self._driver.run(plan())
            except StoreUnavailable:
                await asyncio.sleep(RETRY_S)
        return await self._driver.run(plan())

    async def _answers(self, address: str, timeout_s: float) -> bool:
        if not await probe(address, timeout_s):
            return False
        await asyncio.sleep(SECOND_LOOK_S)
        return await probe(address, timeout_s)


async def probe(address: str, timeout_s: float) -> bool:
    """Whether somebody accepts connections at `host:port`."""
    host, _, port = address.rpartition(":")
    try:
        async with asyncio.timeout(timeout_s):
            _, writer = await asyncio.open_connection(host.strip("[]"), int(port))
    except (OSError, ValueError, TimeoutError):
        return False
    writer.close()
    return True
