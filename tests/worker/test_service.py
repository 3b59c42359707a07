"""The service as a whole: encoding, one-way requests, overload, draining, its cache against the store."""

import asyncio
import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import redis as redis_py
from msgspec.structs import replace

from metrics.catalogue import FOLLOWER_CONNECTED
from metrics.samples import Sample
from mqnamesrv.store import EmbeddedStore
from registry.drivers import PIPELINES
from registry.errors import StoreUnavailable
from registry.events.entry import Event
from registry.members import lease_clock
from registry.store.connect import connect_follower
from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.command import Command
from rocketmq_remoting.remoting_command import SerializeType
from testbed.eventually import PATIENCE_S, eventually_async
from tests.logged import logged
from tests.registry.namespace import Namespace
from tests.worker.scene import Broker, Scene, asynchronous, reads_denied, serving
from worker import dispatch
from worker.cache.routes import Fill
from worker.reply import Reply, Request
from worker.watch.boot_clock import boot_time

A, B = Broker("broker-a", "127.0.0.1:10911"), Broker("broker-b", "127.0.0.3:10911")
NOWHERE = "redis://127.0.0.1:1/0"


@pytest.mark.parametrize(
    ("encoding", "kind", "replied"),
    [
        pytest.param("mirror", SerializeType.JSON, SerializeType.JSON, id="json"),
        pytest.param("mirror", SerializeType.ROCKETMQ, SerializeType.ROCKETMQ, id="binary"),
        pytest.param("json", SerializeType.ROCKETMQ, SerializeType.JSON, id="json-forced"),
    ],
)
@asynchronous
async def test_a_reply_is_encoded_like_its_request(
    store: EmbeddedStore, encoding: str, kind: SerializeType, replied: SerializeType
) -> None:
    async with serving(store.url, reply_encoding=encoding) as scene:
        for code in (105, 106, 206, 99999):
            for _ in range(2):
                answer = await scene.ask(code, kind=kind, topic="X")
                assert (answer.serialize_type, answer.flag) == (replied, 1)


@asynchronous
async def test_oneway_requests_and_responses_are_never_answered(store: EmbeddedStore) -> None:
    async with serving(store.url) as scene:
        scene.send(103, A.body(), A.ext, flag=2)
        await eventually_async(lambda: _has_broker(scene))
        for code, flag in ((105, 2), (206, 2), (99999, 2), (105, 1), (0, 1), (0, 3)):
            scene.send(code, flag=flag, topic="X")
            scene.send(code, flag=flag, topic="TA")
        assert (await scene.ask(206)).body == b'{"topicList":["TA","TB"]}'
        await asyncio.sleep(0.05)
        assert scene.peer.sent.empty()


@asynchronous
async def test_only_one_reply_that_may_be_long_is_due_to_a_connection(store: EmbeddedStore) -> None:
    """A list that is made, one that is cached, and a KV value; others are read on meanwhile."""
    async with serving(store.url) as scene:
        await scene.register(A)
        for code, awaited in ((206, 1), (206, 2), (101, 3), (105, 3), (106, 3)):
            await scene.ask(code, topic="TA", namespace="n", key="k")
            assert scene.peer.awaited_long == awaited, code


async def _has_broker(scene: Scene) -> bool:
    return b"broker-a" in (await scene.ask(106)).body


@asynchronous
async def test_a_request_without_opaque_gets_a_number(store: EmbeddedStore) -> None:
    async with serving(store.url) as scene:
        scene.service.handle(Command(206, None), scene.peer)
        answer = await asyncio.wait_for(scene.peer.sent.get(), PATIENCE_S)
        assert isinstance(answer.opaque, int)


