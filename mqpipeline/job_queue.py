"""The name server's job queue (RQ), on which `mqpipeline work` and `mqpipeline answer` listen.

The name server's side of both queues is worker/jobs/timetable.py (runs) and api/history_queue.py (questions).
"""

import socket
from typing import Any, Final

import redis
from redis.connection import Encoder, PythonRespSerializer  # type: ignore[attr-defined]
from redis.exceptions import ConnectionError
from redis.sentinel import MasterNotFoundError, Sentinel, SentinelConnectionPool, SentinelManagedConnection

from pyspark_redis_stream.url import parse

RUNS, QUESTIONS = "pipeline-runs", "pipeline"
CONNECT_TIMEOUT_S = 1.0
SENTINEL_TIMEOUT_S = 0.5
COMMON: Final[dict[str, Any]] = {
    "socket_connect_timeout": CONNECT_TIMEOUT_S,
    "driver_info": None,  # no CLIENT SETINFO, a command that Redis 7.0 has not
    # Not hiredis's (3.5.0): where a signal's handler raises while it packs a number, as RQ's do, the process is ended.
    "command_packer": PythonRespSerializer(6000, Encoder("utf-8", "strict", False).encode),  # type: ignore[no-untyped-call]
}
OVER_TCP: Final[dict[str, Any]] = {
    "socket_keepalive": True,
    "socket_keepalive_options": {
        socket.TCP_KEEPIDLE: 30,
        socket.TCP_KEEPINTVL: 5,
        socket.TCP_KEEPCNT: 3,
        socket.TCP_USER_TIMEOUT: 2500,  # ms
    },
}


def queue_name(queue: str, namespace: str) -> str:
    """Return the name of RUNS or QUESTIONS for a namespace: one Redis may serve several name servers."""
    return f"{queue}:{namespace}"


def connect_queue(url: str) -> redis.Redis:
    """Return a client for RQ, whose replies are bytes; with a Sentinel URL, of the master at each connect.

    Raises ValueError for a URL of no known form, and for a Cluster: RQ's keys are in many slots."""
    at = parse(url)
    if at.kind == "cluster":
        raise ValueError("RQ cannot work on a Redis Cluster")
    settings = COMMON if "path" in at.settings else COMMON | OVER_TCP
    if at.kind == "server":
        return redis.Redis.from_url(url, **settings)
    asking = {
        **{name: value for name, value in at.settings.items() if name.startswith("ssl")},
        **at.sentinel,
        "socket_timeout": SENTINEL_TIMEOUT_S,
        "socket_connect_timeout": SENTINEL_TIMEOUT_S,
        "driver_info": None,
    }
    sentinel = Sentinel(at.nodes, sentinel_kwargs=asking)  # type: ignore[no-untyped-call]
    kind = _MasterSSLConnection if at.settings["ssl"] else _MasterConnection
    pool = SentinelConnectionPool(  # type: ignore[no-untyped-call]
        at.service, sentinel, connection_class=kind, **at.settings, **settings
    )
    return redis.Redis.from_pool(pool)


class _MasterConnection(SentinelManagedConnection):
    """Asks the Sentinels at every connect. redis-py's own asks when the pool connects it only: a connection that breaks
    under a command would go back to the server that was the master."""

    def connect(self) -> None:
        redis.Connection.connect(self)  # type: ignore[no-untyped-call]

    def connect_check_health(self, *args: Any, **options: Any) -> None:
        if not self._sock:
            try:
                self.host, self.port = self.connection_pool.get_master_address()
            except MasterNotFoundError:  # its text names every setting of every Sentinel
                raise ConnectionError(
                    f"no Sentinel knows the master of {self.connection_pool.service_name}"
                ) from None
        super().connect_check_health(*args, **options)


class _MasterSSLConnection(_MasterConnection, redis.SSLConnection):
    """Over TLS."""
