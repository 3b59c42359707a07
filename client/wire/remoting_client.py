"""The remoting client: calls to any peer, or to whichever name server is the chosen one."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final, Self, TypeVar

from client.errors import CallTimeout, ConnectionClosed, TooBusy
from client.wire.call import Call
from client.wire.choice import NameServerChoice
from client.wire.connection import Connection
from client.wire.connections import Connect, Connections, tcp_connect
from client.wire.in_flight import InFlight, next_opaque
from client.wire.options import RemotingOptions
from client.wire.request import Request
from remoting.codes import ResponseCode
from remoting.command import Command
from remoting.remoting_command import ONEWAY_FLAG

log = logging.getLogger(__name__)

T = TypeVar("T")
PushHandler = Callable[[str, Command], Command | None]
"""Given the peer's address and its request, the answer; None is a plain success."""

_HARDLY_ANY_S: Final = 0.1
"""A call that had less than this and than a quarter of its time left once connected does not close the connection."""


class AsyncRemotingClient:
    """Calls over one pipelined connection to each address, to be used within one event loop.

    `name_servers` are those that calls without an address go to."""

    def __init__(
        self,
        options: RemotingOptions | None = None,
        *,
        name_servers: Sequence[str] = (),
        connect: Connect = tcp_connect,
    ) -> None:
        self._options = options or RemotingOptions()
        self._in_flight = InFlight()
        self._connections = Connections(self._options, connect, self._received, self._lost)
        self._choice = NameServerChoice(self._options, self._connections)
        self._choice.change(name_servers)
        self._async_permits = asyncio.Semaphore(self._options.async_permits)
        self._oneway_permits = asyncio.Semaphore(self._options.oneway_permits)
        self._calls: set[asyncio.Task[Command]] = set()
        self._retired: set[Connection] = set()
        self._handlers: dict[int, PushHandler] = {}
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End all connections; calls under way fail with ConnectionClosed."""
        self._closed = True
        await self._connections.close()
        if self._calls:
            await asyncio.wait(self._calls)

    @property
    def name_servers(self) -> tuple[str, ...]:
        """Those that calls without an address go to, in the order in which they are tried."""
        return self._choice.addresses

    @property
    def chosen_name_server(self) -> str | None:
        """The one that calls without an address go to while its connection lives."""
        return self._choice.chosen

    def set_name_servers(self, addresses: Sequence[str]) -> None:
        """Change the list. One that is no longer in it gets no further calls.

        AddressError, and nothing changed, if one of them is no address."""
        dropped = self._choice.change(addresses)
        connection = self._connections.active(dropped) if dropped is not None else None
        if connection is not None:
            self._retire(connection)

    def on_push(self, code: int, handler: PushHandler) -> None:
        """Have `handler` called for requests with that code which peers send over our connections."""
        self._handlers[code] = handler

    async def call(self, address: str | None, request: Request, *, timeout_s: float = 3.0) -> Command:
        """Ask a peer, or the chosen name server, and wait for its answer, whatever its code is.

        Connecting is part of the time. Raises a RemotingError when no answer came."""
        _, answer = await self._call(address, request, timeout_s, scanned=False)
        return answer

    async def ask(self, address: str | None, call: Call[T], *, timeout_s: float = 3.0) -> T:
        """The result of a typed call. Raises AnswerError when the peer refuses, else as `call`."""
        asked, answer = await self._call(address, call.request, timeout_s, scanned=False)
        return call.result(asked, answer)

    def call_async(
        self, address: str | None, request: Request, *, timeout_s: float = 3.0
    ) -> asyncio.Future[Command]:
        """Ask and go on: the answer or the error comes once, an error of time up to 2 s late.

        So many may be under way at once (RocketMQ invokeAsync); TooBusy if none of them ends within the time."""
        call = asyncio.get_running_loop().create_task(self._permitted(address, request, timeout_s))
        self._calls.add(call)
        call.add_done_callback(self._calls.discard)
        return call

    async def oneway(self, address: str | None, request: Request, *, timeout_s: float = 3.0) -> None:
        """Send a request that is not answered; returns when it is written."""
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
            _, answer = await self._call(address, request, left, scanned=True)
            return answer
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
        """Who answered, and what."""
        deadline = asyncio.get_running_loop().time() + timeout_s
        connection, answer = await self._ask(address, request, timeout_s, deadline, scanned)
        if answer.code != ResponseCode.GO_AWAY or not self._options.follow_go_away:
            return connection.address, answer
        self._retire(connection)
        connection, answer = await self._ask(address, request, timeout_s, deadline, scanned)
        return connection.address, answer

    async def _ask(
        self, address: str | None, request: Request, timeout_s: float, deadline: float, scanned: bool
    ) -> tuple[Connection, Command]:
        connection = await self._connection(address, deadline)
        left = deadline - asyncio.get_running_loop().time()
        if left <= 0:
            raise CallTimeout(
                connection.address, "connecting took all the time of the call; nothing was sent"
            )
        opaque = next_opaque()
        await connection.send(self._command(connection.address, request, 0, opaque), deadline)
        try:
            waits_until = None if scanned else deadline
            return connection, await self._in_flight.answer(opaque, connection, deadline, waits_until)
        except CallTimeout:
            raise
        except TimeoutError:
            if self._options.close_on_timeout and (left > _HARDLY_ANY_S or left > timeout_s / 4):
                connection.abort("closed, since a call got no answer in time")
            raise CallTimeout(connection.address, f"no answer within {timeout_s:g} s") from None
        finally:
            self._end_if_retired(connection)

    async def _connection(self, address: str | None, deadline: float) -> Connection:
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

    def _received(self, connection: Connection, command: Command) -> None:
        if not command.is_response:
            self._answer_push(connection, command)
        elif not self._in_flight.answered(connection, command):
            log.debug("%s: answer %s, which nobody waits for", connection.address, command.opaque)

    def _lost(self, connection: Connection, reason: str) -> None:
        self._retired.discard(connection)
        self._in_flight.fail(connection, reason)

    def _answer_push(self, connection: Connection, command: Command) -> None:
        handler = self._handlers.get(command.code)
        if handler is None:
            remark = f" request type {command.code} not supported"
            answer = command.reply(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark=remark)
        else:
            answer = _handled(handler, connection.address, command)
        if not command.is_oneway and not connection.answer(answer):
            log.warning(
                "%s: its request %s is not answered, since it does not read", connection.address, command.code
            )

    def _retire(self, connection: Connection) -> None:
        """Use it for no further calls, and end it when the last of its answers has come."""
        self._connections.leave(connection)
        self._retired.add(connection)
        self._end_if_retired(connection)

    def _end_if_retired(self, connection: Connection) -> None:
        if connection in self._retired and not self._in_flight.waits_on(connection):
            connection.close("left for another")


def _handled(handler: PushHandler, address: str, command: Command) -> Command:
    try:
        answer = handler(address, command)
    except Exception as error:  # the handler is not ours, and its failure is no reason to end the connection
        log.exception("%s: handling its request %s failed", address, command.code)
        return command.reply(ResponseCode.SYSTEM_ERROR, remark=f"{type(error).__name__}: {error}")
    return command.reply(ResponseCode.SUCCESS) if answer is None else answer
