"""A stream that is lost while the service runs: a checkpoint round follows by itself, whoever carries it out dies."""

import signal
from collections.abc import Callable

import pytest

from registry.drivers import run
from registry.fold import UNKNOWN, fold
from registry.registration import register
from remoting.codes import RequestCode
from tests.harness.connection import Connection
from tests.harness.nameserver import NameServer
from tests.harness.patience import eventually
from tests.registry.brokers import act, registration
from tests.registry.stored import Store, assert_folds, entries
from tests.service.processes import Family, send

MANY = tuple(f"topic-with-a-usual-name-{number:05}" for number in range(4000))
ROUND_WITHIN_S = 40.0  # a new job worker takes a second or two, on a busy machine some more


@pytest.mark.timeout(120)
def test_a_lost_stream_is_made_up_for_though_the_job_worker_is_killed(
    launch: Callable[..., NameServer],
) -> None:
    server = launch()
    keys = server.keys
    with server.store() as store:
        for number in range(3):
            run(register(keys, registration(f"b{number}", topics=MANY), act()), store)
        store.delete(keys.events)
        run(register(keys, registration("b3"), act()), store)
        eventually(lambda: store.hget(keys.events_round, "at"), ROUND_WITHIN_S)
        send(signal.SIGKILL, *Family.of(server.pid).job_workers)
        eventually(lambda: ended(server, store), ROUND_WITHIN_S)
        told = entries(store, keys)
        assert (told[0].cause, [one.cause for one in told if one.text("scope") == "begin"]) == (
            "stream_lost",
            ["start"],
        )
        late = fold(UNKNOWN, told)
        assert late.whole
        assert_folds(store, keys, late)
    found = Connection(server.port).ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": MANY[-1]})
    assert found.code == 0


def ended(server: NameServer, store: Store) -> bool:
    return bool(store.hget(server.keys.events_round, "at") == "done")
