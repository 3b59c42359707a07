"""The load balancer before the workers."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from faults.fleet import Fleet
from faults.looks import Look, When
from faults.places import OPTIONS, Place, Redis, answers
from faults.programs import program
from faults.row import Promise, Row, Topics
from testbed.eventually import eventually
from testbed.ports import free_port
from testbed.process import Process
from testbed.rocketmq.servers import NameServer, serve
from testbed.rocketmq.stage import Stage

AWAY_S = 1.0
STARTED_WITHIN_S, ENDED_WITHIN_S = 10.0, 5.0
CONFIG = """\
global
    maxconn 2000
defaults
    mode tcp
    timeout connect 2s
    timeout client 150s
    timeout server 150s
frontend peers
    bind 127.0.0.1:{port}
    default_backend workers
backend workers
    server workers 127.0.0.1:{workers} send-proxy-v2 check
"""
"""Time-outs are longer than a name server has for peers that are idle, 120 s."""


class Balancer:
    """HAProxy in TCP mode, which sends workers the client's address by the PROXY protocol."""

    def __init__(self, stage: Stage, workers: int) -> None:
        self.port = free_port()
        self._stage = stage
        self._config = stage.folder / "haproxy.cfg"
        self._config.write_text(CONFIG.format(port=self.port, workers=workers))
        self.process = self.begin()

    def begin(self) -> Process:
        self.process = self._stage.start("haproxy", [program("haproxy"), "-db", "-f", str(self._config)])
        return self.process

    def kill(self) -> None:
        """All connections are reset."""
        self.process.signal(signal.SIGKILL)
        self.process.await_end(ENDED_WITHIN_S)


class Balanced(Place):
    """A service that peers reach through a balancer only."""

    balancer: Balancer


def balanced(stage: Stage) -> Balanced:
    store = Redis(stage, "--appendonly", "yes")
    store.await_answer()
    server = serve(stage, "ours", OPTIONS | {"redisUrl": store.url})
    balancer = Balancer(stage, server.port)
    front = NameServer("ours", server.process, balancer.port)
    eventually(lambda: answers(front), STARTED_WITHIN_S)
    place = Balanced(stage, server, servers=(front,), variables={"REDIS_URL": store.url})
    place.balancer = balancer
    return place


@contextmanager
def restarted(place: Balanced, fleet: Fleet) -> Iterator[None]:
    place.balancer.kill()
    yield
    place.balancer.begin()


ROWS = (
    Row(
        name="balancer-restart",
        title=f"HAProxy killed with all connections, back after {AWAY_S:g} s",
        place=balanced,
        fault=restarted,
        lasts_s=AWAY_S,
        promise=Promise(lookups_fail=Topics.ALL, registrations_fail=True, recovers_s=2.0),
        look=Look(shows=['result="reachable"} [1-9]'], when=When.OVER),
    ),
)
