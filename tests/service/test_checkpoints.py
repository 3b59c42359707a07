"""A stream that is deleted while the service runs: a checkpoint round follows, also if its process is killed."""

import signal
from collections.abc import Callable

import pytest

from registry.drivers import run
from registry.events.replay import UNKNOWN, replay
from registry.registration.register import register
from rocketmq_remoting.codes import RequestCode
from testbed.connection import Connection
from testbed.eventually import eventually
from testbed.nameserver import NameServer
from testbed.processes import Family, send
from tests.registry.brokers import origin, registration
from tests.registry.stored import Store, assert_replays, entries

MANY = tuple(f"topic-with-a-usual-name-{number:05}" for number in range(4000))
ROUND_WITHIN_S = 40.0  # a new job worker takes a second or two, on a busy machine some more


@pytest.mark.timeout(120)
def test_a_deleted_stream_gets_a_checkpoint_though_the_job_worker_is_killed(
    launch: Callable[..., NameServer],
) -> None:
    server = launch()
    keys = server.keys
    with server.store() as store:
        for number in range(3):
            run(register(keys, registration(f"b{number}", topics=MANY), origin()), store)
        store.delete(keys.events)
        run(register(keys, registration("b3"), origin()), store)
        eventually(lambda: store.hget(keys.events_round, "at"), ROUND_WITHIN_S)
        send(signal.SIGKILL, *Family.of(server.pid).job_workers)
        eventually(lambda: ended(server, store), ROUND_WITHIN_S)
        written = entries(store, keys)
        assert (written[0].cause, [one.cause for one in written if one.get("scope") == "begin"]) == (
            "stream_lost",
            ["start"],
        )
        late = replay(UNKNOWN, written)
        assert late.whole
        assert_replays(store, keys, late)
    reply = Connection(server.port).ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": MANY[-1]})
    assert reply.code == 0


def ended(server: NameServer, store: Store) -> bool:
    return bool(store.hget(server.keys.events_round, "at") == "done")
