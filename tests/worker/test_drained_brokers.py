"""Permissions that operators write of a drained broker: replies are Java's, lines of the log say what they cannot."""

import json

import pytest
import redis as redis_py
from redis.exceptions import ResponseError

from mqnamesrv.store import EmbeddedStore
from registry.clock import TIME
from registry.drains import Drain, DrainedBroker, drain, drain_of, undrain
from registry.drivers import run
from registry.errors import StoreUnavailable
from registry.keys import Keys
from registry.plans import Origin, Plan
from testbed.eventually import eventually_async
from tests.logged import logged
from tests.worker.scene import Broker, Scene, asynchronous, serving

A, B = Broker("broker-a", "127.0.0.1:10911"), Broker("broker-b", "127.0.0.3:10911")
KEYS, ORIGIN = Keys("default"), Origin("t-1", "job:test")
QUEUES = {"readQueueNums": 8, "writeQueueNums": 8, "perm": 6, "topicSysFlag": 0}
WARNING = (
    "request %d of 127.0.0.1:40000 wrote permissions of drained brokers: 'broker-a' (1): routes show no write "
    "permission there before their drains end; mqns drains lists these, mqns undrain ends one"
)


def route(*names: str) -> bytes:
    """Return the body of request 217."""
    queues = [QUEUES | {"brokerName": name} for name in names]
    return json.dumps({"brokerDatas": [], "queueDatas": queues}).encode()


async def perm(scene: Scene) -> int:
    return int((await scene.route())["queueDatas"][0]["perm"])


@pytest.mark.parametrize(
    ("code", "ext", "body", "replied", "after"),
    [
        (205, {"brokerName": "broker-a"}, b"", {"wipeTopicCount": "2"}, 4),
        (327, {"brokerName": "broker-a"}, b"", {"addTopicCount": "2"}, 6),
        (217, {"topic": "TA"}, route("broker-a"), None, 6),
        (217, {"topic": "TB"}, route("broker-b", "broker-a"), None, 6),
    ],
)
@asynchronous
async def test_a_write_to_a_drained_broker_is_logged_and_ends_no_drain(
    store: EmbeddedStore,
    redis: redis_py.Redis,
    caplog: pytest.LogCaptureFixture,
    code: int,
    ext: dict[str, str],
    body: bytes,
    replied: dict[str, str] | None,
    after: int,
) -> None:
    async with serving(store.url) as scene:
        await scene.register(A)
        before = await scene.ask(code, body, ext)
        assert logged(caplog) == []
        await scene.register(A, A.body(2))
        run(drain(KEYS, "broker-a", Drain("alice", "upgrade"), ORIGIN), redis)
        reply = await scene.ask(code, body, ext)
        assert (reply.code, reply.remark, reply.ext, reply.body) == (0, None, replied, b"")
        assert (before.code, before.remark, before.ext, before.body) == (0, None, replied, b"")
        assert logged(caplog) == [WARNING % code]
        await eventually_async(lambda: comes_to(scene, 4))
        assert run(drain_of(KEYS, "broker-a"), redis) is not None
        run(undrain(KEYS, "broker-a", ORIGIN), redis)
        await eventually_async(lambda: comes_to(scene, after))


async def comes_to(scene: Scene, wanted: int) -> bool:
    return await perm(scene) == wanted


@pytest.mark.parametrize("error", [StoreUnavailable("gone"), ResponseError("NOPERM")])
@asynchronous
async def test_the_reply_does_not_fail_with_what_is_only_logged(
    store: EmbeddedStore, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """The write is done, whether it can be read or not that the broker is drained."""

    def failing(keys: Keys, names: tuple[str, ...]) -> Plan[tuple[DrainedBroker, ...]]:
        yield TIME
        raise error

    monkeypatch.setattr("worker.handlers.drain_warning.drained_brokers", failing)
    async with serving(store.url) as scene:
        await scene.register(A)
        reply = await scene.ask(327, b"", {"brokerName": "broker-a"})
        assert (reply.code, reply.ext) == (0, {"addTopicCount": "2"})
