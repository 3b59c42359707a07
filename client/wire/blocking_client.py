"""The remoting client for code without an event loop."""

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Self, TypeVar

from client.blocking import LoopThread
from client.wire.call import Call
from client.wire.connections import Connect, tcp_connect
from client.wire.options import RemotingOptions
from client.wire.remoting_client import PushHandler, RemotingClient
from client.wire.request import Request
from remoting.command import Command

T = TypeVar("T")


class BlockingRemotingClient:
    """A RemotingClient that runs in a thread of its own; may be used from several threads."""

    def __init__(
        self,
        options: RemotingOptions | None = None,
        *,
        name_servers: Sequence[str] = (),
        connect: Connect = tcp_connect,
    ) -> None:
        self._client = RemotingClient(options, name_servers=name_servers, connect=connect)
        self._loop = LoopThread()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all connections and the thread; calls under way fail with ConnectionClosed."""
        if not self._loop.closed:
            self._loop.run(self._client.close())
            self._loop.close()

    @property
    def name_servers(self) -> tuple[str, ...]:
        """Those that calls without an address go to, in the order in which they are tried."""
        return self._client.name_servers

    def set_name_servers(self, addresses: Sequence[str]) -> None:
        """Change the list, as RemotingClient.set_name_servers."""

        async def change() -> None:
            self._client.set_name_servers(addresses)

        self._loop.run(change())

    def on_push(self, code: int, handler: PushHandler) -> None:
        """Have `handler` called for requests of peers, on the client's thread, where it must not block."""
        self._client.on_push(code, handler)

    def call(self, address: str | None, request: Request, *, timeout_s: float = 3.0) -> Command:
        """Ask and wait, as RemotingClient.call."""
        return self._loop.run(self._client.call(address, request, timeout_s=timeout_s))

    def ask(self, address: str | None, call: Call[T], *, timeout_s: float = 3.0) -> T:
        """The result of a typed call, as RemotingClient.ask."""
        return self._loop.run(self._client.ask(address, call, timeout_s=timeout_s))

    def call_async(self, address: str | None, request: Request, *, timeout_s: float = 3.0) -> Future[Command]:
        """Ask and go on, as RemotingClient.call_async; callbacks run on the client's thread."""

        async def called() -> Command:
            return await self._client.call_async(address, request, timeout_s=timeout_s)

        return self._loop.begin(called())

    def oneway(self, address: str | None, request: Request, *, timeout_s: float = 3.0) -> None:
        """Send a request that is not answered, as RemotingClient.oneway."""
        self._loop.run(self._client.oneway(address, request, timeout_s=timeout_s))
