"""What a worker counts of its requests, as metrics have it."""

import socket
from collections.abc import Mapping

import pytest

from metrics.catalogue import CATALOGUE, REQUEST_CODE, REQUESTS, ROUTE_CACHE_EVENTS
from metrics.counts import Observed
from mqnamesrv.store import EmbeddedStore
from testbed.eventually import eventually_async
from tests.worker.scene import Broker, Scene, asynchronous, serving
from worker.dispatch import HANDLERS
from worker.watch.boot_clock import boot_time

Values = Mapping[tuple[str, ...], float]


@pytest.fixture
def refused() -> str:
    """An address where no process listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


def values(scene: Scene, lookups: int = 0) -> Values:
    """Return what is not 0, by the name of the metric and its labels; of histograms how much was observed."""
    found: dict[tuple[str, ...], float] = {}
    for read in scene.service.counters.read(lookups):
        value = sum(read.histogram.counts) if isinstance(read, Observed) else read.value
        if value:
            found[read.metric.name, *read.labels] = value
    return found


def test_every_code_that_is_handled_has_a_label() -> None:
    assert {str(int(code)) for code in HANDLERS} | {"105", "other"} == {*REQUEST_CODE.values}


@pytest.mark.parametrize(
    ("code", "fields", "labels"),
    [
        pytest.param(105, {"topic": "T"}, ("105", "not_found"), id="no route"),
        pytest.param(101, {"namespace": "n", "key": "k"}, ("101", "not_found"), id="no KV entry"),
        pytest.param(206, {}, ("206", "ok"), id="a list"),
        pytest.param(904, {}, ("904", "error"), id="a heartbeat without an address"),
        pytest.param(7_000_000, {}, ("other", "unsupported"), id="a code that a peer made up"),
    ],
)
@asynchronous
async def test_requests_by_code_and_result(
    store: EmbeddedStore, code: int, fields: dict[str, str], labels: tuple[str, str]
) -> None:
    async with serving(store.url) as scene:
        await scene.ask(code, ext=fields)
        found = values(scene)
        assert found[REQUESTS.name, *labels] == 1
        timed = labels[0] if labels[0] in ("105", "904") else "other"
        assert found["request_duration_seconds", timed] == 1


@asynchronous
async def test_lookups_that_the_transport_answered_are_hits(store: EmbeddedStore) -> None:
    async with serving(store.url) as scene:
        found = values(scene, lookups=5)
        assert found[REQUESTS.name, "105", "ok"] == 5
        assert found[ROUTE_CACHE_EVENTS.name, "hit"] == 5


@asynchronous
async def test_what_cannot_be_read_is_counted(store: EmbeddedStore) -> None:
    async with serving(store.url) as scene:
        await scene.register(Broker(), b"{")
        await scene.register(Broker(), ext={"bodyCrc32": "1"})
        found = values(scene)
        assert found["decode_errors_total", "body"] == 1
        assert found["decode_errors_total", "crc"] == 1


@asynchronous
async def test_probes_by_what_they_found(store: EmbeddedStore, refused: str) -> None:
    async with serving(store.url) as scene:
        peer = scene.connect()
        await scene.register(Broker(address=refused), peer=peer)
        assert scene.service.metered.registered_peers == 1
        scene.disconnect(peer)
        await eventually_async(lambda: values(scene).get(("probes_total", "refused")) == 1)
        assert scene.service.metered.registered_peers == 0


@asynchronous
async def test_an_event_that_was_applied_is_fresh(store: EmbeddedStore) -> None:
    async with serving(store.url) as scene:
        await scene.register(Broker())
        found = values(scene)
        assert found["route_freshness_seconds",] >= 1
        assert found["route_cache_drops_total", "event"] >= 1


@asynchronous
async def test_connections_of_operators(store: EmbeddedStore) -> None:
    async with serving(store.url) as scene:
        peer = scene.connect()
        await scene.ask(206, peer=peer)
        assert scene.service.metered.admin_peers == 1
        scene.disconnect(peer)
        assert scene.service.metered.admin_peers == 0


@asynchronous
async def test_a_broker_that_asks_for_lists_is_one(store: EmbeddedStore) -> None:
    async with serving(store.url) as scene:
        await scene.ask(206)
        await scene.register(Broker())
        await scene.ask(206)
        metered = scene.service.metered
        assert (metered.registered_peers, metered.admin_peers) == (1, 0)


@asynchronous
async def test_a_registration_that_was_refused_makes_no_broker(store: EmbeddedStore) -> None:
    async with serving(store.url) as scene:
        assert (await scene.register(Broker(), b"{")).code
        assert scene.service.metered.registered_peers == 0


@asynchronous
async def test_a_connection_that_ended_while_its_request_waited_is_forgotten(
    store: EmbeddedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(store.url) as scene:
        later = boot_time() + 10
        monkeypatch.setattr("worker.watch.standstill.boot_time", lambda: later)
        peer = scene.connect()
        scene.send(206, peer=peer)
        scene.disconnect(peer)
        await peer.sent.get()
        assert not scene.service.parts.admins


def test_names_are_unique() -> None:
    assert len({metric.name for metric in CATALOGUE}) == len(CATALOGUE)