@asynchronous
async def test_an_unexpected_error_is_code_1_in_one_line(
    store: EmbeddedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(request: Request) -> Any:
        raise ValueError("a\nb")

    monkeypatch.setitem(dispatch.HANDLERS, 206, broken)
    async with serving(store.url) as scene:
        answer = await scene.ask(206)
        assert answer.code == 1
        assert (answer.remark or "").startswith("ValueError: a")
        assert "\n" not in (answer.remark or "")


@asynchronous
async def test_what_cannot_be_encoded_is_answered_with_an_error(
    store: EmbeddedStore, redis: redis_py.Redis
) -> None:
    """And its place in the queue is given back."""
    async with serving(store.url, client_request_thread_pool_queue_capacity=2) as scene:
        redis.hset("ns:{default}:kv:n", "k", b"\xff\xfe")
        for _ in range(4):
            answer = await scene.ask(101, namespace="n", key="k")
            assert (answer.code, answer.remark) == (1, "what the store has cannot be sent: it is damaged")


@asynchronous
async def test_a_route_that_cannot_be_completed_is_answered_as_the_store_has_it(
    store: EmbeddedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All later lookups would wait for it, too."""

    def broken(*_: object) -> Any:
        raise ValueError("damaged")

    async with serving(store.url) as scene:
        await scene.register(A)
        monkeypatch.setattr(scene.service.parts.before_loss, "complete", broken)
        assert await scene.addresses() == {"broker-a": {"0": "127.0.0.1:10911"}}


def test_a_code_has_one_handler() -> None:
    with pytest.raises(ValueError, match="two handlers"):
        dispatch.handles(RequestCode.PUT_KV_CONFIG)(lambda request: dispatch.BUSY)


@asynchronous
async def test_without_the_store_nothing_is_called_missing() -> None:
    async with serving(NOWHERE) as scene:
        for code in (105, 106, 206, 103, 104, 101, 205):
            body = A.body() if code == 103 else b""
            answer = await scene.ask(code, body, A.ext, topic="TA", namespace="n", key="k")
            assert (answer.code, answer.remark) == (1, "the store cannot serve now")


FULL = "[OVERLOAD]system busy, start flow control for a while"


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        pytest.param(105, 105, (2, FULL), id="routes"),
        pytest.param(206, 224, (2, FULL), id="lists"),
        pytest.param(101, 106, (2, FULL), id="everything-else"),
        pytest.param(104, 101, (2, FULL), id="an-unregistration-takes-a-place-too"),
    ],
)
@asynchronous
async def test_more_requests_than_may_wait_are_refused_at_once(
    store: EmbeddedStore,
    redis: redis_py.Redis,
    caplog: pytest.LogCaptureFixture,
    first: int,
    second: int,
    expected: tuple[int, str],
) -> None:
    capacities: dict[str, Any] = {
        "client_request_thread_pool_queue_capacity": 1,
        "default_thread_pool_queue_capacity": 1,
    }
    async with serving(store.url, **capacities) as scene:
        redis.client_pause(400)
        scene.send(first, b"", A.ext, topic="X", namespace="n", key="k")
        answer = await scene.ask(second, peer=scene.connect(), topic="Y", namespace="n", key="k")
        assert (answer.code, answer.remark) == expected
        assert (await asyncio.wait_for(scene.peer.sent.get(), PATIENCE_S)).code in (0, 17, 22)
        assert (await scene.ask(second, topic="Y", namespace="n", key="k")).code in (0, 17, 22)
        assert scene.service.parts.counters.overloads == 1
    option = "clientRequestThreadPoolQueueCapacity" if first == 105 else "defaultThreadPoolQueueCapacity"
    assert f"{option}=1 allows; " in caplog.text
    assert f"{option}=1: of fewer than 64 requests that may wait, one peer can have all; " in caplog.text


@asynchronous
async def test_request_318_changes_no_capacity_before_the_next_start(
    store: EmbeddedStore, redis: redis_py.Redis
) -> None:
    async with serving(store.url) as scene:
        assert (await scene.ask(318, b"defaultThreadPoolQueueCapacity=1\norderMessageEnable=true")).code == 0
        await eventually_async(lambda: _has_order(scene))
        redis.client_pause(400)
        for _ in range(20):
            scene.send(101, namespace="n", key="k")
        answers = [await asyncio.wait_for(scene.peer.sent.get(), PATIENCE_S) for _ in range(20)]
        assert {answer.code for answer in answers} == {22}


async def _has_order(scene: Scene) -> bool:
    return scene.service.parts.options.order_message_enable


@asynchronous
async def test_unregistrations_beyond_their_queue_get_code_1_without_remark(
    store: EmbeddedStore, redis: redis_py.Redis
) -> None:
    async with serving(store.url, un_register_broker_queue_capacity=1) as scene:
        redis.client_pause(400)
        scene.send(104, b"", A.ext)
        answer = await scene.ask(104, b"", B.ext, peer=scene.connect())
        assert (answer.code, answer.remark) == (1, None)


@pytest.mark.parametrize(
    ("graceful", "version", "code"),
    [
        pytest.param(True, 477, 1500, id="understands-it"),
        pytest.param(True, 475, 0, id="does-not"),
        pytest.param(False, 477, 0, id="option-off"),
    ],
)
@asynchronous
async def test_a_client_that_understands_it_gets_go_away_while_the_worker_drains(
    store: EmbeddedStore, graceful: bool, version: int, code: int
) -> None:
    async with serving(store.url, enable_shutdown_gracefully=graceful) as scene:
        assert (await scene.ask(206, version=version)).code == 0
        scene.service.begin_drain()
        answer = await scene.ask(206, version=version)
        assert (answer.code, answer.remark) == (code, "please go away" if code else None)


@asynchronous
async def test_a_service_that_just_began_can_be_waited_for(
    store: EmbeddedStore, redis: redis_py.Redis
) -> None:
    async with serving(store.url, need_wait_for_service=True, wait_seconds_for_service=45) as scene:
        answer = await scene.ask(105, topic="X")
        assert (answer.code, answer.remark) == (1, "name server not ready")
        assert (await scene.ask(206)).code == 0
        redis.hincrby("ns:{default}:events:meta", "started_ms", -45_000)
        async with serving(store.url, "w2", need_wait_for_service=True) as later:
            for _ in range(2):
                assert (await later.ask(105, topic="X")).code == 17


@asynchronous
async def test_a_worker_reads_its_own_writes_and_others_soon_after(store: EmbeddedStore) -> None:
    async with serving(store.url) as first, serving(store.url, "w2") as second:
        for scene in (first, second):
            assert await scene.route() == 17
        for counter in range(2, 30):
            await first.register(A, A.body(counter, TA=counter % 8, TB=6))
            assert (await first.route())["queueDatas"][0]["perm"] == counter % 8
        await eventually_async(lambda: _perm_is(second, 29 % 8))
        await first.ask(104, b"", A.ext)
        assert await first.route() == 17
        assert (await first.ask(106)).body == b'{"brokerAddrTable":{},"clusterAddrTable":{}}'
        await eventually_async(lambda: _perm_is(second, None))


def _later(by_s: float) -> float:
    return boot_time() + by_s


def _is_cut_off(scene: Scene) -> bool:
    return not scene.service.parts.follower.connected


async def _is_ready(scene: Scene, *, ready: bool = True) -> bool:
    return ready == ((await scene.ask(RequestCode.CHECK_READINESS)).code == 0)


async def _perm_is(scene: Scene, perm: int | None) -> bool:
    route = await scene.route()
    found = None if route == 17 else route["queueDatas"][0]["perm"]
    return bool(found == perm)


def with_filters(broker: Broker, counter: int, *servers: str, topic: str) -> bytes:
    said = json.loads(broker.body(counter, **{topic: 6, f"{topic}-too": 6}))
    return json.dumps({**said, "filterServerList": servers}).encode()


@asynchronous
async def test_filter_servers_of_an_address_under_two_names_change_under_both(store: EmbeddedStore) -> None:
    first, second, address = A, Broker("broker-b", "127.0.0.1:10911"), "127.0.0.1:10911"
    async with serving(store.url) as scene:
        await scene.register(first, with_filters(first, 1, "f:1", topic="TA"))
        assert (await scene.route("TA"))["filterServerTable"] == {address: ["f:1"]}
        await scene.register(second, with_filters(second, 1, "f:2", topic="TB"))
        for topic in ("TA", "TB"):
            assert (await scene.route(topic))["filterServerTable"] == {address: ["f:2"]}
        await scene.register(second, with_filters(second, 2, "f:3", topic="TB"))
        assert (await scene.route("TA"))["filterServerTable"] == {address: ["f:3"]}
        await scene.register(first, with_filters(first, 2, topic="TA"))
        assert (await scene.route("TB"))["filterServerTable"] == {}


@asynchronous
async def test_cached_answers_need_no_store_and_are_the_same_bytes(store: EmbeddedStore) -> None:
    async with serving(store.url) as scene:
        await scene.register(A)
        asked = [(105, "TA", 373), (105, "TA", 513), (105, "X", 373), (106, "", 0)]
        first = [await scene.ask(code, topic=topic, version=version) for code, topic, version in asked]
        misses = scene.service.parts.counters.cache_misses
        again = [await scene.ask(code, topic=topic, version=version) for code, topic, version in asked]
        assert [(a.code, a.remark, a.body) for a in first] == [(a.code, a.remark, a.body) for a in again]
        assert scene.service.parts.counters.cache_misses == misses
        assert scene.service.parts.counters.cache_hits == 3
        assert scene.service.parts.counters.cache_negative_hits == 1


@asynchronous
async def test_a_service_is_ready_for_a_crowd(store: EmbeddedStore, redis: redis_py.Redis) -> None:
    async with serving(store.url):
        follower = 1
        await eventually_async(lambda: len(redis.client_list(_type="normal")) >= 1 + follower + PIPELINES)


@asynchronous
async def test_a_stampede_asks_the_store_once(store: EmbeddedStore) -> None:
    async with serving(store.url) as scene:
        await scene.register(A)
        misses = scene.service.parts.counters.cache_misses
        for _ in range(100):
            scene.send(105, topic="TA")
        answers = [await asyncio.wait_for(scene.peer.sent.get(), PATIENCE_S) for _ in range(100)]
        assert {answer.body for answer in answers} == {answers[0].body}
        assert scene.service.parts.counters.cache_misses == misses + 1


@asynchronous
async def test_more_topics_at_once_than_one_call_takes(store: EmbeddedStore, redis: redis_py.Redis) -> None:
    topics = [f"T{number}" for number in range(80)]
    for number in range(40):
        Namespace(redis).register(f"b{number}", 0, topics)
    async with serving(store.url) as scene:
        for topic in topics:
            scene.send(105, topic=topic, version=513)
        answers = [await asyncio.wait_for(scene.peer.sent.get(), PATIENCE_S) for _ in topics]
        assert {len(json.loads(answer.body)["brokerDatas"]) for answer in answers} == {40}
        assert scene.service.parts.counters.cache_misses == len(topics)


@asynchronous
async def test_what_cannot_be_read_is_an_error_for_its_requests_only(
    store: EmbeddedStore, redis: redis_py.Redis
) -> None:
    async with serving(store.url, client_request_thread_pool_queue_capacity=4) as scene:
        await scene.register(A)
        redis.set("ns:{default}:route:X", "no hash")
        for topic in ("X", "TA", "X", "X"):
            scene.send(105, topic=topic)
        answers = [await asyncio.wait_for(scene.peer.sent.get(), PATIENCE_S) for _ in range(4)]
        assert sorted(answer.code for answer in answers) == [0, 1, 1, 1]
        assert "WRONGTYPE" in str((await scene.ask(105, topic="X")).remark)
        redis.delete("ns:{default}:route:X")
        for _ in range(4):
            assert await scene.route("X") == 17


@asynchronous
async def test_an_outage_is_answered_from_the_cache(tmp_path: Any) -> None:
    store = EmbeddedStore(tmp_path, keep=False)
    store.start()
    try:
        async with serving(store.url) as scene:
            await scene.register(A)
            await scene.route()
            store.stop()
            await eventually_async(lambda: not scene.service.parts.follower.connected)
            assert await scene.addresses() == {"broker-a": {"0": "127.0.0.1:10911"}}
            assert scene.service.parts.counters.stale_serves == 1
            assert await scene.route("TB") == 1
            assert (await scene.register(A)).code == 1
    finally:
        store.stop()


@asynchronous
async def test_a_store_that_comes_back_empty_empties_nothing_before_the_brokers_had_time(
    store: EmbeddedStore, redis: redis_py.Redis
) -> None:
    async with serving(store.url) as scene:
        await scene.register(A)
        await scene.register(B, B.body(TA=6, TC=6))
        both = {"broker-a": {"0": "127.0.0.1:10911"}, "broker-b": {"0": "127.0.0.3:10911"}}
        assert await scene.addresses() == both
        assert await scene.route("X") == 17
        redis.flushall()
        await scene.register(B, B.body(X=6, TC=6))
        assert await scene.addresses() == {"broker-a": both["broker-a"]}, "which the store does not know yet"
        assert await scene.addresses("X") == {"broker-b": {"0": "127.0.0.3:10911"}}
        await scene.register(A)
        assert await scene.addresses() == {"broker-a": {"0": "127.0.0.1:10911"}}


def late(scene: Scene, monkeypatch: pytest.MonkeyPatch, by_s: float) -> None:
    """From now on this worker applies events so much later than it gets them."""
    listener = scene.service.parts.follower._listener
    apply = listener.apply

    async def apply_late(group: Sequence[Event]) -> None:
        await asyncio.sleep(by_s)
        await apply(group)

    monkeypatch.setattr(listener, "apply", apply_late)


@asynchronous
async def test_a_write_is_acknowledged_when_this_worker_has_applied_it(
    store: EmbeddedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(store.url) as scene:
        await scene.register(A)
        await scene.route()
        late(scene, monkeypatch, by_s=0.1)
        await scene.register(A, A.body(2, TA=4, TB=6))
        assert (await scene.route())["queueDatas"][0]["perm"] == 4


@asynchronous
async def test_a_worker_whose_events_hang_still_shows_a_connection_its_own_writes(
    store: EmbeddedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(store.url) as scene:
        await scene.register(A)
        await scene.route()
        late(scene, monkeypatch, by_s=60)
        reached = scene.service.parts.follower.when_reached
        monkeypatch.setattr(scene.service.parts.follower, "when_reached", partial(reached, within_s=0.05))
        await scene.register(A, A.body(2, TA=4, TB=6))
        assert (await scene.route())["queueDatas"][0]["perm"] == 4


@asynchronous
async def test_a_write_whose_store_dies_is_refused_and_routes_stay_cached(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = EmbeddedStore(tmp_path, keep=False)
    store.start()
    try:
        async with serving(store.url) as scene:
            await scene.register(A)
            await scene.route()
            late(scene, monkeypatch, by_s=60)
            reached = scene.service.parts.follower.when_reached

            def store_dies(event_id: str, done: Callable[[bool], object]) -> None:
                store.stop()
                scene.service.parts.follower._following.clear()
                reached(event_id, done, within_s=0.05)

            monkeypatch.setattr(scene.service.parts.follower, "when_reached", store_dies)
            assert (await scene.register(A, A.body(2, TA=4, TB=6))).code == 1
            assert await scene.addresses() == {"broker-a": {"0": "127.0.0.1:10911"}}
    finally:
        store.stop()


@asynchronous
async def test_a_changed_route_is_shown_after_a_loss_without_the_changed_broker(
    store: EmbeddedStore, redis: redis_py.Redis
) -> None:
    """The store is empty before a client asks for the route again, and no broker has registered with it."""
    async with serving(store.url) as scene:
        await scene.register(A)
        await scene.register(B)
        assert len(await scene.addresses()) == 2
        await scene.register(B, B.body(2, TA=4, TB=6))
        redis.flushall()
        redis.client_kill_filter(_type="normal", skipme=True)
        await eventually_async(lambda: not scene.service.parts.follower.connected)
        assert await scene.addresses() == {"broker-a": {"0": "127.0.0.1:10911"}}


@asynchronous
async def test_a_broker_that_returns_while_the_store_is_asked_is_not_left_out(
    store: EmbeddedStore, redis: redis_py.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(store.url) as scene:
        await scene.register(A)
        both = await scene.addresses()
        redis.flushall()
        assert (await scene.register(B, B.body(TC=6, TD=6))).code == 0
        filled = scene.service._filling._complete

        def completed_before(fill: Fill, answer: Reply) -> None:
            assert scene.service.parts.before_loss.returned("broker-a", None)
            filled(fill, answer)

        monkeypatch.setattr(scene.service._filling, "_complete", completed_before)
        assert await scene.addresses() == both


@asynchronous
async def test_what_was_asked_while_no_changes_are_followed_is_not_kept(
    store: EmbeddedStore, redis: redis_py.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(store.url) as scene:
        await scene.register(A)
        monkeypatch.setattr(scene.service.parts.follower, "_connect", lambda: connect_follower(NOWHERE))
        redis.client_kill_filter(_type="normal", skipme=True)
        await eventually_async(lambda: not scene.service.parts.follower.connected)
        before = scene.service.parts.counters.cache_misses
        for _ in range(2):
            assert (await scene.route())["queueDatas"][0]["perm"] == 6
        assert scene.service.parts.counters.cache_misses == before + 2


@asynchronous
async def test_a_worker_that_follows_no_changes_does_not_answer_from_its_cache_for_long(
    store: EmbeddedStore, redis: redis_py.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worker.assembly.LATE_S", 0.1)
    async with serving(store.url) as lagging, serving(store.url, "w2") as other:
        await lagging.register(A)
        assert (await lagging.route())["queueDatas"][0]["perm"] == 6
        monkeypatch.setattr(lagging.service.parts.follower, "_connect", lambda: connect_follower(NOWHERE))
        redis.client_kill_filter(_type="normal", skipme=True)
        await eventually_async(lambda: not lagging.service.parts.follower.connected)
        await eventually_async(lambda: other.service.parts.follower.connected)
        for perm in (4, 2):
            await other.register(A, A.body(10 + perm, TA=perm, TB=6))
            await eventually_async(partial(_perm_is, lagging, perm))


@asynchronous
async def test_where_only_reads_of_the_stream_fail_a_worker_is_not_ready_and_answers_from_the_store(
    store: EmbeddedStore, redis: redis_py.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worker.assembly.LATE_S", 0.5)
    monkeypatch.setattr("worker.watch.readiness.LATE_S", 1.5)
    async with serving(store.url, stale_serve_max_seconds=60) as scene:
        follower = scene.service.parts.follower
        await scene.register(A)
        await scene.route()
        with reads_denied(redis):
            await eventually_async(partial(_is_cut_off, scene))
            await eventually_async(scene.service.parts.follows_late)
            with monkeypatch.context() as patch:
                patch.setattr(follower, "when_reached", None)  # no write waits for what does not come
                for perm in (4, 2):
                    assert (await scene.register(A, A.body(10 + perm, TA=perm, TB=6))).code == 0
                    assert await _perm_is(scene, perm)
            await eventually_async(partial(_is_ready, scene, ready=False))
            assert not scene.service.parts.stale.is_over()
            scene.service.parts.options = replace(scene.service.parts.options, stale_serve_max_seconds=1)
            assert scene.service.parts.stale.is_over()
        await follower.following(PATIENCE_S)
        assert await _is_ready(scene)
        assert not scene.service.parts.stale.is_over()


@asynchronous
async def test_a_worker_that_is_behind_the_stream_says_so_and_answers_from_the_store(
    store: EmbeddedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stays ready: all workers have the same entries to apply."""
    monkeypatch.setattr("worker.assembly.LATE_S", 0.5)
    async with serving(store.url) as lagging, serving(store.url, "w2") as other:
        parts = lagging.service.parts
        await lagging.register(A)
        assert (await lagging.route())["queueDatas"][0]["perm"] == 6
        assert _follows(lagging) == 1
        may_apply = asyncio.Event()
        with monkeypatch.context() as patch:
            patch.setattr(parts.follower._listener, "apply", lambda _: may_apply.wait())
            patch.setattr(parts.follower, "when_reached", None)  # no write waits for what comes late
            for perm in (4, 2):
                await other.register(A, A.body(10 + perm, TA=perm, TB=6))
                await eventually_async(parts.follows_late)
                assert (await lagging.register(B)).code == 0
                await eventually_async(partial(_perm_is, lagging, perm))
            assert parts.follower.connected
            assert await _is_ready(lagging)
            assert _follows(lagging) == 0
            clock = await parts.driver.run(lease_clock(parts.keys))
            assert (clock.behind_now_ms or 0) > 0
            may_apply.set()
        await eventually_async(lambda: _follows(lagging) == 1)


def _follows(scene: Scene) -> float:
    """Return the gauge `follower_connected`."""
    (value,) = (
        sample.value
        for sample in scene.service.parts.state()
        if isinstance(sample, Sample) and sample.metric is FOLLOWER_CONNECTED
    )
    return value


@asynchronous
async def test_routes_are_answered_as_they_were_no_longer_than_the_option_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = EmbeddedStore(tmp_path, keep=False)
    store.start()

    def said(text: str) -> int:
        return sum(text in line for line in logged(caplog))

    async with (
        serving(store.url, stale_serve_max_seconds=60) as limited,
        serving(store.url, "w2") as unlimited,
    ):
        await limited.register(A)
        for scene in (limited, unlimited):
            await eventually_async(partial(_perm_is, scene, 6))
        store.stop()
        for away_s, code in ((50.0, 0), (70.0, 1)):
            now = partial(_later, away_s)
            monkeypatch.setattr("worker.watch.stream_connection.boot_time", now)
            for scene in (limited, unlimited):
                await eventually_async(partial(_is_cut_off, scene))
            for scene, expected in ((limited, code), (unlimited, 0)):
                route = await scene.route()
                assert (route if isinstance(route, int) else 0) == expected
            if away_s > 60:
                await eventually_async(lambda: said("staleServeMaxSeconds"))
        back = EmbeddedStore(tmp_path, keep=False)
        back.start()
        await eventually_async(lambda: said("from memory again"))
        assert (said("staleServeMaxSeconds"), said("from memory again")) == (1, 1)
    back.stop()


@asynchronous
async def test_a_young_service_answers_from_its_cache(store: EmbeddedStore) -> None:
    async with serving(store.url) as scene:
        await scene.register(A)
        await scene.route()
        await scene.route("X")
        scene.service.parts.options = replace(scene.service.parts.options, need_wait_for_service=True)
        assert await scene.addresses() == {"broker-a": {"0": "127.0.0.1:10911"}}
        assert await scene.route("X") == 1


@asynchronous
async def test_settings_that_another_worker_set_are_in_force_here(store: EmbeddedStore) -> None:
    async with serving(store.url) as one, serving(store.url, "w2") as other:
        await one.ask(318, b"enableTopicList=false")
        await eventually_async(lambda: not other.service.parts.options.enable_topic_list)
        async with serving(store.url, "w3") as later:
            assert (await later.ask(224)).remark == "disable"


def test_the_store_being_away_is_no_missing_topic() -> None:
    assert StoreUnavailable in dispatch.ERRORS


@asynchronous
async def test_a_stopped_service_answers_what_was_under_way(
    store: EmbeddedStore, redis: redis_py.Redis
) -> None:
    async with serving(store.url) as scene:
        redis.client_pause(200)
        scene.send(206)
        peer = scene.peer
    assert json.loads(peer.sent.get_nowait().body) == {"topicList": []}
