"""Operators' changes that take long, which a worker makes one at a time: 205, 327, and 216 and 217 of many brokers."""

import asyncio
import json

import pytest
import redis as redis_py

from mqnamesrv.store import EmbeddedStore
from tests.registry.namespace import Namespace
from tests.worker.scene import asynchronous, serving

BROKERS = 151
"""One more than one script deletes a topic of."""
LONG = json.dumps({"queueDatas": [{"brokerName": f"b{n}", "perm": 4} for n in range(BROKERS)]}).encode()
SHORT = json.dumps({"queueDatas": [{"brokerName": "b0", "perm": 4}]}).encode()


@pytest.fixture
def many_brokers(redis: redis_py.Redis) -> Namespace:
    ns = Namespace(redis)
    for number in range(BROKERS):
        ns.register(f"b{number}", 0, ("TA", "TB"))
    return ns


@pytest.mark.parametrize(
    ("code", "body", "fields", "waits"),
    [
        pytest.param(205, b"", {"brokerName": "b0"}, True, id="wipe"),
        pytest.param(327, b"", {"brokerName": "b0"}, True, id="restore"),
        pytest.param(216, b"", {"topic": "TA"}, True, id="delete-of-many"),
        pytest.param(216, b"", {"topic": "TA-of-none"}, False, id="delete-of-few"),
        pytest.param(217, LONG, {"topic": "TA"}, True, id="register-of-many"),
        pytest.param(217, SHORT, {"topic": "TA"}, False, id="register-of-few"),
    ],
)
@asynchronous
async def test_what_takes_long_waits_for_its_turn(
    store: EmbeddedStore, many_brokers: Namespace, code: int, body: bytes, fields: dict[str, str], waits: bool
) -> None:
    async with serving(store.url) as scene:
        limiter = scene.service.parts.rewrites.limiter
        limiter.acquire(lambda: None)
        peer = scene.connect()
        scene.send(code, body, fields, peer=peer)
        if waits:
            await asyncio.sleep(0.2)
            assert peer.sent.empty()
            limiter.release()
        assert (await peer.sent.get()).code == 0


@asynchronous
async def test_changes_in_line_take_no_place_of_other_requests(
    store: EmbeddedStore, many_brokers: Namespace
) -> None:
    async with serving(store.url, default_thread_pool_queue_capacity=1) as scene:
        limiter = scene.service.parts.rewrites.limiter
        limiter.acquire(lambda: None)
        scene.send(205, peer=scene.connect(), brokerName="b0")
        assert (await scene.ask(327, peer=scene.connect(), brokerName="b0")).code == 2
        assert (await scene.ask(106)).code == 0
        limiter.release()


@asynchronous
async def test_an_error_is_that_of_all_that_were_carried_out_as_one(
    store: EmbeddedStore, redis: redis_py.Redis, many_brokers: Namespace
) -> None:
    async with serving(store.url) as scene:
        redis.delete(many_brokers.keys.topics_of("b0"))
        redis.set(many_brokers.keys.topics_of("b0"), "no hash")
        peer = scene.connect()
        for _ in range(3):
            scene.send(205, peer=peer, brokerName="b0")
        replies = [await peer.sent.get() for _ in range(3)]
        assert {reply.code for reply in replies} == {1}
        assert (await scene.ask(205, brokerName="b1")).ext == {"wipeTopicCount": "2"}
