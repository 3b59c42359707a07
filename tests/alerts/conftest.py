"""The services of all faults: started at once, each with its faults one after the other, and a well one under load."""

import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import pytest

from testbed.access_file import AccessFile
from testbed.certificates import make_certificates
from testbed.delayed_reads import STARTUP, VARIABLE
from testbed.eventually import eventually
from tests.alerts.faults import FAULTS, MANY, PRINCIPAL, Fault, leave
from tests.alerts.recording import Recording
from tests.alerts.service import Peer, Service, repeated

BROKERS = 12
SOAK_S = 60.0
LEASE_MS = 3_600_000
"""No lease ends by itself meanwhile."""


def _options(name: str, folder: Path) -> dict[str, str]:
    if name == "small":
        file = AccessFile(folder)
        file.write(PRINCIPAL)
        return {
            "MQNS_EVENTS_MAX_BYTES": "60000",
            "MQNS_REMOTING_WORKERS": "1",
            "MQNS_ACCESS_FILE": str(file.path),
        }
    if name == "late":
        files = make_certificates(folder / "certificates").folder
        return {
            VARIABLE: "0.3",
            "PYTHONPATH": str(STARTUP),
            "MQNS_TLS_TEST_MODE_ENABLE": "false",
            "MQNS_TLS_SERVER_KEY_PATH": str(files / "server.key"),
            "MQNS_TLS_SERVER_CERT_PATH": str(files / "server.pem"),
        }
    return {}


@contextmanager
def load(service: Service) -> Iterator[None]:
    """What a well service does: lookups, heartbeats, a change now and then, requests over HTTP."""
    clients = [Peer(service) for _ in range(3)]
    broker, topics = Peer(service), itertools.cycle(("TA", "TB", "T7"))
    tables = itertools.cycle(([{"topicName": "TA"}], [{"topicName": "TA"}, {"topicName": "Sometimes"}]))
    with ExitStack() as stack:
        for client in clients:
            stack.enter_context(repeated(0.03, partial(_look_up_next, client, topics)))
        stack.enter_context(repeated(0.2, lambda: broker.register(MANY)))
        stack.enter_context(
            repeated(1, lambda: service.announce("changing", "127.0.8.1:10911", topics=next(tables)))
        )
        stack.enter_context(repeated(0.5, lambda: service.http.get("/v1/brokers")))
        yield
    leave(service, broker)


def _look_up_next(client: Peer, topics: Iterator[str]) -> None:
    client.look_up(next(topics))


def _prepare(service: Service) -> None:
    """Register brokers whose leases last, and wait until jobs run."""
    for number in range(BROKERS):
        service.announce(f"b{number}", f"127.0.1.{number}:10911", heartbeatTimeoutMillis=LEASE_MS)
    service.await_well()
    eventually(lambda: service.value("active_brokers", cluster="c1", role="master") == BROKERS)
    eventually(lambda: service.value("events_consumer_age_seconds", consumer="audit") is not None)


Recordings = dict[str, "Future[Recording]"]
SOAK = Fault("well", frozenset(), SOAK_S, load)
PLAYED = (SOAK, *FAULTS)


def _play(name: str, folder: Path, recordings: Recordings) -> None:
    """Start a service and record its faults; what goes wrong is the result of all that are not recorded yet."""
    faults = [one for one in PLAYED if one.service == name]
    folder.mkdir()
    try:
        with Service(folder, **_options(name, folder)).running() as service:
            _prepare(service)
            for one in faults:
                recordings[one.name].set_result(service.record(one.cause, one.for_s))
    except BaseException as error:
        for one in faults:
            if not recordings[one.name].done():
                recordings[one.name].set_exception(error)


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Recording]]:
    """Yield a function that waits for the recording of a fault, by its name."""
    folder = tmp_path_factory.mktemp("alerts")
    results: Recordings = {one.name: Future() for one in PLAYED}
    services = dict.fromkeys(one.service for one in PLAYED)
    with ThreadPoolExecutor(len(services)) as threads:
        for name in services:
            threads.submit(_play, name, folder / name, results)
        yield lambda name: results[name].result(timeout=170)
