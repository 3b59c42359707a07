"""Clients of the store, with short retries and timeouts: a dead Redis is noticed within seconds."""

import asyncio
import builtins
import codecs
import socket
from dataclasses import dataclass
from typing import Any, Final

import hiredis
import redis
import redis.asyncio
import redis.asyncio.sentinel
import redis.sentinel
from redis.asyncio.connection import AbstractConnection
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import ConstantBackoff, NoBackoff
from redis.exceptions import ConnectionError, TimeoutError
from redis.retry import Retry

from registry.store.sentinel import (
    AsyncMasterConnection,
    AsyncMasterSSLConnection,
    MasterConnection,
    MasterSSLConnection,
)
from registry.store.slot_master import AsyncSlotMaster, SlotMaster, slot_of
from registry.store.url import StoreUrl, parse

CONNECT_TIMEOUT_S = 1.0
REPLY_TIMEOUT_S = 2.5  # below the 3 s that clients give a route query
ASK_TIMEOUT_S = 0.5  # for a Sentinel or a Cluster's server that is asked for the address of the master
BLOCK_MS = 1000  # how long a follower's read may wait for the next entry
RETRY_PAUSE_S = 0.01
CLOSED = "the handler is closed"  # how uvloop ends what it says of a closed transport
DEFAULT_NAMESPACE = "default"
UNNAMED: Final[dict[str, Any]] = {"driver_info": None}  # no CLIENT SETINFO, a command that Redis 7.0 has not
OVER_TCP: Final[dict[str, Any]] = {
    "socket_keepalive": True,
    "socket_keepalive_options": {
        socket.TCP_KEEPIDLE: 30,
        socket.TCP_KEEPINTVL: 5,
        socket.TCP_KEEPCNT: 3,
        socket.TCP_USER_TIMEOUT: int(REPLY_TIMEOUT_S * 1000),
    },
}
"""TCP_USER_TIMEOUT (Linux, ms) drops requests that the peer's kernel has not acknowledged: one that was refused to its
caller must not be delivered when the network is back, after later requests. A proxy acknowledges for the store: what it
delays may still come then (docs/redis.md)."""


def _half_pairs(error: UnicodeError) -> tuple[str | bytes, int]:
    """Take half a surrogate pair, which JSON may spell, as itself, any other byte that is no UTF-8 as PEP 383 does."""
    try:
        return codecs.lookup_error("surrogatepass")(error)
    except UnicodeError:
        return codecs.lookup_error("surrogateescape")(error)


ANY_BYTES: Final = "redis-namesrv.any-bytes"
codecs.register_error(ANY_BYTES, _half_pairs)


TEXT: Final = frozenset((str, bytes))


class _Packer:
    """Packs commands in C, as redis-py's does, and takes any text that a reply had.

    Numbers are spelt before: hiredis (3.5.0) reads the result of `PyObject_Repr`, which is NULL where a signal's
    handler raises in it, as RQ's do, and the process ended with SIGSEGV."""

    @staticmethod
    def pack(*args: Any) -> list[bytes]:
        words = (*args[0].split(), *args[1:])
        if not TEXT.issuperset(map(type, words)):
            words = tuple(map(_spelt, words))
        try:
            return [hiredis.pack_command(words)]
        except UnicodeEncodeError:
            return [hiredis.pack_command(tuple(map(_as_bytes, words)))]


def _spelt(word: Any) -> Any:
    return repr(word) if type(word) is int or isinstance(word, float) else word


def _as_bytes(word: Any) -> Any:
    return word.encode(errors=ANY_BYTES) if isinstance(word, str) else word


COMMON: Final[dict[str, Any]] = {
    "decode_responses": True,
    "encoding_errors": ANY_BYTES,  # no name or value may break the pipeline that it shares with others
    "socket_connect_timeout": CONNECT_TIMEOUT_S,
}
PACKED: Final[dict[str, Any]] = {"command_packer": _Packer()}
"""A setting of sync connections: async ones of redis-py have none such (`_our_connection`)."""


