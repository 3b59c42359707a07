"""How a remoting client behaves; names and defaults follow RocketMQ's NettyClientConfig."""

import ssl
from collections.abc import Callable

import msgspec

from mqns.remoting.request import Request
from rocketmq_remoting.command import SerializeType
from rocketmq_remoting.language import LanguageCode
from rocketmq_remoting.version import CURRENT

Hook = Callable[[str, Request], Request]
"""Given the peer's address and a request, what is sent in its place (RocketMQ RPCHook.doBeforeRequest)."""


class RemotingOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a remoting client; durations are in seconds.

    `close_on_timeout` (clientCloseSocketIfTimeout, as from 4.9.1 on): a call that times out closes the connection,
    unless connecting took most of the timeout. `try_all_name_servers`: a call without an address tries the whole
    list, as in 4.x; else it tries one name server and the next call the next, as in 5.x. `follow_go_away`: after the
    response GO_AWAY the request is repeated once over a new connection. `tls` is the context of all connections, or
    a function from an address to its context (None: no TLS). `hooks` are applied in order."""

    connect_timeout_s: float = 3.0
    lock_timeout_s: float = 3.0
    idle_s: float = 120.0
    async_permits: int = 65535
    oneway_permits: int = 65535
    close_on_timeout: bool = True
    try_all_name_servers: bool = True
    follow_go_away: bool = True
    serialize_type: SerializeType = SerializeType.JSON
    version: int = CURRENT
    language: int = LanguageCode.PYTHON
    tls: ssl.SSLContext | Callable[[str], ssl.SSLContext | None] | None = None
    hooks: tuple[Hook, ...] = ()

    def tls_of(self, address: str) -> ssl.SSLContext | None:
        """Return the context of connections to an address, None without TLS."""
        return self.tls(address) if callable(self.tls) else self.tls
