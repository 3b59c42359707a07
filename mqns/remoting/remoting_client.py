"""The async remoting client (RocketMQ NettyRemotingClient): requests to any peer or to the selected name server."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final, Self, TypeVar

from mqns.errors import CallTimeout, ConnectionClosed, TooBusy
from mqns.remoting.call import Call
from mqns.remoting.connection import ClientConnection
from mqns.remoting.connection_table import Connect, ConnectionTable, tcp_connect
from mqns.remoting.name_server_selector import NameServerSelector
from mqns.remoting.options import RemotingOptions
from mqns.remoting.request import Request
from mqns.remoting.response_table import ResponseTable, next_opaque
from rocketmq_remoting.codes import ResponseCode
from rocketmq_remoting.command import Command
from rocketmq_remoting.remoting_command import ONEWAY_FLAG

log = logging.getLogger(__name__)

T = TypeVar("T")
PushHandler = Callable[[str, Command], Command | None]
"""Takes a peer's address and its request, and returns the response; None is a success without content."""

_CONNECTED_LATE_S: Final = 0.1
"""A call with less than this and less than a quarter of its timeout left after connecting closes no connection."""


class AsyncRemotingClient:
    """Sends requests over one pipelined connection per address; to be used within one event loop.

    Requests without an address go to one of `name_servers`."""

    def __init__(
        self,
        options: RemotingOptions | None = None,
        *,
        name_servers: Sequence[str] = (),
        connect: Connect = tcp_connect,
    ) -> None:
        self._options = options or RemotingOptions()
        self._connect = connect
        self._response_table = ResponseTable()
        self._connections = ConnectionTable(self._options, connect, self._received, self._disconnected)
        self._choice = NameServerSelector(self._options, self._connections)
        self._choice.change(name_servers)
        self._async_permits = asyncio.Semaphore(self._options.async_permits)
        self._oneway_permits = asyncio.Semaphore(self._options.oneway_permits)
        self._calls: set[asyncio.Task[Command]] = set()
        self._retired: set[ClientConnection] = set()
        self._unread: set[ClientConnection] = set()  # a line of the log about each
        self._handlers: dict[int, PushHandler] = {}
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections; calls in flight fail with ConnectionClosed."""
        self._closed = True
        await self._connections.close()
        if self._calls:
            await asyncio.wait(self._calls)

    def alike(self) -> "AsyncRemotingClient":
        """Return a client with the same options, and connections of its own."""
        return AsyncRemotingClient(self._options, connect=self._connect)

    @property
    def name_servers(self) -> tuple[str, ...]:
        """Name servers for requests without an address, in the order in which they are tried."""
        return self._choice.addresses

    @property
    def chosen_name_server(self) -> str | None:
        """The name server of requests without an address while its connection is active, or None."""
        return self._choice.chosen

    def set_name_servers(self, addresses: Sequence[str]) -> None:
        """Replace the list. A removed name server gets no further requests.

        AddressError, without any change, if one of them is no address."""
        dropped = self._choice.change(addresses)
        connection = self._connections.active(dropped) if dropped is not None else None
        if connection is not None:
            self._retire(connection)

    def on_push(self, code: int, handler: PushHandler) -> None:
        """Set the handler of requests with that code that peers send over this client's connections."""
        self._handlers[code] = handler

    async def invoke(self, address: str | None, request: Request, *, timeout_s: float = 3.0) -> Command:
        """Send a request to a peer, or to the selected name server, and return the response, whatever its code.

        The timeout includes connecting. Raises RemotingError without a response."""
        _, response = await self._call(address, request, timeout_s, scanned=False)
        return response

    async def call(self, address: str | None, call: Call[T], *, timeout_s: float = 3.0) -> T:
        """Make a typed call and return its result. Raises ResponseError if the peer refuses, else as `invoke`."""
        called, response = await self._call(address, call.request, timeout_s, scanned=False)
        return call.result(called, response)

    def invoke_async(
        self, address: str | None, request: Request, *, timeout_s: float = 3.0
    ) -> asyncio.Future[Command]:
        """Send a request and return the future of its response; a CallTimeout comes up to 2 s late.

        At most `async_permits` are in flight (RocketMQ invokeAsync); TooBusy if none is free within the timeout."""
        call = asyncio.get_running_loop().create_task(self._permitted(address, request, timeout_s))
        self._calls.add(call)
        call.add_done_callback(self._calls.discard)
        return call

    async def invoke_oneway(self, address: str | None, request: Request, *, timeout_s: float = 3.0) -> None:
        """Send a request without a response; return when it is written. Raises RemotingError."""
        deadline = asyncio.get_running_loop().time() + timeout_s
        await self._permit(self._oneway_permits, address, deadline)
        try:
            connection = await self._connection(address, deadline)
            command = self._command(connection.address, request, ONEWAY_FLAG, next_opaque())
            await connection.send(command, deadline)
        finally:
            self._oneway_permits.release()

    async def _permitted(self, address: str | None, request: Request, timeout_s: float) -> Command:
        began_at = asyncio.get_running_loop().time()
        await self._permit(self._async_permits, address, began_at + timeout_s)
        try:
            left = began_at + timeout_s - asyncio.get_running_loop().time()
            _, response = await self._call(address, request, left, scanned=True)
            return response
        finally:
            self._async_permits.release()

    async def _permit(self, permits: asyncio.Semaphore, address: str | None, deadline: float) -> None:
        if self._closed:
            raise ConnectionClosed(address or "", "not sent: this client is closed")
        try:
            async with asyncio.timeout_at(deadline):
                await permits.acquire()
        except TimeoutError:
            raise TooBusy(address or "", "not sent: too many calls are under way") from None

    async def _call(
        self, address: str | None, request: Request, timeout_s: float, *, scanned: bool
    ) -> tuple[str, Command]:
        """Return the address of the peer and its response."""
        deadline = asyncio.get_running_loop().time() + timeout_s
        connection, response = await self._send_and_wait(address, request, timeout_s, deadline, scanned)
        if response.code != ResponseCode.GO_AWAY or not self._options.follow_go_away:
            return connection.address, response
        self._retire(connection)
        connection, response = await self._send_and_wait(address, request, timeout_s, deadline, scanned)
        return connection.address, response

    async def _send_and_wait(
        self, address: str | None, request: Request, timeout_s: float, deadline: float, scanned: bool
    ) -> tuple[ClientConnection, Command]:
        connection = await self._connection(address, deadline)
        left = deadline - asyncio.get_running_loop().time()
        if left <= 0:
            raise CallTimeout(
                connection.address, "connecting took all the time of the call; nothing was sent"
            )
        opaque = next_opaque()
        await connection.send(self._command(connection.address, request, 0, opaque), deadline)
        try:
            wait_until = None if scanned else deadline
            return connection, await self._response_table.wait(opaque, connection, deadline, wait_until)
        except CallTimeout:
            raise
        except TimeoutError:
            if self._options.close_on_timeout and (left > _CONNECTED_LATE_S or left > timeout_s / 4):
                connection.abort("closed, since a call got no answer in time")
            raise CallTimeout(connection.address, f"no answer within {timeout_s:g} s") from None
        finally:
            self._close_if_retired(connection)

    async def _connection(self, address: str | None, deadline: float) -> ClientConnection:
        if address is None:
            return await self._choice.connection(deadline)
        return await self._connections.get(address, deadline)

    def _command(self, address: str, request: Request, flag: int, opaque: int) -> Command:
        options = self._options
        for hook in options.hooks:
            request = hook(address, request)
        return Command(
            request.code,
            opaque,
            flag,
            options.version,
            options.language,
            ext=request.ext,
            body=request.body,
            serialize_type=options.serialize_type,
        )

    def _received(self, connection: ClientConnection, command: Command) -> None:
        if not command.is_response:
            self._respond_to_push(connection, command)
        elif not self._response_table.complete(connection, command):
            log.debug("%s: response %s dropped: no call waits for it", connection.address, command.opaque)

    def _disconnected(self, connection: ClientConnection, reason: str) -> None:
        self._retired.discard(connection)
        self._unread.discard(connection)
        self._response_table.fail(connection, reason)

    def _respond_to_push(self, connection: ClientConnection, command: Command) -> None:
        handler = self._handlers.get(command.code)
        if handler is None:
            remark = f" request type {command.code} not supported"
            response = command.reply(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark=remark)
        else:
            response = _response_of(handler, connection.address, command)
        if command.is_oneway or connection.respond(response):
            return
        if connection.active and connection not in self._unread:
            self._unread.add(connection)
            log.warning(
                "%s: no response to its request %s: the peer does not read from the connection; "
                "its requests are answered again when it reads",
                connection.address,
                command.code,
            )

    def _retire(self, connection: ClientConnection) -> None:
        """Use a connection for no further requests, and close it after its last response."""
        self._connections.remove(connection)
        self._retired.add(connection)
        self._close_if_retired(connection)

    def _close_if_retired(self, connection: ClientConnection) -> None:
        if connection in self._retired and not self._response_table.has_requests_on(connection):
            connection.close("left for another")


def _response_of(handler: PushHandler, address: str, command: Command) -> Command:
    try:
        response = handler(address, command)
    except Exception as error:  # an error of the handler must not close the connection
        log.exception(
            "%s: the handler of request %s failed; the peer gets SYSTEM_ERROR", address, command.code
        )
        return command.reply(ResponseCode.SYSTEM_ERROR, remark=f"{type(error).__name__}: {error}")
    return command.reply(ResponseCode.SUCCESS) if response is None else response
