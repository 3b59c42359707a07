"""A name server as an object: awaitable (AsyncNameServer) or blocking (NameServer)."""

from collections.abc import Sequence
from typing import Final, Self, TypeVar

from client.addresses.syntax import parse_addresses
from client.blocking import Blocking, Method
from client.errors import AnswerError
from client.name_server import calls
from client.wire.call import Call
from client.wire.connections import Connect, tcp_connect
from client.wire.options import RemotingOptions
from client.wire.remoting_client import AsyncRemotingClient

T = TypeVar("T")
TIMEOUT_S: Final = 5.0
"""The budget of a call, as in RocketMQ's admin tool."""


class _Calls:
    """Every call, for both faces."""

    put_kv_config = Method(calls.put_kv_config)
    get_kv_config = Method(calls.get_kv_config)
    delete_kv_config = Method(calls.delete_kv_config)
    get_kv_list = Method(calls.get_kv_list)
    register_broker = Method(calls.register_broker)
    unregister_broker = Method(calls.unregister_broker)
    query_data_version = Method(calls.query_data_version)
    broker_heartbeat = Method(calls.broker_heartbeat)
    register_topic = Method(calls.register_topic)
    get_route = Method(calls.get_route)
    get_cluster_info = Method(calls.get_cluster_info)
    get_broker_member_group = Method(calls.get_broker_member_group)
    get_topics = Method(calls.get_topics)
    get_topics_of_cluster = Method(calls.get_topics_of_cluster)
    get_system_topics = Method(calls.get_system_topics)
    get_unit_topics = Method(calls.get_unit_topics)
    get_unit_sub_topics = Method(calls.get_unit_sub_topics)
    get_unit_sub_ununit_topics = Method(calls.get_unit_sub_ununit_topics)
    delete_topic = Method(calls.delete_topic)
    wipe_write_perm = Method(calls.wipe_write_perm)
    add_write_perm = Method(calls.add_write_perm)
    update_config = Method(calls.update_config)
    get_config = Method(calls.get_config)
    get_client_config = Method(calls.get_client_config)


class AsyncNameServer(_Calls):
    """Calls to the chosen one of `addresses` (a `;`-separated text, or several), each within `timeout_s`.

    Every method raises a RemotingError when no answer came, and AnswerError when the name server refuses."""

    def __init__(
        self,
        addresses: str | Sequence[str],
        *,
        options: RemotingOptions | None = None,
        timeout_s: float = TIMEOUT_S,
        connect: Connect = tcp_connect,
    ) -> None:
        self.remoting = AsyncRemotingClient(options, name_servers=_listed(addresses), connect=connect)
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
        self.remoting.set_name_servers(_listed(addresses))

    def at(self, address: str | None) -> "AsyncNameServer":
        """The same for one name server only, whether it is in the list or not; None is the chosen one again."""
        return self._variant(address, self._timeout_s)

    def within(self, timeout_s: float) -> "AsyncNameServer":
        """The same with another budget for each call."""
        return self._variant(self._address, timeout_s)

    async def ask(self, call: Call[T]) -> T:
        """The result of a call, which is one of client.name_server.calls or of your own."""
        return await self.remoting.ask(self._address, call, timeout_s=self._timeout_s)

    async def oneway(self, call: Call[T]) -> None:
        """Make a call whose answer nobody wants."""
        await self.remoting.oneway(self._address, call.request, timeout_s=self._timeout_s)

    async def ask_all(self, call: Call[T]) -> dict[str, T]:
        """Make a call to all name servers in turn, as changes are made by RocketMQ's admin tool; results by address.

        A name server that refuses does not keep the others from being asked; the last refusal is raised after that.
        A RemotingError ends it at once."""
        results: dict[str, T] = {}
        refused: AnswerError | None = None
        for address in self.addresses:
            try:
                results[address] = await self.at(address).ask(call)
            except AnswerError as error:
                refused = error
        if refused is not None:
            raise refused
        return results

    def _variant(self, address: str | None, timeout_s: float) -> "AsyncNameServer":
        variant = AsyncNameServer.__new__(AsyncNameServer)
        variant.remoting, variant._address, variant._timeout_s = self.remoting, address, timeout_s
        return variant


class NameServer(_Calls, Blocking[AsyncNameServer]):
    """The same for code without an event loop; may be used from several threads."""

    def __init__(
        self,
        addresses: str | Sequence[str],
        *,
        options: RemotingOptions | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        super().__init__(AsyncNameServer(addresses, options=options, timeout_s=timeout_s))

    @property
    def addresses(self) -> tuple[str, ...]:
        """All name servers, in the order in which they are tried."""
        return self._face.addresses

    def set_addresses(self, addresses: str | Sequence[str]) -> None:
        """Change the list; a chosen one that is no longer in it gets no further calls."""
        self._there(self._face.set_addresses, addresses)

    def at(self, address: str | None) -> "NameServer":
        """The same for one name server only, whether it is in the list or not; None is the chosen one again."""
        return self._variant(self._face.at(address))

    def within(self, timeout_s: float) -> "NameServer":
        """The same with another budget for each call."""
        return self._variant(self._face.within(timeout_s))

    def ask(self, call: Call[T]) -> T:
        """The result of a call, which is one of client.name_server.calls or of your own."""
        return self._loop.run(self._face.ask(call))

    def oneway(self, call: Call[T]) -> None:
        """Make a call whose answer nobody wants."""
        self._loop.run(self._face.oneway(call))

    def ask_all(self, call: Call[T]) -> dict[str, T]:
        """As AsyncNameServer.ask_all."""
        return self._loop.run(self._face.ask_all(call))

    def _variant(self, face: AsyncNameServer) -> "NameServer":
        variant = NameServer.__new__(NameServer)
        variant._loop, variant._face = self._loop, face
        return variant


def _listed(addresses: str | Sequence[str]) -> tuple[str, ...]:
    return parse_addresses(addresses if isinstance(addresses, str) else ";".join(addresses))
