"""The table of connections (RocketMQ channelTables): at most one for each address."""

import asyncio
import os
import socket
import ssl
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from mqns.addresses.syntax import split_address
from mqns.errors import CallTimeout, ConnectError, ConnectionClosed
from mqns.remoting.connection import ClientConnection
from mqns.remoting.options import RemotingOptions
from rocketmq_remoting.command import Command

Connect: TypeAlias = Callable[
    [str, int, Callable[[], ClientConnection], ssl.SSLContext | None],
    Awaitable[tuple[object, ClientConnection]],
]
"""(host, port, protocol factory, TLS) -> (transport, protocol); OSError when that fails."""


async def tcp_connect(
    host: str, port: int, protocol_factory: Callable[[], ClientConnection], tls: ssl.SSLContext | None
) -> tuple[object, ClientConnection]:
    """Open a TCP connection in the running loop, over TLS if a context is given."""
    return await asyncio.get_running_loop().create_connection(protocol_factory, host, port, ssl=tls)


class ConnectionTable:
    """Opens connections; concurrent callers for one address share one connect.

    `received` and `disconnected` are called as those of ConnectionOwner."""

    def __init__(
        self,
        options: RemotingOptions,
        connect: Connect,
        received: Callable[[ClientConnection, Command], None],
        disconnected: Callable[[ClientConnection, str], None],
    ) -> None:
        self._options = options
        self._connect = connect
        self.received = received
        self._disconnected = disconnected
        self._open: dict[str, ClientConnection] = {}
        self._pending: dict[str, asyncio.Task[ClientConnection | str]] = {}
        self._all: set[ClientConnection] = set()
        self._closed = False

    def active(self, address: str) -> ClientConnection | None:
        """Return the active connection to an address, or None."""
        connection = self._open.get(address)
        return connection if connection is not None and connection.active else None

    async def get(self, address: str, deadline: float) -> ClientConnection:
        """Return the connection to an address, opened if necessary.

        ConnectError if that fails, AddressError if it is no address, CallTimeout if `deadline` (loop time) is before
        the end of the connect timeout; the connect then continues for other callers."""
        connection = self.active(address)
        if connection is not None:
            return connection
        if self._closed:
            raise ConnectionClosed(address, "not sent: this client is closed")
        pending = self._pending.get(address)
        if pending is None:
            host, port = split_address(address)
            pending = asyncio.create_task(self._open_connection(address, host, port))
            self._pending[address] = pending
        left = deadline - asyncio.get_running_loop().time()
        # otherwise the connect timeout comes first, with a better reason
        await asyncio.wait({pending}, timeout=left if left < self._options.connect_timeout_s else None)
        if not pending.done():
            raise CallTimeout(address, "not connected within the time of the call; nothing was sent")
        if pending.cancelled():
            raise ConnectionClosed(address, "not sent: this client is closed")
        made = pending.result()
        if isinstance(made, str):
            raise ConnectError(address, made)
        return made

    def remove(self, connection: ClientConnection) -> None:
        """Use a connection for no further calls; it stays open."""
        if self._open.get(connection.address) is connection:
            del self._open[connection.address]

    async def close(self) -> None:
        """Close all connections; further connects fail with ConnectionClosed."""
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

    # ConnectionOwner

    def made(self, connection: ClientConnection) -> None:
        self._all.add(connection)

    def disconnected(self, connection: ClientConnection, reason: str) -> None:
        self.remove(connection)
        self._disconnected(connection, reason)

    def ended(self, connection: ClientConnection) -> None:
        self._all.discard(connection)

    async def _open_connection(self, address: str, host: str, port: int) -> ClientConnection | str:
        """Open a connection; return it, or the reason of the failure."""
        options = self._options
        created: list[ClientConnection] = []

        def create() -> ClientConnection:
            created.append(ClientConnection(address, self, options.idle_s))
            return created[-1]

        try:
            async with asyncio.timeout(options.connect_timeout_s):
                _, connection = await self._connect(host, port, create, options.tls_of(address))
            created.remove(connection)
        except TimeoutError:
            return f"not connected within {options.connect_timeout_s:g} s"
        except (OSError, UnicodeError) as error:  # UnicodeError: an invalid host name
            return f"not connected: {_reason(error)}"
        finally:
            del self._pending[address]
            for failed in created:
                failed.abandon("connecting failed")
        if connection.active:
            self._open[address] = connection
        return connection


def _reason(error: OSError | UnicodeError) -> str:
    """Return the system's text of an error; asyncio's own text has no reason."""
    if isinstance(error, OSError) and error.errno and not isinstance(error, ssl.SSLError | socket.gaierror):
        return os.strerror(error.errno)
    return str(error)
