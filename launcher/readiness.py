"""Whether what we started answers: asked from outside, as a peer, a browser and an operator would."""

import http.client
from collections.abc import Callable

import redis
from rq import Worker
from rq.cron import CronScheduler

from launcher.child import Child
from launcher.listeners import reachable
from registry.options import Options
from registry.store import connect_queue

TIMEOUT_S = 0.5


def http_answers(options: Options) -> bool:
    """Whether `GET /readyz` gives 200."""
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
    """Whether this child has put itself into RQ's list of workers or of schedulers."""
    client = connect_queue(url, socket_timeout=TIMEOUT_S)

    def check() -> bool:
        try:
            return any(known.pid == child.pid for known in what.all(connection=client))
        except redis.RedisError:
            return False

    return check
