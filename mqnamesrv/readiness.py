"""Readiness of started processes, checked from outside as a peer, a browser and an operator would."""

import http.client
from collections.abc import Callable

import redis
from rq import Worker
from rq.cron import CronScheduler

from mqnamesrv.child import Child
from mqnamesrv.listeners import reachable
from registry.options.catalogue import Options
from registry.store.connect import connect_queue

TIMEOUT_S = 0.5


def http_answers(options: Options) -> bool:
    """Return whether `GET /readyz` gives 200."""
    client = http.client.HTTPConnection(
        reachable(options.http_bind_address), options.http_port, timeout=TIMEOUT_S
    )
    try:
        client.request("GET", "/readyz")
        return client.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        client.close()


def registered(what: type[Worker] | type[CronScheduler], child: Child, url: str) -> Callable[[], bool]:
    """Return whether this child is in RQ's list of workers or of schedulers."""
    client = connect_queue(url, socket_timeout=TIMEOUT_S)

    def check() -> bool:
        try:
            return any(registered.pid == child.pid for registered in what.all(connection=client))
        except redis.RedisError:
            return False

    return check