def connect(url: str, namespace: str = DEFAULT_NAMESPACE) -> redis.Redis:
    """Return a client for plans and jobs; it retries once when the server has closed the connection.

    It talks to the master; on a Cluster, to the one of the namespace's slot. Raises ValueError for a malformed URL
    (`registry.store.url`)."""
    retry = Retry(ConstantBackoff(RETRY_PAUSE_S), 1, supported_errors=(ConnectionError,))
    settings = COMMON | PACKED | {"socket_timeout": REPLY_TIMEOUT_S}
    return _client(SYNC, url, namespace, retry=retry, **settings)  # type: ignore[no-any-return]


def connect_once(url: str, namespace: str, timeout_s: float) -> redis.Redis:
    """Return a client without retries; `timeout_s` is for a connect and for a reply."""
    settings = COMMON | PACKED | {"socket_timeout": timeout_s, "socket_connect_timeout": timeout_s}
    return _client(SYNC, url, namespace, retry=Retry(NoBackoff(), 0), **settings)  # type: ignore[no-any-return]


def connect_queue(url: str, **settings: Any) -> redis.Redis:
    """Return a client for RQ: replies are bytes, retries redis-py's. ValueError for a Cluster: RQ uses many slots."""
    if parse(url).kind == "cluster":
        raise ValueError("RQ cannot work on a Redis Cluster")
    return _client(SYNC, url, DEFAULT_NAMESPACE, **settings, **PACKED)  # type: ignore[no-any-return]


def connect_async(url: str, namespace: str = DEFAULT_NAMESPACE) -> redis.asyncio.Redis:
    """Return a client as `connect` does, for an event loop; its user says how long it waits for a reply
    (`registry.store.pipeline`)."""
    retry = AsyncRetry(ConstantBackoff(RETRY_PAUSE_S), 1, supported_errors=(ConnectionError,))
    store = _client(ASYNC, url, namespace, socket_timeout=None, retry=retry, **COMMON)
    return _with_our_connections(store)


def connect_follower(url: str, namespace: str = DEFAULT_NAMESPACE) -> redis.asyncio.Redis:
    """Return a client for reads that block for BLOCK_MS at most; its user reconnects, and says how long it waits.

    It connects once: redis-py would connect again before a command, without a word, where a connection has ended since
    the last one, and what is read next may be of another store."""
    retry = AsyncRetry(ConstantBackoff(RETRY_PAUSE_S), 0)
    store = _client(ASYNC, url, namespace, socket_timeout=None, retry=retry, **COMMON)
    return _with_our_connections(store, once=True)


class _AsyncPool(redis.asyncio.sentinel.SentinelConnectionPool):
    """Closes its manager's connections with its own: redis-py leaves them to the garbage collector."""

    async def aclose(self) -> None:
        await super().aclose()
        await self.sentinel_manager.aclose()


@dataclass(frozen=True, slots=True)
class _RedisPy:
    """The classes of redis-py's sync or async client, and ours that belong to them."""

    client: Any
    server_pool: Any
    pool: Any
    retry: Any
    sentinel: Any
    slot_master: Any
    connections: tuple[type, type]
    """To a master: plain, over TLS."""


SYNC = _RedisPy(
    redis.Redis,
    redis.ConnectionPool,
    redis.sentinel.SentinelConnectionPool,
    Retry,
    redis.sentinel.Sentinel,
    SlotMaster,
    (MasterConnection, MasterSSLConnection),
)
ASYNC = _RedisPy(
    redis.asyncio.Redis,
    redis.asyncio.ConnectionPool,
    _AsyncPool,
    AsyncRetry,
    redis.asyncio.sentinel.Sentinel,
    AsyncSlotMaster,
    (AsyncMasterConnection, AsyncMasterSSLConnection),
)


