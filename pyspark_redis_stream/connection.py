"""Clients for every kind of URL (a server, a socket file, TLS, Sentinel, Cluster), and trying again."""

import logging
import time
from collections.abc import Callable
from typing import Any, TypeVar

import redis
from redis.backoff import NoBackoff
from redis.cluster import ClusterNode, RedisCluster
from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    ClusterDownError,
    ClusterError,
    ConnectionError,
    MasterDownError,
    ReadOnlyError,
    RedisClusterException,
    TimeoutError,
    TryAgainError,
)
from redis.retry import Retry
from redis.sentinel import Sentinel

from pyspark_redis_stream.options import Options
from pyspark_redis_stream.url import parse

T = TypeVar("T")
Client = Any  # redis.Redis or RedisCluster, whose types say little
PAUSE_S, LONGEST_PAUSE_S = 0.05, 1.0
log = logging.getLogger(__name__)
AWAY = (
    ClusterDownError,
    ClusterError,
    ConnectionError,
    MasterDownError,
    OSError,
    ReadOnlyError,
    RedisClusterException,
    TimeoutError,
    TryAgainError,
)
REFUSED = (AuthenticationError, AuthorizationError)  # kinds of ConnectionError that no waiting heals


class Store:
    """A client that waits for its servers to come back. Replies are bytes."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._client: Client | None = None

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        if self._client is not None:
            self._client.close()
            self._client = None

    @property
    def client(self) -> Client:
        """Connected at the first use; a Cluster's servers must be there for that."""
        if self._client is None:
            self._client = _client(self._options)
        return self._client

    def server_of(self, key: str) -> Any:
        """A client of the one server that holds the key."""
        client = self.client
        if not isinstance(client, RedisCluster):
            return client
        node = client.get_node_from_key(key)  # type: ignore[no-untyped-call]
        if node is None:
            raise ClusterDownError(f"no server has the slot of {key}")
        return client.get_redis_connection(node)

    def attempt(self, work: Callable[[], T]) -> T:
        """Do it, and again while no server can, for `retry_s` in all; then raises what the last attempt did."""
        deadline, pause, said = time.monotonic() + self._options.retry_s, PAUSE_S, False
        while True:
            try:
                return work()
            except REFUSED:
                raise
            except AWAY as error:
                if time.monotonic() + pause > deadline:
                    raise
                if pause >= LONGEST_PAUSE_S and not said:
                    said = True
                    log.warning(
                        "Redis does not answer: %s; tried again for %g s in all, look after it",
                        error,
                        self._options.retry_s,
                    )
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_S)

    def call(self, *words: Any) -> Any:
        """A command, tried again as `attempt` says."""
        return self.attempt(lambda: self.client.execute_command(*words))


def _client(options: Options) -> Client:
    """Raises ValueError for a URL of no known form, without the URL, which may hold a password."""
    settings = _settings(options)
    try:
        at = parse(options.url)
    except ValueError as error:
        raise ValueError(f"option url: {error}") from None
    if at.kind == "server":
        return redis.Redis.from_url(options.url, **settings)
    settings = {**at.settings, **settings}
    if at.kind == "cluster":
        return RedisCluster(startup_nodes=[ClusterNode(*node) for node in at.nodes], **settings)  # type: ignore[no-untyped-call]
    shared = {name: value for name, value in settings.items() if name.startswith(("ssl", "socket_", "retry"))}
    given = {"username": options.sentinel_username, "password": options.sentinel_password}
    login = at.sentinel | {name: value for name, value in given.items() if value is not None}
    sentinel = Sentinel(at.nodes, sentinel_kwargs={**shared, **login})  # type: ignore[no-untyped-call]
    return sentinel.master_for(at.service, **settings)  # type: ignore[no-untyped-call]


def _settings(options: Options) -> dict[str, Any]:
    """What the options say besides the URL; `attempt` is all there is of trying again."""
    given = {
        "username": options.username,
        "password": options.password,
        "ssl_ca_certs": options.tls_ca,
        "ssl_certfile": options.tls_cert,
        "ssl_keyfile": options.tls_key,
        "ssl_check_hostname": None if options.tls_hostname else False,
    }
    return {
        "socket_timeout": float(options.timeout_s),
        "socket_connect_timeout": float(options.timeout_s),
        "retry": Retry(NoBackoff(), 0),
        "protocol": 2,
        "driver_info": None,  # no CLIENT SETINFO: Redis 7.0 has no such command, and the pipeline's user no right to it
        **{name: value for name, value in given.items() if value is not None},
    }
