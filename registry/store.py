"""Connections to the store: short retries and time-outs, so that a dead Redis is noticed and not waited for."""

from typing import Any, Final

import hiredis
import redis
import redis.asyncio
from redis.asyncio.connection import AbstractConnection
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import ConstantBackoff
from redis.exceptions import ConnectionError
from redis.retry import Retry

CONNECT_TIMEOUT_S = 1.0
REPLY_TIMEOUT_S = 2.5  # below the 3 s that clients give a route query
BLOCK_MS = 1000  # how long a follower's read may wait for the next entry
FOLLOW_TIMEOUT_S = 5.0  # no answer to such a read for so long: the connection is dead
RETRY_PAUSE_S = 0.01
# JSON may spell half a surrogate pair; such a name must not break the pipeline it shares with others.
COMMON: Final[dict[str, Any]] = {
    "decode_responses": True,
    "encoding_errors": "surrogatepass",
    "socket_connect_timeout": CONNECT_TIMEOUT_S,
}


def connect(url: str) -> redis.Redis:
    """A client for plans and jobs; one retry over a connection that the server has meanwhile closed."""
    retry = Retry(ConstantBackoff(RETRY_PAUSE_S), 1, supported_errors=(ConnectionError,))
    return redis.Redis.from_url(url, socket_timeout=REPLY_TIMEOUT_S, retry=retry, **COMMON)


def connect_async(url: str) -> redis.asyncio.Redis:
    """The same for an event loop."""
    retry = AsyncRetry(ConstantBackoff(RETRY_PAUSE_S), 1, supported_errors=(ConnectionError,))
    store = redis.asyncio.Redis.from_url(url, socket_timeout=REPLY_TIMEOUT_S, retry=retry, **COMMON)
    pool = store.connection_pool
    pool.connection_class = _packing(pool.connection_class)
    return store


def connect_follower(url: str) -> redis.asyncio.Redis:
    """A connection of its own for reads that block, at most BLOCK_MS; no retry, for the reader reconnects itself."""
    retry = AsyncRetry(ConstantBackoff(RETRY_PAUSE_S), 0)
    return redis.asyncio.Redis.from_url(url, socket_timeout=FOLLOW_TIMEOUT_S, retry=retry, **COMMON)


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