def _client(redis_py: _RedisPy, url: str, namespace: str, **settings: Any) -> Any:
    at = parse(url)
    settings |= UNNAMED
    if "path" not in at.settings:
        settings |= OVER_TCP
    if at.kind == "server":
        return _client_of(redis_py, redis_py.server_pool.from_url(url, **settings))
    asking = _asking_settings(redis_py, at)
    if at.kind == "sentinel":
        master, manager = at.service, redis_py.sentinel(at.nodes, sentinel_kwargs=asking)
    else:
        slot = slot_of(namespace)
        master, manager = f"slot {slot}", redis_py.slot_master(slot, at.nodes, asking)
    connection = redis_py.connections[at.settings["ssl"]]
    pool = redis_py.pool(master, manager, connection_class=connection, **settings | at.settings)
    return _client_of(redis_py, pool)


def _client_of(redis_py: _RedisPy, pool: Any) -> Any:
    """Return a client whose replies have the same shapes whatever the URL says: redis-py has others with `protocol=3`,
    which is what it asks for without that too, and with `legacy_responses=false`."""
    if pool.connection_kwargs.get("protocol") == 3:
        del pool.connection_kwargs["protocol"]
    pool.connection_kwargs.pop("legacy_responses", None)
    return redis_py.client.from_pool(pool)


def _asking_settings(redis_py: _RedisPy, at: StoreUrl) -> dict[str, Any]:
    """Return the settings of connections that ask for the master: to a Cluster's servers, or to Sentinels, which have
    a login of their own."""
    own = ("ssl",) if at.kind == "sentinel" else ("ssl", "username", "password")
    return {
        **{name: value for name, value in at.settings.items() if name.startswith(own)},
        **at.sentinel,
        "socket_timeout": ASK_TIMEOUT_S,
        "socket_connect_timeout": ASK_TIMEOUT_S,
        "retry": redis_py.retry(NoBackoff(), 0),
        **UNNAMED,
    }


def _with_our_connections(store: Any, *, once: bool = False) -> redis.asyncio.Redis:
    """Have a client make connections of `_our_connection`."""
    pool = store.connection_pool
    pool.connection_class = _our_connection(pool.connection_class, once=once)
    return store  # type: ignore[no-any-return]


def _our_connection(kind: type[AbstractConnection], *, once: bool) -> type[AbstractConnection]:
    """Return a class of connection that packs commands in C, as redis-py does for its sync ones only, and is made
    within the time of a reply: redis-py tries again where a server accepts and then says nothing.

    It raises ConnectionError where the peer has reset it before something is sent, or one over which the master was
    asked for: uvloop raises RuntimeError then. One that connects `once` raises it, too, where it has ended."""

    class OurConnection(kind):  # type: ignore[misc,valid-type]
        _was_connected = False

        async def connect(self) -> None:
            if self.is_connected:  # redis-py asks for it before each command
                return
            if once and self._was_connected:
                raise ConnectionError("the connection has ended")
            await super().connect()
            self._was_connected = True

        async def connect_check_health(self, *args: Any, **options: Any) -> None:
            try:
                async with asyncio.timeout(REPLY_TIMEOUT_S):
                    await super().connect_check_health(*args, **options)
            except builtins.TimeoutError:
                await self.disconnect(nowait=True)
                raise TimeoutError("Timeout connecting to server") from None
            except RuntimeError as error:
                raise _reset_before(error) from error

        async def send_packed_command(self, *args: Any, **options: Any) -> None:
            try:
                await super().send_packed_command(*args, **options)
            except RuntimeError as error:
                raise _reset_before(error) from error

        def pack_command(self, *args: Any) -> list[bytes]:
            return _Packer.pack(*args)

    return OurConnection


def _reset_before(error: RuntimeError) -> ConnectionError:
    """Return the error of a connection that uvloop closed before anything was sent. Raises `error` if it is another."""
    if not str(error).endswith(CLOSED):
        raise error
    return ConnectionError("the connection was closed before anything was sent")
