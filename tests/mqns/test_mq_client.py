"""The client as a whole, on a virtual clock: schedules, groups, routes, its end."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from mqns.changes.messages import ChangeMessage, Entry
from mqns.errors import ConfigError, ConnectError, ConnectionClosed, ResponseError, SubscriptionError
from mqns.heartbeats.groups import ConsumerGroup
from mqns.mq_client import AsyncMqClient, FetchNameServers, MqClientOptions
from mqns.routes.queues import MessageQueue
from mqns.routes.subscribe import FindBrokerResult
from mqns.routes.table import CachedRoute
from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.command import Command
from rocketmq_remoting.topic_queue_mapping import TopicQueueMappingInfo
from testbed.network import Network
from testbed.virtual_time import now, run
from tests.logged import logged
from tests.mqns.cluster import NS, V4_9_7, Cluster, broker_5, heartbeat_times, heartbeats_of
from tests.mqns.routes.routes import group, queues, route, static

MASTER, SLAVE, OTHER = "a-0:10911", "a-1:10911", "b-0:10911"
ROUTE = route(queues("a"), queues("b"), group("a", 0, 1), group("b", 0))
PUSH = ConsumerGroup(group="cg", subscriptions={"T": "TagA || TagB"})
OPTIONS = MqClientOptions(client_ip="10.0.0.5", instance_name="one")
ID = "10.0.0.5@one"


class Scene:
    """A started client, a name server that knows T, and the brokers of T."""

    def __init__(self, options: MqClientOptions = OPTIONS, changes: Any = None) -> None:
        self.cluster = Cluster(T=ROUTE)
        self.master, self.slave, self.other = self.cluster.brokers(MASTER, SLAVE, OTHER)
        connect = self.cluster.network.connect
        self.client = AsyncMqClient(NS, options, changes=changes, connect=connect, now_ms=lambda: 7)


def play(
    acts: Callable[[Scene], Awaitable[None]], options: MqClientOptions = OPTIONS, changes: Any = None
) -> Scene:
    """Have a scene played on a virtual clock; neither a task nor a connection may be left."""

    async def whole() -> Scene:
        scene = Scene(options, changes)
        async with scene.client:
            await acts(scene)
        assert scene.cluster.network.open_connections == 0
        return scene

    return run(whole())


async def at(s: float) -> None:
    """Wait for that time."""
    await asyncio.sleep(s - now())


# schedules


def test_the_schedule_may_be_another() -> None:
    async def acts(scene: Scene) -> None:
        await scene.client.add_producer("pg", ["T"])
        await at(6)

    scene = play(acts, replace(OPTIONS, poll_name_server_s=2, heartbeat_broker_s=1.5))
    assert [time for time, _ in scene.cluster.lookups] == [0, 0.01, 2.01, 4.01]
    assert heartbeat_times(scene.master) == [0, 1, 2.5, 4, 5.5]


def test_how_long_is_waited_for_an_answer_may_be_another() -> None:
    async def acts(scene: Scene) -> None:
        await scene.client.watch("T", lambda topic, cached_route: None)
        scene.master.answer = lambda _: None
        await scene.client.add_producer("pg")
        assert now() == 0.5
        scene.cluster.ns.answer = lambda _: None
        await scene.client.watch("U", lambda topic, cached_route: None)
        assert now() == 1

    play(acts, replace(OPTIONS, call_timeout_s=0.5, poll_name_server_s=100, heartbeat_broker_s=100))


def test_nothing_is_sent_before_there_is_a_topic_or_a_group() -> None:
    scene = play(lambda _: at(100))
    assert scene.cluster.network.frames == []


def test_slow_brokers_make_heartbeats_rarer_but_polling_goes_on() -> None:
    async def acts(scene: Scene) -> None:
        await scene.client.watch("T", lambda topic, cached_route: None)
        await at(0.5)
        scene.master.answer = lambda _: None
        adding = asyncio.create_task(scene.client.add_producer("pg", ["T"]))
        await at(10)
        await adding

    scene = play(acts, replace(OPTIONS, poll_name_server_s=1, heartbeat_broker_s=1))
    assert [time for time, _ in scene.cluster.lookups[1:]] == [0.01 + number for number in range(10)]
    assert heartbeat_times(scene.master) == [0.5, 4, 7]


class Sent:
    """A stream of changes: messages at these seconds, then an error or silence."""

    def __init__(self, *coming: tuple[float, ChangeMessage], ends: bool = False) -> None:
        self._coming = coming
        self._ends = ends

    async def messages(self) -> AsyncIterator[ChangeMessage]:
        for second, message in self._coming:
            await at(second)
            yield message
        if self._ends:
            raise ConfigError("no changes here")
        await at(1000)


def lookups_with(changes: Any) -> list[float]:
    """Return when a client that watches T and polls each 30 s asks in its first 20 s."""

    async def acts(scene: Scene) -> None:
        await scene.client.watch("T", lambda topic, cached_route: None)
        await at(20)

    return [time for time, _ in play(acts, changes=changes).cluster.lookups]


def change(**data: Any) -> ChangeMessage:
    return ChangeMessage("1-0", None, (Entry("1-0", 1, "broker_removed", data=data),))


def test_where_changes_are_sent_routes_are_refreshed_with_them_and_once_all_workers_show_them() -> None:
    coming = ((5, change(broker="a")), (7, change(broker="elsewhere")), (9, ChangeMessage("2-0", "hole")))
    assert lookups_with(Sent(*coming)) == [0, 0.01, 5, 6, 9, 10]


def test_where_they_are_not_polling_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    assert lookups_with(Sent(ends=True)) == [0, 0.01]
    assert "changes of routes are not sent: no changes here; they are polled" in caplog.text


# groups


def test_a_new_consumer_is_announced_at_once_to_all_its_brokers() -> None:
    async def acts(scene: Scene) -> None:
        await scene.client.add_consumer(PUSH)
        for peer in (scene.master, scene.slave, scene.other):
            ((time, data),) = heartbeats_of(peer)
            assert (time, data.client_id) == (0, ID)
            assert data.consumer_data_set == (PUSH.data(7),)
        assert scene.client.broker_version(SLAVE) == V4_9_7
        assert scene.client.broker_version("unknown:1") is None

    play(acts)


def test_nothing_is_kept_of_brokers_that_are_gone() -> None:
    async def acts(scene: Scene) -> None:
        await scene.client.add_consumer(PUSH)
        scene.cluster.routes["T"] = route(queues("a"), group("a", 0))
        await at(31.5)
        versions = [scene.client.broker_version(address) for address in (MASTER, SLAVE, OTHER)]
        assert versions == [V4_9_7, None, None]
        assert scene.client.master_address("b") is None

    play(acts)


def test_a_changed_subscription_is_announced_at_once() -> None:
    async def acts(scene: Scene) -> None:
        await scene.client.add_consumer(PUSH)
        scene.cluster.routes["U"] = route(queues("c"), group("c", 0))
        (new,) = scene.cluster.brokers("c-0:10911")
        await scene.client.subscribe("cg", "U", "TagC")
        await scene.client.unsubscribe("cg", "T")
        said = [
            {sub.topic: sub.sub_string for sub in data.consumer_data_set[0].subscription_data_set}
            for _, data in heartbeats_of(new)
        ]
        assert said == [{"%RETRY%cg": "*", "T": "TagA || TagB", "U": "TagC"}, {"%RETRY%cg": "*", "U": "TagC"}]
        assert heartbeat_times(scene.master) == [0, 0, 0]

    play(acts)


def test_a_group_that_leaves_is_unregistered_and_its_topics_are_forgotten() -> None:
    async def acts(scene: Scene) -> None:
        scene.cluster.routes["U"] = route(queues("b"), group("b", 0))
        await scene.client.add_consumer(PUSH)
        await scene.client.add_producer("pg", ["U"])
        await scene.client.remove_consumer("cg")
        for peer in (scene.master, scene.slave, scene.other):
            last = peer.frames[-1].command
            assert (last.code, last.ext) == (35, {"clientID": ID, "consumerGroup": "cg"})
        assert scene.client.cached_route("T") is None
        assert scene.client.cached_route("U")
        await at(1.5)
        assert scene.client.master_address("a") is None
        assert heartbeat_times(scene.other) == [0, 0, 1]
        assert heartbeat_times(scene.master) == [0, 0]
        await scene.client.remove_consumer("cg")
        await scene.client.remove_producer("pg")
        last = scene.other.frames[-1].command
        assert (last.code, last.ext) == (35, {"producerGroup": "pg", "clientID": ID})

    play(acts)


def test_a_topic_that_is_watched_is_not_forgotten_with_a_group() -> None:
    async def acts(scene: Scene) -> None:
        await scene.client.watch("T", lambda topic, cached_route: None)
        await scene.client.add_consumer(PUSH)
        await scene.client.remove_consumer("cg")
        assert scene.client.cached_route("T")

    play(acts)


def test_what_makes_no_sense_changes_nothing() -> None:
    async def acts(scene: Scene) -> None:
        await scene.client.add_producer("pg")
        for wrong, error in [
            (scene.client.add_producer("pg"), ConfigError),
            (
                scene.client.add_consumer(ConsumerGroup(group="cg", subscriptions={"T": "||"})),
                SubscriptionError,
            ),
            (scene.client.subscribe("cg", "T"), ConfigError),
            (scene.client.unsubscribe("cg", "T"), ConfigError),
        ]:
            with pytest.raises(error):
                await wrong
        await scene.client.remove_consumer("cg")
        assert scene.cluster.network.frames == []

    play(acts)


def test_the_end_unregisters_every_group_with_every_broker() -> None:
    async def acts(scene: Scene) -> None:
        await scene.client.add_consumer(PUSH)
        await scene.client.add_producer("pg")

    scene = play(acts)
    for peer in (scene.master, scene.slave, scene.other):
        assert [frame.command.ext for frame in peer.frames if frame.command.code == 35] == [
            {"clientID": ID, "consumerGroup": "cg"},
            {"producerGroup": "pg", "clientID": ID},
        ]


def test_the_end_does_not_wait_for_a_heartbeat_or_for_brokers_that_are_gone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def whole() -> None:
        scene = Scene()
        async with scene.client:
            await scene.client.add_consumer(PUSH)
            scene.master.answer = lambda _: None
            scene.slave.vanish()
            await at(2)
        assert now() == 5
        caplog.clear()
        await scene.client.close()
        assert (now(), logged(caplog)) == (5, [])
        with pytest.raises(ConnectionClosed):
            await scene.client.add_producer("late")
        assert scene.other.codes[-1] == RequestCode.UNREGISTER_CLIENT
        assert scene.cluster.network.open_connections == 0

    run(whole())


def test_one_that_never_began_can_be_closed() -> None:
    async def whole() -> None:
        await Scene().client.close()

    run(whole())


def test_brokers_say_when_the_members_of_a_group_have_changed() -> None:
    reported: list[str] = []

    async def acts(scene: Scene) -> None:
        push = Command(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, 3, 2, V4_9_7, ext={"consumerGroup": "cg"})
        await scene.client.add_consumer(PUSH)
        scene.client.on_consumers_changed(reported.append)
        scene.other.push(push)
        scene.other.push(replace(push, ext=None))
        await at(0.1)
        assert reported == ["cg"]
        scene.client.on_consumers_changed(lambda _: 1 // 0)  # type: ignore[arg-type]
        scene.other.push(push)
        await at(1.5)
        assert heartbeat_times(scene.other) == [0, 1]

    play(acts)


def test_short_heartbeats_are_an_option() -> None:
    async def acts(scene: Scene) -> None:
        scene.other.answer = broker_5
        await scene.client.add_consumer(PUSH)
        await at(31.5)
        assert [data.without_sub for _, data in heartbeats_of(scene.other)] == [False, True, True]
        scene.other.cut()
        await at(61.5)
        assert [data.without_sub for _, data in heartbeats_of(scene.other)][3:] == [True, False]

    play(acts, replace(OPTIONS, heartbeat_v2=True))


# routes


def test_a_change_is_reported_within_a_poll() -> None:
    reported: list[tuple[float, int]] = []

    def tell(topic: str, cached_route: CachedRoute) -> None:
        reported.append((round(now(), 3), len(cached_route.publish.queues)))

    async def acts(scene: Scene) -> None:
        end = await scene.client.watch("T", tell)
        await at(1)
        scene.cluster.routes["T"] = route(queues("a", write=1), group("a", 0))
        await at(31)
        end()
        scene.cluster.routes["T"] = ROUTE
        await at(65)

    scene = play(acts)
    assert reported == [(0, 8), (30.01, 1)]
    assert scene.cluster.lookups == [(0, "T"), (0.01, "T"), (30.01, "T")]


def test_where_to_send_is_asked_for_when_it_is_needed_and_polled_from_then_on() -> None:
    async def acts(scene: Scene) -> None:
        info = await scene.client.publish_info("T")
        assert info == await scene.client.publish_info("T")
        assert len(info.queues) == 8
        assert len(scene.cluster.lookups) == 1
        assert scene.client.master_address("a") == MASTER
        assert scene.client.master_address("z") is None
        await at(31)
        assert scene.cluster.lookups == [(0, "T"), (0.01, "T"), (30.01, "T")]

    play(acts)


def test_a_topic_that_no_broker_has_is_sent_to_like_the_default_topic() -> None:
    async def acts(scene: Scene) -> None:
        with pytest.raises(ResponseError, match="no topic 'New'"):
            await scene.client.publish_info("New")
        scene.cluster.routes["TBW102"] = route(queues("a", 8, 8), group("a", 0))
        info = await scene.client.publish_info("New")
        assert list(info.queues) == [MessageQueue("New", "a", number) for number in range(4)]
        scene.cluster.routes["New"] = route(queues("a", 8, 8), group("a", 0))
        await at(0.5)
        assert len((await scene.client.publish_info("New")).queues) == 8

    play(acts)


def test_a_topic_without_queues_to_send_to_is_asked_for_again() -> None:
    async def acts(scene: Scene) -> None:
        scene.cluster.routes["T"] = route(queues("a", perm=4), group("a", 0))
        assert not (await scene.client.publish_info("T")).queues
        del scene.cluster.routes["T"]
        scene.cluster.routes["TBW102"] = ROUTE
        assert not (await scene.client.publish_info("T")).queues
        scene.cluster.routes["T"] = ROUTE
        assert len((await scene.client.publish_info("T")).queues) == 8

    play(acts)


def test_where_to_receive_from() -> None:
    async def acts(scene: Scene) -> None:
        scene.cluster.routes["T"] = route(queues("a", read=2), group("a", 1))
        assert list(await scene.client.subscribe_queues("T")) == [
            MessageQueue("T", "a", 0),
            MessageQueue("T", "a", 1),
        ]
        assert scene.client.find_broker("a") == FindBrokerResult(SLAVE, is_slave=True)
        assert scene.client.find_broker("a", only_this=True) is None
        assert scene.client.find_broker("z") is None
        with pytest.raises(ResponseError):
            await scene.client.subscribe_queues("U")
        await at(31)
        assert scene.cluster.lookups == [(0, "T"), (0, "U"), (0.01, "T"), (30.01, "T")]
        scene.cluster.ns.vanish()
        await scene.client.subscribe_queues("T")
        with pytest.raises(ConnectError):
            await scene.client.subscribe_queues("U")

    play(acts)


def test_a_static_topics_queue_is_served_by_the_broker_that_has_it() -> None:
    async def acts(scene: Scene) -> None:
        scene.cluster.routes["T"] = static(TopicQueueMappingInfo("T", "b", 1, {0: 0}))
        (queue,) = await scene.client.subscribe_queues("T")
        assert scene.client.broker_of(queue) == "b"

    play(acts)


# name servers


@pytest.mark.parametrize("how", ["gone", "half-open", "slow", "garbage"])
def test_routes_are_read_again_by_the_poll_after_the_chosen_name_server_fails(how: str) -> None:
    async def whole() -> None:
        cluster = Cluster(T=ROUTE)
        second = cluster.network.serve("127.0.0.2:9876", cluster.ns.answer)
        client = AsyncMqClient([cluster.ns.address, second.address], OPTIONS, connect=cluster.network.connect)
        reported: list[float] = []
        async with client:
            await client.watch("T", lambda topic, cached_route: reported.append(round(now(), 2)))
            chosen = cluster.network.peers[client.remoting.chosen_name_server or ""]
            if how == "gone":
                chosen.vanish()
            elif how == "half-open":
                chosen.reads = False
            elif how == "slow":
                chosen.answer = slow
            else:
                chosen.answer = lambda _: b"HTTP/1.1 400 Bad Request\r\n\r\n"
            cluster.routes["T"] = route(queues("b"), group("b", 0))
            await at(65)
        assert reported[0] == 0
        assert len(reported) == 2
        assert reported[1] <= 30.01
        assert cluster.network.open_connections == 0

    async def slow(request: Command) -> Command:
        await asyncio.sleep(100)
        return request.reply(0)

    run(whole())


def test_a_jump_of_the_wall_clock_changes_no_schedule() -> None:
    times = iter([2**41, 7, 2**42])

    async def whole() -> None:
        cluster = Cluster(T=ROUTE)
        (master,) = cluster.brokers(MASTER)
        client = AsyncMqClient(NS, OPTIONS, connect=cluster.network.connect, now_ms=lambda: next(times))
        async with client:
            await client.add_consumer(PUSH)
            await client.subscribe("cg", "T", "TagC")
            await at(62)
            assert heartbeat_times(master) == [0, 0, 1, 31, 61]

    run(whole())


def fetching(fetch: FetchNameServers, acts: Callable[[AsyncMqClient, Network], Awaitable[None]]) -> list[str]:
    """Play with a client that fetches its name servers -> those it ended with."""

    async def whole() -> list[str]:
        cluster = Cluster(T=ROUTE)
        client = AsyncMqClient(options=OPTIONS, fetch_name_servers=fetch, connect=cluster.network.connect)
        async with client:
            await acts(client, cluster.network)
            return sorted(client.remoting.name_servers)

    return run(whole())


def test_a_list_that_is_fetched_changes_and_a_failure_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("NAMESRV_ADDR", raising=False)
    answers: list[Sequence[str] | Exception | None] = [
        ConnectError("http://x", "no"),
        [NS],
        None,
        ["no address"],
        ZeroDivisionError(),
        ["b:9876", "c:9876"],
    ]
    seen: list[tuple[float, list[str]]] = []

    async def fetch() -> Sequence[str] | None:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def acts(client: AsyncMqClient, _: Network) -> None:
        for s in (1, 11, 131, 251, 371, 491):
            await at(s)
            seen.append((s, sorted(client.remoting.name_servers)))

    assert fetching(fetch, acts) == ["b:9876", "c:9876"]
    assert seen == [(1, []), *((s, [NS]) for s in (11, 131, 251, 371)), (491, ["b:9876", "c:9876"])]


def test_a_list_that_is_given_is_not_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fetch() -> Sequence[str] | None:
        raise AssertionError("not to be fetched")

    async def acts(client: AsyncMqClient, network: Network) -> None:
        await at(20)
        assert client.remoting.name_servers == (NS,)

    monkeypatch.setenv("NAMESRV_ADDR", NS)
    fetching(fetch, acts)


def test_by_default_it_is_fetched_from_rocketmqs_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    class Endpoint:
        def __init__(self, url: str) -> None:
            asked.append(url)

        async def fetch(self) -> tuple[str, ...]:
            return (NS,)

    monkeypatch.delenv("NAMESRV_ADDR", raising=False)
    monkeypatch.setattr("mqns.addresses.endpoint.AddressEndpoint", Endpoint)

    async def whole() -> None:
        options = replace(OPTIONS, unit_name="u")
        async with AsyncMqClient(options=options, connect=Network().connect) as client:
            assert client.remoting.name_servers == (NS,)
            assert client.client_id == "10.0.0.5@one@u"

    run(whole())
    assert asked == ["http://jmenv.tbsite.net:8080/rocketmq/nsaddr-u?nofix=1"]


def test_lists_are_given_as_text_or_one_by_one() -> None:
    async def whole() -> None:
        for given in ("a:1;b:1", ["a:1", "b:1"]):
            assert sorted(AsyncMqClient(given).remoting.name_servers) == ["a:1", "b:1"]

    run(whole())
