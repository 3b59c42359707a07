"""Registrations and heartbeats by what came of them, and the line of a refused one, on a real store."""

import logging
from bisect import bisect_left
from typing import Any

import pytest

from mqnamesrv.store import EmbeddedStore
from rocketmq_remoting.remoting_command import ONEWAY_FLAG
from testbed.eventually import eventually_async
from tests.worker.registrations import body_of, registration
from tests.worker.scene import Broker, Scene, asynchronous, serving
from tests.worker.test_counters import Values, values
from worker import answered_brokers
from worker.logs.rate_limited_log import RateLimitedLog

RESULTS = "registration_events_total"
TIMED = "registration_duration_seconds"
BODIES = "registration_body_bytes"
HEARTBEATS = "heartbeats_total"
LIMITS = "limit_refusals_total"


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Log each line of a test, whatever others logged."""
    log = logging.getLogger(answered_brokers.__name__)
    monkeypatch.setattr(answered_brokers, "log", RateLimitedLog(log))


def by_label(found: Values, name: str) -> dict[str, float]:
    """Return the values of a metric with one label that are not 0."""
    return {labels[1]: value for labels, value in found.items() if labels[0] == name}


async def answered(scene: Scene, *registrations: bytes) -> dict[str, float]:
    """Return what came of registrations of one broker, each of which had to be counted, timed and measured."""
    for body in registrations:
        await scene.register(Broker(), body)
    found = values(scene)
    results = by_label(found, RESULTS)
    assert sum(results.values()) == found[BODIES,] == len(registrations)
    return results


@asynchronous
async def test_registrations_by_what_came_of_them(store: EmbeddedStore) -> None:
    async with serving(store.url) as scene:
        first, changed = Broker().body(), Broker().body(2, TA=6, TC=6)
        results = await answered(scene, first, first, changed, changed, b"{")
        assert results == {"new": 1, "changed": 1, "unchanged": 2, "rejected": 1}
        found = values(scene)
        assert by_label(found, TIMED) == results
        assert by_label(found, HEARTBEATS) == {"103": 4}


@asynchronous
async def test_a_registration_that_is_known_by_its_bytes_is_unchanged(store: EmbeddedStore) -> None:
    async with serving(store.url) as scene:
        for stamp in range(6):
            scene.peer.receive(registration(body_of(stamp, 10)), scene.service)
            await scene.peer.sent.get()
        found = values(scene)
        assert scene.service.counters.by_bytes()[103] == 4
        assert by_label(found, RESULTS) == {"new": 1, "unchanged": 5}
        assert by_label(found, HEARTBEATS) == {"103": 6}
        bodies = scene.service.counters.bodies()
        assert bodies.sum == 6 * len(body_of(1, 10))
        assert bodies.counts[bisect_left(bodies.bounds, len(body_of(1, 10)))] == 6


@asynchronous
async def test_a_member_that_was_removed_is_new_again(store: EmbeddedStore) -> None:
    async with serving(store.url) as scene:
        await scene.register(Broker())
        await scene.ask(104, ext=Broker().ext)
        await scene.register(Broker())
        assert by_label(values(scene), RESULTS) == {"new": 2}


@asynchronous
async def test_a_slave_that_joins_is_new(store: EmbeddedStore) -> None:
    async with serving(store.url) as scene:
        await scene.register(Broker())
        await scene.register(Broker(address="127.0.0.10:1", id=1))
        assert by_label(values(scene), RESULTS) == {"new": 2}


@asynchronous
async def test_accepted_heartbeats_by_their_request(store: EmbeddedStore) -> None:
    async with serving(store.url) as scene:
        await scene.register(Broker())
        for _ in range(3):
            await scene.ask(904, ext=Broker().ext)
        for code in (322, 322, 904):
            await scene.ask(code, ext=Broker().ext | {"brokerAddr": "127.0.0.77:1"})  # is no member
        await scene.ask(322, ext=Broker().ext)
        scene.send(904, ext=Broker().ext, flag=ONEWAY_FLAG)
        assert scene.service.counters.by_bytes()[904] == 2
        await eventually_async(lambda: by_label(values(scene), HEARTBEATS) == {"103": 1, "322": 1, "904": 4})


@pytest.mark.parametrize(
    ("ext", "body", "reason"),
    [
        pytest.param({"bodyCrc32": "1"}, None, "crc32 not match", id="checksum"),
        pytest.param({"brokerId": "x"}, None, "the custom field <brokerId> is null", id="field"),
        pytest.param({}, b"{", "Failed to decode RegisterBrokerBody", id="body"),
        pytest.param({}, Broker().body(1, One=6), "a first registration with one topic", id="one topic"),
        pytest.param({"brokerName": "b" * 600}, None, "more than maxNameBytes=512", id="limit"),
        pytest.param({"brokerAddr": "a" * (1 << 17)}, None, "brokerAddr has more than", id="overlong"),
    ],
)
@asynchronous
async def test_a_refused_registration_is_counted_and_said(
    store: EmbeddedStore,
    caplog: pytest.LogCaptureFixture,
    ext: dict[str, str],
    body: bytes | None,
    reason: str,
) -> None:
    with caplog.at_level(logging.WARNING):
        async with serving(store.url) as scene:
            for _ in range(3):
                await scene.register(Broker(), body, ext)
            found = values(scene)
    assert by_label(found, RESULTS) == {"rejected": 3}
    assert by_label(found, LIMITS) == ({"maxNameBytes": 3} if "max" in reason else {})
    (line,) = [record.getMessage() for record in caplog.records if "was refused" in record.getMessage()]
    for text in (
        f"broker {ext.get('brokerName', 'broker-a')[:64]} at ",
        "cluster c1",
        "127.0.0.1:40000",
        reason,
    ):
        assert text in line
    assert len(line) < 600


@asynchronous
async def test_each_reason_has_a_line(store: EmbeddedStore, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        async with serving(store.url) as scene:
            for _ in range(3):
                await scene.register(Broker(), b"{")
                await scene.register(Broker(), ext={"bodyCrc32": "1"})
    assert sum("was refused" in record.getMessage() for record in caplog.records) == 2


@asynchronous
async def test_a_newcomer_with_a_lower_state_version(
    store: EmbeddedStore, caplog: pytest.LogCaptureFixture
) -> None:
    newer = Broker().body().replace(b'"counter"', b'"stateVersion": 2, "counter"')
    with caplog.at_level(logging.WARNING):
        async with serving(store.url) as scene:
            await scene.register(Broker(), newer)
            await scene.register(Broker(address="127.0.0.10:1"))
            found = values(scene)
    assert by_label(found, RESULTS) == {"new": 1, "conflict": 1}
    assert by_label(found, HEARTBEATS) == {"103": 1}
    assert "at 127.0.0.10:1 in cluster c1" in caplog.text
    assert "another address has its id" in caplog.text


@asynchronous
async def test_refusals_of_growth_are_counted_of_all_requests(store: EmbeddedStore) -> None:
    async with serving(store.url, max_kv_namespaces=1, max_brokers=1, max_percent_of_host=100) as scene:
        await scene.register(Broker())
        await scene.register(Broker("broker-b", "127.0.0.10:1"))
        for namespace in ("n1", "n2", "n3"):
            await scene.ask(100, namespace=namespace, key="k", value="v")
        assert by_label(values(scene), LIMITS) == {"maxBrokers": 1, "maxKvNamespaces": 2}


@pytest.mark.parametrize(
    ("option", "limit", "code"),
    [
        pytest.param(
            "client_request_thread_pool_queue_capacity", "clientRequestThreadPoolQueueCapacity", 105, id="105"
        ),
        pytest.param("default_thread_pool_queue_capacity", "defaultThreadPoolQueueCapacity", 103, id="103"),
        pytest.param("un_register_broker_queue_capacity", "unRegisterBrokerQueueCapacity", 104, id="104"),
    ],
)
@asynchronous
async def test_refusals_of_requests_that_would_wait(
    store: EmbeddedStore, option: str, limit: str, code: int
) -> None:
    one: dict[str, Any] = {option: 1}
    async with serving(store.url, **one) as scene:
        for number in range(3):
            scene.send(code, Broker().body(), {**Broker().ext, "topic": f"T{number}"})
        for _ in range(3):
            await scene.peer.sent.get()
        found = values(scene)
        assert by_label(found, LIMITS) == {limit: 2}
        if code == 103:
            assert by_label(found, RESULTS) == {"new": 1, "rejected": 2}
