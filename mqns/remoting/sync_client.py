"""The sync remoting client."""

from collections.abc import Sequence
from concurrent.futures import Future
from typing import TypeVar

from mqns.remoting.call import Call
from mqns.remoting.connection_table import Connect, tcp_connect
from mqns.remoting.options import RemotingOptions
from mqns.remoting.remoting_client import AsyncRemotingClient, PushHandler
from mqns.remoting.request import Request
from mqns.sync import SyncClient
from rocketmq_remoting.command import Command

T = TypeVar("T")


class RemotingClient(SyncClient[AsyncRemotingClient]):
    """An AsyncRemotingClient for any thread; calls in flight when it is closed fail with ConnectionClosed."""

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
        """Name servers for calls without an address, in the order in which they are tried."""
        return self._async_client.name_servers

    def set_name_servers(self, addresses: Sequence[str]) -> None:
        """See AsyncRemotingClient.set_name_servers."""
        self._call_in_loop(self._async_client.set_name_servers, addresses)

    def on_push(self, code: int, handler: PushHandler) -> None:
        """Set the handler of peers' requests with that code; it runs in the client's thread and must not block."""
        self._async_client.on_push(code, handler)

    def invoke(self, address: str | None, request: Request, *, timeout_s: float = 3.0) -> Command:
        """See AsyncRemotingClient.invoke."""
        return self._loop.run(self._async_client.invoke(address, request, timeout_s=timeout_s))

    def call(self, address: str | None, call: Call[T], *, timeout_s: float = 3.0) -> T:
        """See AsyncRemotingClient.call."""
        return self._loop.run(self._async_client.call(address, call, timeout_s=timeout_s))

    def invoke_async(
        self, address: str | None, request: Request, *, timeout_s: float = 3.0
    ) -> Future[Command]:
        """See AsyncRemotingClient.invoke_async; callbacks of the future run in the client's thread."""

        async def invoke() -> Command:
            return await self._async_client.invoke_async(address, request, timeout_s=timeout_s)

        return self._loop.submit(invoke())

    def invoke_oneway(self, address: str | None, request: Request, *, timeout_s: float = 3.0) -> None:
        """See AsyncRemotingClient.invoke_oneway."""
        self._loop.run(self._async_client.invoke_oneway(address, request, timeout_s=timeout_s))
