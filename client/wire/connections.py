"""The table of connections: at most one for each address, and those being made."""

import asyncio
import os
import socket
import ssl
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from client.addresses.syntax import split_address
from client.errors import CallTimeout, ConnectError, ConnectionClosed
from client.wire.connection import Connection
from client.wire.options import RemotingOptions
from remoting.command import Command

Connect: TypeAlias = Callable[
    [str, int, Callable[[], Connection], ssl.SSLContext | None], Awaitable[tuple[object, Connection]]
]
"""(host, port, protocol factory, TLS) -> (transport, protocol); OSError when that fails."""


async def tcp_connect(
    host: str, port: int, protocol_factory: Callable[[], Connection], tls: ssl.SSLContext | None
) -> tuple[object, Connection]:
    """A TCP connection of the running loop, over TLS if a context is given."""
    return await asyncio.get_running_loop().create_connection(protocol_factory, host, port, ssl=tls)


class Connections:
    """Whoever asks for an address that is being connected to waits for that same connection.

    `received` and `lost` are told what Connection tells its owner."""

    def __init__(
        self,
        options: RemotingOptions,
        connect: Connect,
        received: Callable[[Connection, Command], None],
        lost: Callable[[Connection, str], None],
    ) -> None:
        self._options = options
        self._connect = connect
        self.received = received
        self._lost = lost
        self._open: dict[str, Connection] = {}
        self._pending: dict[str, asyncio.Task[Connection | str]] = {}
        self._all: set[Connection] = set()
        self._closed = False

    def active(self, address: str) -> Connection | None:
        """The connection to an address, if there is one and it can be used."""
        connection = self._open.get(address)
        return connection if connection is not None and connection.active else None

    async def get(self, address: str, deadline: float) -> Connection:
        """The connection to an address, made if need be.

        ConnectError when none can be made, AddressError when that is no address, CallTimeout when `deadline` (loop
        time) comes before the end of the connect time-out. The connect goes on for others then."""
        connection = self.active(address)
        if connection is not None:
            return connection
        if self._closed:
            raise ConnectionClosed(address, "not sent: this client is closed")
        pending = self._pending.get(address)
        if pending is None:
            host, port = split_address(address)
            pending = asyncio.create_task(self._make(address, host, port))
            self._pending[address] = pending
        left = deadline - asyncio.get_running_loop().time()
        # else the connect time-out comes first, and says more
        await asyncio.wait({pending}, timeout=left if left < self._options.connect_timeout_s else None)
        if not pending.done():
            raise CallTimeout(address, "not connected within the time of the call; nothing was sent")
        if pending.cancelled():
            raise ConnectionClosed(address, "not sent: this client is closed")
        made = pending.result()
        if isinstance(made, str):
            raise ConnectError(address, made)
        return made

    def leave(self, connection: Connection) -> None:
        """Use a connection for no further calls."""
        if self._open.get(connection.address) is connection:
            del self._open[connection.address]

    async def close(self) -> None:
        """End all connections, and connect no more."""
        self._closed = True
        pending = list(self._pending.values())
        for task in pending:
            task.cancel()
        for connection in self._all:
            connection.close("this client is closed")
        if pending:
            await asyncio.wait(pending)
        for connection in list(self._all):
            connection.close("this client is closed")
            await connection.wait_ended()

    # what connections tell

    def made(self, connection: Connection) -> None:
        self._all.add(connection)

    def lost(self, connection: Connection, reason: str) -> None:
        self.leave(connection)
        self._lost(connection, reason)

    def ended(self, connection: Connection) -> None:
        self._all.discard(connection)

    async def _make(self, address: str, host: str, port: int) -> Connection | str:
        """A new connection, or why there is none."""
        options = self._options
        begun: list[Connection] = []

        def begin() -> Connection:
            begun.append(Connection(address, self, options.idle_s))
            return begun[-1]

        try:
            async with asyncio.timeout(options.connect_timeout_s):
                _, connection = await self._connect(host, port, begin, options.tls_of(address))
            begun.remove(connection)
        except TimeoutError:
            return f"not connected within {options.connect_timeout_s:g} s"
        except (OSError, UnicodeError) as error:  # UnicodeError: a name that cannot be looked up
            return f"not connected: {_told(error)}"
        finally:
            del self._pending[address]
            for failed in begun:
                failed.forsake("connecting failed")
        if connection.active:
            self._open[address] = connection
        return connection


def _told(error: OSError | UnicodeError) -> str:
    """What the system says; asyncio's own text tells only that it did not work."""
    if isinstance(error, OSError) and error.errno and not isinstance(error, ssl.SSLError | socket.gaierror):
        return os.strerror(error.errno)
    return str(error)
