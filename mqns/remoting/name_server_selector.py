"""Selection of the name server for calls without an address."""

import asyncio
import random
from collections.abc import Sequence

from mqns.addresses.syntax import check_address
from mqns.errors import CallTimeout, ConnectError
from mqns.remoting.connection import ClientConnection
from mqns.remoting.connection_table import ConnectionTable
from mqns.remoting.options import RemotingOptions


class NameServerSelector:
    """Selects one name server as long as its connection is active, then the next one of the list."""

    def __init__(self, options: RemotingOptions, connections: ConnectionTable) -> None:
        self._options = options
        self._connections = connections
        self._addresses: tuple[str, ...] = ()
        self._chosen: str | None = None
        self._index = -1  # Java starts at a random index, which is the same for a shuffled list
        self._lock = asyncio.Lock()

    @property
    def addresses(self) -> tuple[str, ...]:
        """The list, in the order in which it is tried."""
        return self._addresses

    @property
    def chosen(self) -> str | None:
        """The selected one, or None."""
        return self._chosen

    def change(self, addresses: Sequence[str]) -> str | None:
        """Set a new list, shuffled, unless it has the same members; return the selected address if it was removed.

        AddressError, without any change, if one of them is no address."""
        new = list(dict.fromkeys(addresses))
        for address in new:
            check_address(address)
        if set(new) == set(self._addresses):
            return None
        random.shuffle(new)
        self._addresses = tuple(new)
        dropped = self._chosen
        if dropped is None or dropped in new:
            return None
        self._chosen = None
        return dropped

    async def connection(self, deadline: float) -> ClientConnection:
        """Return a connection to the selected one, else to the next one that can be connected to.

        ConnectError with the whole list if none can, or with the one address if only one is tried."""
        return self._active() or await self._next(deadline)

    def _active(self) -> ClientConnection | None:
        return self._connections.active(self._chosen) if self._chosen is not None else None

    async def _next(self, deadline: float) -> ClientConnection:
        await self._take_lock(deadline)
        try:
            connection = self._active()  # the previous owner of the lock may have connected
            if connection is not None:
                return connection
            whole_list = self._options.try_all_name_servers and len(self._addresses) > 1
            return await (self._any(deadline) if whole_list else self._one(deadline))
        finally:
            self._lock.release()

    async def _any(self, deadline: float) -> ClientConnection:
        reasons = []
        for _ in self._addresses:
            try:
                return await self._one(deadline)
            except ConnectError as error:
                reasons.append(str(error))
        raise ConnectError(";".join(self._addresses), "; ".join(reasons))

    async def _one(self, deadline: float) -> ClientConnection:
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
