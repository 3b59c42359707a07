"""What a client makes of routes, and what it tells brokers (docs/conformance.md, CL-13 to CL-26)."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest

from mqns.errors import SubscriptionError
from mqns.heartbeats.groups import ConsumerGroup
from mqns.heartbeats.subscriptions import subscription
from mqns.mq_client import AsyncMqClient, MqClientOptions
from mqns.routes.publish import publish_info
from mqns.routes.subscribe import subscribe_queues
from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.command import Command
from rocketmq_remoting.java_hash import java_hash
from testbed.network import Peer
from testbed.virtual_time import now, run
from tests.mqns.cluster import NS, Cluster, broker_4, heartbeat_times
from tests.mqns.routes.routes import group, queues, route

MASTER, SLAVE = "a-0:10911", "a-1:10911"
OF_A_GROUP = route(queues("a"), group("a", 0, 1))
OPTIONS = MqClientOptions(client_ip="10.0.0.5")


class Scene:
    """A client, a name server, and the group {0, 1} of broker name a, which serves T."""

    def __init__(self) -> None:
        self.cluster = Cluster(T=OF_A_GROUP)
        self.master, self.slave = self.cluster.brokers(MASTER, SLAVE)
        self.client = AsyncMqClient(NS, OPTIONS, connect=self.cluster.network.connect)


def play(acts: Callable[[Scene], Awaitable[None]]) -> None:
    """Have a scene played on a virtual clock."""

    async def whole() -> None:
        scene = Scene()
        async with scene.client:
            await acts(scene)

    run(whole())


def codes(peers: Sequence[Peer]) -> list[set[int]]:
    return [set(peer.codes) for peer in peers]


@pytest.mark.conformance("CL-13")
def test_no_groups_no_heartbeat() -> None:
    async def acts(scene: Scene) -> None:
        await scene.client.publish_info("T")
        assert scene.client.master_address("a") == MASTER
        await asyncio.sleep(100)
        assert codes([scene.master, scene.slave]) == [set(), set()]

    play(acts)


@pytest.mark.conformance("CL-14")
def test_producers_send_to_masters_only() -> None:
    async def acts(scene: Scene) -> None:
        await scene.client.add_producer("pg", ["T"])
        await asyncio.sleep(2)
        assert codes([scene.master, scene.slave]) == [{RequestCode.HEART_BEAT}, set()]

    play(acts)


@pytest.mark.conformance("CL-15")
def test_a_consumer_sends_to_all() -> None:
    async def acts(scene: Scene) -> None:
        await scene.client.add_producer("pg", ["T"])
        await scene.client.add_consumer(ConsumerGroup(group="cg", subscriptions={"T": "*"}))
        assert codes([scene.master, scene.slave]) == [{RequestCode.HEART_BEAT}] * 2

    play(acts)


@pytest.mark.conformance("CL-16")
def test_a_heartbeat_beside_another_is_skipped() -> None:
    async def acts(scene: Scene) -> None:
        async def slow(request: Command) -> Command:
            await asyncio.sleep(2)
            return broker_4(request)

        scene.master.answer = slow
        await asyncio.sleep(0.5)
        adding = asyncio.create_task(scene.client.add_producer("pg", ["T"]))
        await asyncio.sleep(1.5)  # the periodic heartbeat was due at 1 s
        assert heartbeat_times(scene.master) == [0.5]
        await adding
        assert now() == 2.5
        await asyncio.sleep(28)
        assert heartbeat_times(scene.master) == [0.5]
        await asyncio.sleep(2)
        assert heartbeat_times(scene.master) == [0.5, 31]

    play(acts)


@pytest.mark.conformance("CL-17")
def test_a_broker_that_refuses_keeps_no_other_from_its_heartbeat() -> None:
    async def acts(scene: Scene) -> None:
        scene.master.refuses = True
        await scene.client.add_consumer(ConsumerGroup(group="cg", subscriptions={"T": "*"}))
        assert codes([scene.master, scene.slave]) == [set(), {RequestCode.HEART_BEAT}]

    play(acts)


@pytest.mark.conformance("CL-18")
def test_timers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NAMESRV_ADDR", raising=False)
    fetches: list[float] = []

    async def fetch() -> Sequence[str]:
        fetches.append(now())
        return (NS,)

    async def whole() -> None:
        cluster = Cluster(T=OF_A_GROUP)
        (master,) = cluster.brokers(MASTER)
        client = AsyncMqClient(options=OPTIONS, fetch_name_servers=fetch, connect=cluster.network.connect)
        async with client:
            await client.publish_info("T")
            await client.add_producer("pg")
            assert (cluster.lookups, heartbeat_times(master)) == ([(0, "T")], [0])
            await asyncio.sleep(135)
            assert [time for time, _ in cluster.lookups[1:]] == [0.01, 30.01, 60.01, 90.01, 120.01]
            assert heartbeat_times(master)[1:] == [1, 31, 61, 91, 121]
            assert fetches == [0, 10, 130]

    run(whole())


@pytest.mark.conformance("CL-19")
def test_tags() -> None:
    built = subscription("T", "TagA || TagB", version_ms=7)
    assert (built.tags_set, built.code_set) == (("TagA", "TagB"), (2598919, 2598920))
    assert (built.sub_string, built.sub_version, built.expression_type) == ("TagA || TagB", 7, "TAG")


@pytest.mark.conformance("CL-20")
@pytest.mark.parametrize("text", ["*", "", None])
def test_all_of_a_topic(text: str | None) -> None:
    built = subscription("T", text, version_ms=7)
    assert (built.sub_string, built.tags_set, built.code_set) == ("*", (), ())


@pytest.mark.conformance("CL-21")
@pytest.mark.parametrize("text", ["||", "||||"])
def test_nothing_but_bars(text: str) -> None:
    with pytest.raises(SubscriptionError, match="subString split error"):
        subscription("T", text, version_ms=7)


@pytest.mark.conformance("CL-22")
def test_hashes() -> None:
    assert (java_hash("é"), java_hash("中文")) == (233, 646394)


@pytest.mark.conformance("CL-23")
def test_an_address_in_no_route_is_dropped_before_the_heartbeat() -> None:
    async def acts(scene: Scene) -> None:
        await scene.client.add_consumer(ConsumerGroup(group="cg", subscriptions={"T": "*"}))
        await asyncio.sleep(2)
        scene.cluster.routes["T"] = route(queues("b"), group("b", 0))
        (other,) = scene.cluster.brokers("b-0:10911")
        await asyncio.sleep(28.5)  # the poll has come, the heartbeat has not
        assert scene.client.master_address("a") == MASTER
        await asyncio.sleep(1)
        assert scene.client.master_address("a") is None
        assert [heartbeat_times(peer) for peer in (scene.master, scene.slave, other)] == [
            [0, 1],
            [0, 1],
            [31],
        ]

    play(acts)


@pytest.mark.conformance("CL-24")
def test_an_order_configuration() -> None:
    info = publish_info("T", route(queues("c"), group("c", 0), order="a:2;b:1"))
    assert [(queue.broker_name, queue.queue_id) for queue in info.queues] == [("a", 0), ("a", 1), ("b", 0)]


@pytest.mark.conformance("CL-25")
@pytest.mark.parametrize("ids", [(0,), (1,)], ids=["no write permission", "no id 0"])
def test_nothing_is_published_there(ids: tuple[int, ...]) -> None:
    perm = 4 if 0 in ids else 6
    info = publish_info(
        "T", route(queues("a", perm=perm), queues("b", write=1), group("a", *ids), group("b", 0))
    )
    assert [(queue.broker_name, queue.queue_id) for queue in info.queues] == [("b", 0)]


@pytest.mark.conformance("CL-26")
def test_a_group_without_id_0_is_received_from() -> None:
    message_queues = subscribe_queues("T", route(queues("a", read=2, perm=6), group("a", 1)))
    assert [(queue.broker_name, queue.queue_id) for queue in message_queues] == [("a", 0), ("a", 1)]
