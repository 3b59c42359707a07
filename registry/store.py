"""Connections to the store: short retries and time-outs, so that a dead Redis is noticed and not waited for."""

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
from redis.exceptions import ConnectionError
from redis.retry import Retry

from registry.master_connections import (
    AsyncMasterConnection,
    AsyncMasterSSLConnection,
    MasterConnection,
    MasterSSLConnection,
)
from registry.slot_master import AsyncSlotMaster, SlotMaster, slot_of
from registry.store_url import StoreUrl, parse

CONNECT_TIMEOUT_S = 1.0
REPLY_TIMEOUT_S = 2.5  # below the 3 s that clients give a route query
ASK_TIMEOUT_S = 0.5  # for a Sentinel, or a server of a Cluster, that is asked who is the master
BLOCK_MS = 1000  # how long a follower's read may wait for the next entry
FOLLOW_TIMEOUT_S = 5.0  # no answer to such a read for so long: the connection is dead
RETRY_PAUSE_S = 0.01
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
"""The last one so that what was given up, and refused to who asked for it, is not delivered when the network is back
all the same, after what was asked since. In ms, of Linux."""
# JSON may spell half a surrogate pair; such a name must not break the pipeline it shares with others.
COMMON: Final[dict[str, Any]] = {
    "decode_responses": True,
    "encoding_errors": "surrogatepass",
    "socket_connect_timeout": CONNECT_TIMEOUT_S,
}


def connect(url: str, namespace: str = DEFAULT_NAMESPACE) -> redis.Redis:
    """A client for plans and jobs; one retry over a connection that the server has meanwhile closed.

    It talks to whoever is the master; on a Cluster, to the one that has the namespace. Raises ValueError for a URL
    that is none (`registry.store_url`)."""
    retry = Retry(ConstantBackoff(RETRY_PAUSE_S), 1, supported_errors=(ConnectionError,))
    return _client(SYNC, url, namespace, socket_timeout=REPLY_TIMEOUT_S, retry=retry, **COMMON)  # type: ignore[no-any-return]


def connect_once(url: str, namespace: str, timeout_s: float) -> redis.Redis:
    """A client that tries everything once, for so long."""
    settings = COMMON | {"socket_timeout": timeout_s, "socket_connect_timeout": timeout_s}
    return _client(SYNC, url, namespace, retry=Retry(NoBackoff(), 0), **settings)  # type: ignore[no-any-return]


def connect_queue(url: str, **settings: Any) -> redis.Redis:
    """A client for RQ: replies are bytes, retries redis-py's. ValueError for a Cluster: RQ's keys are in many slots."""
    if parse(url).kind == "cluster":
        raise ValueError("RQ cannot work on a Redis Cluster")
    return _client(SYNC, url, DEFAULT_NAMESPACE, **settings)  # type: ignore[no-any-return]


def connect_async(url: str, namespace: str = DEFAULT_NAMESPACE) -> redis.asyncio.Redis:
    """As `connect`, for an event loop."""
    retry = AsyncRetry(ConstantBackoff(RETRY_PAUSE_S), 1, supported_errors=(ConnectionError,))
    store = _client(ASYNC, url, namespace, socket_timeout=REPLY_TIMEOUT_S, retry=retry, **COMMON)
    pool = store.connection_pool
    pool.connection_class = _packing(pool.connection_class)
    return store  # type: ignore[no-any-return]


def connect_follower(url: str, namespace: str = DEFAULT_NAMESPACE) -> redis.asyncio.Redis:
    """A connection of its own for reads that block, at most BLOCK_MS; no retry, for the reader reconnects itself."""
    retry = AsyncRetry(ConstantBackoff(RETRY_PAUSE_S), 0)
    return _client(ASYNC, url, namespace, socket_timeout=FOLLOW_TIMEOUT_S, retry=retry, **COMMON)  # type: ignore[no-any-return]


class _AsyncPool(redis.asyncio.sentinel.SentinelConnectionPool):
    """Closes its manager's connections with its own: redis-py leaves them to the garbage collector."""

    async def aclose(self) -> None:
        await super().aclose()
        await self.sentinel_manager.aclose()


@dataclass(frozen=True, slots=True)
class _Face:
    """The classes of one of redis-py's two faces, and those that stand beside them."""

    client: Any
    pool: Any
    retry: Any
    sentinel: Any
    slot_master: Any
    connections: tuple[type, type]
    """To a master: plain, over TLS."""


SYNC = _Face(
    redis.Redis,
    redis.sentinel.SentinelConnectionPool,
    Retry,
    redis.sentinel.Sentinel,
    SlotMaster,
    (MasterConnection, MasterSSLConnection),
)
ASYNC = _Face(
    redis.asyncio.Redis,
    _AsyncPool,
    AsyncRetry,
    redis.asyncio.sentinel.Sentinel,
    AsyncSlotMaster,
    (AsyncMasterConnection, AsyncMasterSSLConnection),
)


def _client(face: _Face, url: str, namespace: str, **settings: Any) -> Any:
    at = parse(url)
    settings |= UNNAMED
    if "path" not in at.settings:
        settings |= OVER_TCP
    if at.kind == "server":
        return face.client.from_url(url, **settings)
    asking = _asking(face, at)
    if at.kind == "sentinel":
        master, manager = at.service, face.sentinel(at.nodes, sentinel_kwargs=asking)
    else:
        slot = slot_of(namespace)
        master, manager = f"slot {slot}", face.slot_master(slot, at.nodes, asking)
    connection = face.connections[at.settings["ssl"]]
    pool = face.pool(master, manager, connection_class=connection, **at.settings, **settings)
    return face.client.from_pool(pool)


def _asking(face: _Face, at: StoreUrl) -> dict[str, Any]:
    """The settings of connections to whom we ask who is the master: a Cluster's servers, or Sentinels, whose login is
    one of its own."""
    own = ("ssl",) if at.kind == "sentinel" else ("ssl", "username", "password")
    return {
        **{name: value for name, value in at.settings.items() if name.startswith(own)},
        **at.sentinel,
        "socket_timeout": ASK_TIMEOUT_S,
        "socket_connect_timeout": ASK_TIMEOUT_S,
        "retry": face.retry(NoBackoff(), 0),
        **UNNAMED,
    }


def _packing(kind: type[AbstractConnection]) -> type[AbstractConnection]:
    """The same kind of connection with commands packed in C: redis-py does so for its synchronous ones only."""

    class Packing(kind):  # type: ignore[misc,valid-type]
        def pack_command(self, *args: Any) -> list[bytes]:
            words = args[0].split() if isinstance(args[0], str) else args[:1]
            try:
                return [hiredis.pack_command((*words, *args[1:]))]
            except UnicodeEncodeError:  # half a surrogate pair
                return super().pack_command(*args)  # type: ignore[no-any-return]

    return Packing
