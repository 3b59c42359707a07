"""Whether what we started answers: asked from outside, as a peer, a browser and an operator would."""

import http.client
import socket
import ssl
from collections.abc import Callable

import redis
from rq import Worker
from rq.cron import CronScheduler

from launcher.child import Child
from launcher.listeners import reachable
from registry.options import Options
from registry.store import connect_queue
from remoting.codes import RequestCode
from remoting.command import encode
from remoting.frame import FrameReader
from remoting.remoting_command import Command

TIMEOUT_S = 0.5
GET_CONFIG = Command(code=RequestCode.GET_NAMESRV_CONFIG, opaque=1)


def remoting_answers(options: Options) -> bool:
    """Whether listenPort answers request 319. In enforcing TLS mode a TLS peer counts: it may want our certificate."""
    try:
        with socket.create_connection(
            (reachable(options.bind_address), options.listen_port), TIMEOUT_S
        ) as connection:
            if options.tls_server_mode == "enforcing":
                return _speaks_tls(connection)
            connection.sendall(encode(GET_CONFIG))
            reader = FrameReader()
            while data := connection.recv(65536):
                reader.feed(data)
                if answer := reader.next_command():
                    return answer.opaque == GET_CONFIG.opaque
    except OSError:
        return False
    return False


def _speaks_tls(connection: socket.socket) -> bool:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        context.wrap_socket(connection).close()
    except ssl.SSLError as error:
        return "ALERT" in (error.reason or "")
    return True


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
