"""Clients of name servers: AsyncNameServerClient, and NameServerClient, which is sync."""

from collections.abc import Sequence
from typing import Final, Self, TypeVar

from mqns.addresses.syntax import parse_addresses
from mqns.errors import ResponseError
from mqns.name_server import calls
from mqns.remoting.call import Call
from mqns.remoting.connection_table import Connect, tcp_connect
from mqns.remoting.options import RemotingOptions
from mqns.remoting.remoting_client import AsyncRemotingClient
from mqns.sync import CallMethod, SyncClient

T = TypeVar("T")
TIMEOUT_S: Final = 5.0
"""Default timeout of a call, as in RocketMQ's admin tool."""


class _CallMethods:
    """The methods of both clients."""

    put_kv_config = CallMethod(calls.put_kv_config)
    get_kv_config = CallMethod(calls.get_kv_config)
    delete_kv_config = CallMethod(calls.delete_kv_config)
    get_kv_list = CallMethod(calls.get_kv_list)
    register_broker = CallMethod(calls.register_broker)
    unregister_broker = CallMethod(calls.unregister_broker)
    query_data_version = CallMethod(calls.query_data_version)
    broker_heartbeat = CallMethod(calls.broker_heartbeat)
    register_topic = CallMethod(calls.register_topic)
    get_route = CallMethod(calls.get_route)
    get_cluster_info = CallMethod(calls.get_cluster_info)
    get_broker_member_group = CallMethod(calls.get_broker_member_group)
    get_topics = CallMethod(calls.get_topics)
    get_topics_of_cluster = CallMethod(calls.get_topics_of_cluster)
    get_system_topics = CallMethod(calls.get_system_topics)
    get_unit_topics = CallMethod(calls.get_unit_topics)
    get_unit_sub_topics = CallMethod(calls.get_unit_sub_topics)
    get_unit_sub_ununit_topics = CallMethod(calls.get_unit_sub_ununit_topics)
    delete_topic = CallMethod(calls.delete_topic)
    wipe_write_perm = CallMethod(calls.wipe_write_perm)
    add_write_perm = CallMethod(calls.add_write_perm)
    update_config = CallMethod(calls.update_config)
    get_config = CallMethod(calls.get_config)
    check_readiness = CallMethod(calls.check_readiness)
    get_client_config = CallMethod(calls.get_client_config)


class AsyncNameServerClient(_CallMethods):
    """Calls to the chosen one of `addresses` (a `;`-separated text, or several), each within `timeout_s`.

    Every method raises RemotingError without a response, and ResponseError if the name server refuses."""

    def __init__(
        self,
        addresses: str | Sequence[str],
        *,
        options: RemotingOptions | None = None,
        timeout_s: float = TIMEOUT_S,
        connect: Connect = tcp_connect,
    ) -> None:
        self.remoting = AsyncRemotingClient(options, name_servers=_address_list(addresses), connect=connect)
        self._address: str | None = None
        self._timeout_s = timeout_s

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End all connections, those of `at` and `within` too."""
        await self.remoting.close()

    @property
    def addresses(self) -> tuple[str, ...]:
        """All name servers, in the order in which they are tried."""
        return self.remoting.name_servers

    def set_addresses(self, addresses: str | Sequence[str]) -> None:
        """Change the list; a chosen one that is no longer in it gets no further calls."""
        self.remoting.set_name_servers(_address_list(addresses))

    def at(self, address: str | None) -> "AsyncNameServerClient":
        """Return a client of one name server, in the list or not; None for the chosen one."""
        return self._variant(address, self._timeout_s)

    def within(self, timeout_s: float) -> "AsyncNameServerClient":
        """Return a client with another timeout for each call."""
        return self._variant(self._address, timeout_s)

    async def call(self, call: Call[T]) -> T:
        """Make a call of mqns.name_server.calls or another and return its result."""
        return await self.remoting.call(self._address, call, timeout_s=self._timeout_s)

    async def oneway(self, call: Call[T]) -> None:
        """Send the request of a call without a response."""
        await self.remoting.invoke_oneway(self._address, call.request, timeout_s=self._timeout_s)

    async def call_all(self, call: Call[T]) -> dict[str, T]:
        """Make a call at all name servers, one after the other, and return the results by address.

        As RocketMQ's admin tool makes changes. The last refusal is raised after all name servers were called; a
        RemotingError is raised at once."""
        results: dict[str, T] = {}
        refused: ResponseError | None = None
        for address in self.addresses:
            try:
                results[address] = await self.at(address).call(call)
            except ResponseError as error:
                refused = error
        if refused is not None:
            raise refused
        return results

    def _variant(self, address: str | None, timeout_s: float) -> "AsyncNameServerClient":
        variant = AsyncNameServerClient.__new__(AsyncNameServerClient)
        variant.remoting, variant._address, variant._timeout_s = self.remoting, address, timeout_s
        return variant


class NameServerClient(_CallMethods, SyncClient[AsyncNameServerClient]):
    """The sync client; may be used from several threads."""

    def __init__(
        self,
        addresses: str | Sequence[str],
        *,
        options: RemotingOptions | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        super().__init__(AsyncNameServerClient(addresses, options=options, timeout_s=timeout_s))

    @property
    def addresses(self) -> tuple[str, ...]:
        """All name servers, in the order in which they are tried."""
        return self._async_client.addresses

    def set_addresses(self, addresses: str | Sequence[str]) -> None:
        """Change the list; a chosen one that is no longer in it gets no further calls."""
        self._call_in_loop(self._async_client.set_addresses, addresses)

    def at(self, address: str | None) -> "NameServerClient":
        """Return a client of one name server, in the list or not; None for the chosen one."""
        return self._variant(self._async_client.at(address))

    def within(self, timeout_s: float) -> "NameServerClient":
        """Return a client with another timeout for each call."""
        return self._variant(self._async_client.within(timeout_s))

    def call(self, call: Call[T]) -> T:
        """Make a call of mqns.name_server.calls or another and return its result."""
        return self._loop.run(self._async_client.call(call))

    def oneway(self, call: Call[T]) -> None:
        """Send the request of a call without a response."""
        self._loop.run(self._async_client.oneway(call))

    def call_all(self, call: Call[T]) -> dict[str, T]:
        """See AsyncNameServerClient.call_all."""
        return self._loop.run(self._async_client.call_all(call))

    def _variant(self, async_client: AsyncNameServerClient) -> "NameServerClient":
        variant = NameServerClient.__new__(NameServerClient)
        variant._loop, variant._async_client = self._loop, async_client
        return variant


def _address_list(addresses: str | Sequence[str]) -> tuple[str, ...]:
    return parse_addresses(addresses if isinstance(addresses, str) else ";".join(addresses))
