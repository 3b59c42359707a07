"""The remoting client for code without an event loop."""

from collections.abc import Sequence
from concurrent.futures import Future
from typing import TypeVar

from client.blocking import Blocking
from client.wire.call import Call
from client.wire.connections import Connect, tcp_connect
from client.wire.options import RemotingOptions
from client.wire.remoting_client import AsyncRemotingClient, PushHandler
from client.wire.request import Request
from remoting.command import Command

T = TypeVar("T")


class RemotingClient(Blocking[AsyncRemotingClient]):
    """A AsyncRemotingClient for any thread; calls under way when it is closed fail with ConnectionClosed."""

    def __init__(
        self,
        options: RemotingOptions | None = None,
        *,
        name_servers: Sequence[str] = (),
        connect: Connect = tcp_connect,
    ) -> None:
        super().__init__(AsyncRemotingClient(options, name_servers=name_servers, connect=connect))

    @property
    def name_servers(self) -> tuple[str, ...]:
        """Those that calls without an address go to, in the order in which they are tried."""
        return self._face.name_servers

    def set_name_servers(self, addresses: Sequence[str]) -> None:
        """Change the list, as AsyncRemotingClient.set_name_servers."""
        self._there(self._face.set_name_servers, addresses)

    def on_push(self, code: int, handler: PushHandler) -> None:
        """Have `handler` called for requests of peers, on the client's thread, where it must not block."""
        self._face.on_push(code, handler)

    def call(self, address: str | None, request: Request, *, timeout_s: float = 3.0) -> Command:
        """Ask and wait, as AsyncRemotingClient.call."""
        return self._loop.run(self._face.call(address, request, timeout_s=timeout_s))

    def ask(self, address: str | None, call: Call[T], *, timeout_s: float = 3.0) -> T:
        """The result of a typed call, as AsyncRemotingClient.ask."""
        return self._loop.run(self._face.ask(address, call, timeout_s=timeout_s))

    def call_async(self, address: str | None, request: Request, *, timeout_s: float = 3.0) -> Future[Command]:
        """Ask and go on, as AsyncRemotingClient.call_async; callbacks run on the client's thread."""

        async def called() -> Command:
            return await self._face.call_async(address, request, timeout_s=timeout_s)

        return self._loop.begin(called())

    def oneway(self, address: str | None, request: Request, *, timeout_s: float = 3.0) -> None:
        """Send a request that is not answered, as AsyncRemotingClient.oneway."""
        self._loop.run(self._face.oneway(address, request, timeout_s=timeout_s))
