"""Which name server a call without an address goes to."""

import asyncio
import random
from collections.abc import Sequence

from client.addresses.syntax import split_address
from client.errors import CallTimeout, ConnectError
from client.wire.connection import Connection
from client.wire.connections import Connections
from client.wire.options import RemotingOptions


class NameServerChoice:
    """Keeps to one name server while the connection to it lives, else takes the next of the list."""

    def __init__(self, options: RemotingOptions, connections: Connections) -> None:
        self._options = options
        self._connections = connections
        self._addresses: tuple[str, ...] = ()
        self._chosen: str | None = None
        self._index = -1  # Java begins anywhere, which in a shuffled list is the same
        self._lock = asyncio.Lock()

    @property
    def addresses(self) -> tuple[str, ...]:
        """The list, in the order in which it is gone through."""
        return self._addresses

    @property
    def chosen(self) -> str | None:
        """The one that is kept to."""
        return self._chosen

    def change(self, addresses: Sequence[str]) -> str | None:
        """Take a new list, shuffled, unless it has the same members.

        The address that was kept to and is no longer in it, if that is so. AddressError, and nothing changed, if one
        of them is no address."""
        new = list(dict.fromkeys(addresses))
        for address in new:
            split_address(address)
        if set(new) == set(self._addresses):
            return None
        random.shuffle(new)
        self._addresses = tuple(new)
        dropped = self._chosen
        if dropped is None or dropped in new:
            return None
        self._chosen = None
        return dropped

    async def connection(self, deadline: float) -> Connection:
        """A connection to the chosen one, or else to the next that can be connected to.

        ConnectError naming the whole list when none can, or the one that was tried where a call tries only one."""
        return self._kept() or await self._next(deadline)

    def _kept(self) -> Connection | None:
        return self._connections.active(self._chosen) if self._chosen is not None else None

    async def _next(self, deadline: float) -> Connection:
        await self._take_lock(deadline)
        try:
            kept = self._kept()  # whoever had the lock before may have connected
            if kept is not None:
                return kept
            whole_list = self._options.try_all_name_servers and len(self._addresses) > 1
            return await (self._any(deadline) if whole_list else self._one(deadline))
        finally:
            self._lock.release()

    async def _any(self, deadline: float) -> Connection:
        reasons = []
        for _ in self._addresses:
            try:
                return await self._one(deadline)
            except ConnectError as error:
                reasons.append(str(error))
        raise ConnectError(";".join(self._addresses), "; ".join(reasons))

    async def _one(self, deadline: float) -> Connection:
        if not self._addresses:
            raise ConnectError("", "no name server is known")
        self._index += 1
        address = self._addresses[self._index % len(self._addresses)]
        self._chosen = address
        return await self._connections.get(address, deadline)

    async def _take_lock(self, deadline: float) -> None:
        limit = asyncio.get_running_loop().time() + self._options.lock_timeout_s
        try:
            async with asyncio.timeout_at(min(limit, deadline)):
                await self._lock.acquire()
        except TimeoutError:
            failed = CallTimeout if deadline <= limit else ConnectError
            reason = "another call is still looking for a name server; nothing was sent"
            raise failed(";".join(self._addresses), reason) from None
