"""The list of name servers that a whole server answers: its own workers, while they are ready."""

import http.client
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from testbed.eventually import eventually
from testbed.nameserver import NameServer
from testbed.processes import Family, send

Answer = tuple[int, str]


def asked(server: NameServer) -> Answer:
    """Return status and text of an answer."""
    where = server.said().partition(" http=")[2].partition(" ")[0]
    connection = http.client.HTTPConnection(where, timeout=10)
    try:
        connection.request("GET", "/rocketmq/nsaddr")
        reply = connection.getresponse()
        return reply.status, reply.read().decode()
    finally:
        connection.close()


@contextmanager
def asking(server: NameServer) -> Iterator[set[Answer]]:
    """Yield all answers of a client that asks again and again."""
    answers, ended = {asked(server)}, threading.Event()

    def ask() -> None:
        while not ended.wait(0.05):
            answers.add(asked(server))

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield answers
    finally:
        ended.set()
        thread.join()


def test_a_reload_leaves_no_moment_without_a_name_server(launch: Callable[..., NameServer]) -> None:
    server = launch()
    own = (200, f"127.0.0.1:{server.port}\n")
    eventually(lambda: asked(server) == own)
    with server.store() as store, asking(server) as answers:
        before = set(store.zrange(server.keys.announced, 0, -1))
        assert len(before) == server.workers
        send(signal.SIGHUP, Family.of(server.pid).remoting_master)
        eventually(
            lambda: len(set(store.zrange(server.keys.announced, 0, -1)) - before) == server.workers, 30
        )
    assert answers == {own}
