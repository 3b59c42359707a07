"""Heartbeats to brokers: whom, when, in which form."""

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable

import pytest

from mqns.heartbeats.groups import ClientGroups, ConsumerGroup
from mqns.heartbeats.sender import CONCURRENT_BROKERS, GroupUnregistration, HeartbeatSender
from mqns.remoting.connection import ClientConnection
from mqns.remoting.remoting_client import AsyncRemotingClient
from mqns.routes.table import TopicRouteTable
from rocketmq_remoting.codes import RequestCode, ResponseCode
from rocketmq_remoting.command import Command
from rocketmq_remoting.heartbeat import HeartbeatData
from testbed.network import Peer
from testbed.virtual_time import now, run
from tests.mqns.cluster import V4_9_7, V5_5_0, Cluster, broker_4, broker_5, heartbeat_times, heartbeats_of
from tests.mqns.routes.routes import group, queues, route

MASTER, SLAVE, OTHER = "a-0:10911", "a-1:10911", "b-0:10911"
ROUTE = route(queues("a"), queues("b"), group("a", 0, 1), group("b", 0))
PUSH = ConsumerGroup(group="cg1", subscriptions={"T": "TagA"})


class Scene:
    """A sender with the brokers of ROUTE in its book."""

    def __init__(self, short_heartbeats: bool = False) -> None:
        self.cluster = Cluster()
        self.master, self.slave, self.other = self.cluster.brokers(MASTER, SLAVE, OTHER)
        self.members = ClientGroups()
        self.book = TopicRouteTable()
        self.book.put("T", ROUTE)
        self.remoting = AsyncRemotingClient(connect=self._connect)
        self.sender = HeartbeatSender(
            self.remoting, self.members, self.book, "c1", short_heartbeats=short_heartbeats
        )

    async def _connect(
        self,
        host: str,
        port: int,
        protocol_factory: Callable[[], ClientConnection],
        tls: ssl.SSLContext | None,
    ) -> tuple[object, ClientConnection]:
        made: tuple[object, ClientConnection] = await self.cluster.network.connect(
            host, port, protocol_factory, tls
        )
        self.sender.connected(host, port)
        return made


def play(acts: Callable[[Scene], Awaitable[None]], *, short_heartbeats: bool = False) -> Scene:
    """Have a scene played on a virtual clock."""

    async def whole() -> Scene:
        scene = Scene(short_heartbeats)
        async with scene.remoting:
            await acts(scene)
        return scene

    return run(whole())


def slowly(s: float) -> Callable[[Command], Awaitable[Command]]:
    async def answer(request: Command) -> Command:
        await asyncio.sleep(s)
        return broker_4(request)

    return answer


def forms(peer: Peer) -> list[bool | None]:
    """Of each heartbeat, whether it was short."""
    return [data.without_sub for _, data in heartbeats_of(peer)]


def test_the_body_is_that_of_the_members() -> None:
    async def acts(scene: Scene) -> None:
        scene.members.add_consumer(PUSH, 7)
        assert await scene.sender.send()
        frame = scene.master.frames[0]
        assert (frame.command.code, frame.command.ext) == (RequestCode.HEART_BEAT, None)
        assert heartbeats_of(scene.master)[0][1] == scene.members.heartbeat("c1")

    play(acts)


def test_a_broker_under_two_names_gets_one_heartbeat() -> None:
    async def acts(scene: Scene) -> None:
        alias = route(queues("z"), group("z"))
        alias.broker_datas[0].broker_addrs[0] = MASTER
        scene.book.put("U", alias)
        scene.members.add_producer("pg")
        await scene.sender.send()
        assert len(heartbeats_of(scene.master)) == 1
        scene.members.add_consumer(PUSH, 7)
        await scene.sender.send()
        assert len(heartbeats_of(scene.master)) == 2

    play(acts)


def test_no_address_no_heartbeat() -> None:
    async def acts(scene: Scene) -> None:
        scene.members.add_producer("pg")
        scene.book.retain(())
        scene.book.drop_offline()
        await scene.sender.send()
        assert scene.cluster.network.frames == []

    play(acts)


def test_versions_in_answers_are_remembered() -> None:
    async def acts(scene: Scene) -> None:
        scene.members.add_consumer(PUSH, 7)
        scene.other.answer = broker_5
        scene.slave.refuses = True
        await scene.sender.send()
        assert scene.sender.versions == {MASTER: V4_9_7, OTHER: V5_5_0}
        scene.book.put("T", route(queues("a"), queues("b"), group("a", 1), group("b", 0)))
        scene.sender.remove_unknown_brokers()
        assert scene.sender.versions == {OTHER: V5_5_0}

    play(acts)


@pytest.mark.parametrize("refused", [ResponseCode.SYSTEM_BUSY, ResponseCode.SYSTEM_ERROR])
def test_a_refusal_is_a_failure(refused: int, caplog: pytest.LogCaptureFixture) -> None:
    async def acts(scene: Scene) -> None:
        scene.members.add_consumer(PUSH, 7)
        scene.master.answer = lambda request: request.reply(refused, remark="not now")
        await scene.sender.send()
        assert set(scene.sender.versions) == {SLAVE, OTHER}

    play(acts)
    assert f"{MASTER} answered code {refused}: not now" in caplog.text


def test_a_name_server_may_give_addresses_that_are_none() -> None:
    async def acts(scene: Scene) -> None:
        scene.members.add_producer("pg")
        odd = route(queues("z"), group("z", 0))
        odd.broker_datas[0].broker_addrs[0] = "no address"
        scene.book.put("U", odd)
        await scene.sender.send()
        assert heartbeat_times(scene.master) == [0]

    play(acts)


def test_brokers_that_do_not_answer_delay_no_others() -> None:
    """3 s for each dead broker one after the other would be longer than the 120 s in which brokers forget clients."""

    async def acts(scene: Scene) -> None:
        dead = [f"dead-{number}:10911" for number in range(CONCURRENT_BROKERS - 1)]
        for number, address in enumerate(dead):
            scene.cluster.network.serve(address, lambda _: None)
            part = route(queues(f"0dead-{number}"), group(f"0dead-{number}", 0))
            part.broker_datas[0].broker_addrs[0] = address
            scene.book.put(f"0{number}", part)
        scene.members.add_producer("pg")
        await scene.sender.send()
        assert max(heartbeat_times(scene.master) + heartbeat_times(scene.other)) <= 0.001
        assert now() == 3

    play(acts)


def test_many_brokers_get_heartbeats_quickly() -> None:
    async def acts(scene: Scene) -> None:
        scene.members.add_producer("pg")
        for number in range(1000):
            part = route(queues(f"n{number}"), group(f"n{number}", 0))
            scene.cluster.network.serve(f"n{number}-0:10911", slowly(0.01))
            scene.book.put(f"T{number}", part)
        await scene.sender.send()
        assert len(scene.cluster.network.frames) == 1002
        assert now() < 1

    play(acts)


def test_a_new_group_waits_for_the_heartbeat_under_way() -> None:
    async def acts(scene: Scene) -> None:
        scene.members.add_producer("pg")
        scene.master.answer = slowly(2)
        first = asyncio.create_task(scene.sender.send())
        await asyncio.sleep(1)
        scene.members.add_producer("new")
        await scene.sender.send_now()
        assert await first
        assert [(at, len(data.producer_data_set)) for at, data in heartbeats_of(scene.master)] == [
            (0, 1),
            (2, 2),
        ]

    play(acts)


def test_each_twentieth_round_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "mqns.heartbeats.sender")

    async def acts(scene: Scene) -> None:
        scene.members.add_producer("pg")
        for _ in range(41):
            await scene.sender.send()

    play(acts)
    assert [record.levelname for record in caplog.records if record.name == "mqns.heartbeats.sender"] == [
        "INFO"
    ] * 3


def test_leaving_goes_to_everybody() -> None:
    async def acts(scene: Scene) -> None:
        scene.slave.answer = lambda request: request.reply(1, remark="no")
        await scene.sender.unregister(
            [GroupUnregistration(producer_group="pg"), GroupUnregistration(consumer_group="cg")]
        )
        for peer in (scene.master, scene.slave, scene.other):
            assert [(f.command.code, f.command.ext, f.command.body) for f in peer.frames] == [
                (RequestCode.UNREGISTER_CLIENT, {"clientID": "c1", "producerGroup": "pg"}, b""),
                (RequestCode.UNREGISTER_CLIENT, {"clientID": "c1", "consumerGroup": "cg"}, b""),
            ]

    play(acts)


def test_a_broker_that_does_not_answer_is_sent_one_unregistration_only() -> None:
    async def acts(scene: Scene) -> None:
        scene.master.answer = lambda _: None
        await scene.sender.unregister(
            [GroupUnregistration(producer_group=f"pg{number}") for number in range(10)]
        )
        assert (len(scene.master.frames), len(scene.slave.frames)) == (1, 10)
        assert now() == 3

    play(acts)


def test_leaving_comes_after_the_heartbeat_under_way() -> None:
    """Else the broker would take the group in again."""

    async def acts(scene: Scene) -> None:
        scene.members.add_producer("pg")
        scene.master.answer = slowly(2)
        sending = asyncio.create_task(scene.sender.send())
        await asyncio.sleep(1)
        scene.members.remove_producer("pg")
        await scene.sender.unregister([GroupUnregistration(producer_group="pg")])
        await sending
        assert scene.master.codes == [RequestCode.HEART_BEAT, RequestCode.UNREGISTER_CLIENT]
        assert now() == 4

    play(acts)


# short forms (5.x)


def knowing(scene: Scene) -> None:
    """All brokers are of 5.5.0, and a consumer and a producer are there."""
    scene.members.add_consumer(PUSH, 7)
    scene.members.add_producer("pg")
    for peer in (scene.master, scene.slave, scene.other):
        peer.answer = broker_5


def test_a_broker_that_has_the_groups_gets_the_short_form() -> None:
    async def acts(scene: Scene) -> None:
        knowing(scene)
        scene.other.answer = broker_4
        for _ in range(3):
            await scene.sender.send()
        assert forms(scene.master) == forms(scene.slave) == [False, True, True]
        assert forms(scene.other) == [False, False, False]
        full, short, _ = (data for _, data in heartbeats_of(scene.master))
        assert full.heartbeat_fingerprint == short.heartbeat_fingerprint != 0
        assert [c.subscription_data_set for c in short.consumer_data_set] == [()]
        assert short.producer_data_set == full.producer_data_set

    play(acts, short_heartbeats=True)


def test_without_the_option_every_form_is_full() -> None:
    async def acts(scene: Scene) -> None:
        knowing(scene)
        for _ in range(3):
            await scene.sender.send()
        assert forms(scene.master) == [False, False, False]
        assert {data.heartbeat_fingerprint for _, data in heartbeats_of(scene.master)} == {0}

    play(acts)


def test_changed_groups_are_sent_in_full() -> None:
    async def acts(scene: Scene) -> None:
        knowing(scene)
        await scene.sender.send()
        scene.members.subscribe("cg1", "T", "TagB", 8)
        await scene.sender.send()
        await scene.sender.send()
        assert forms(scene.master) == [False, False, True]

    play(acts, short_heartbeats=True)


def test_a_broker_that_wants_the_full_form_gets_it_at_once() -> None:
    async def acts(scene: Scene) -> None:
        knowing(scene)
        await scene.sender.send()
        scene.master.answer = lambda request: broker_5(request, wants_full_form=True)
        await scene.sender.send()
        await scene.sender.send()
        assert forms(scene.master) == [False, True, False, False]
        scene.master.answer = broker_5
        await scene.sender.send()
        await scene.sender.send()
        assert forms(scene.master) == [False, True, False, False, False, True]

    play(acts, short_heartbeats=True)


def test_a_broker_over_a_new_connection_gets_the_full_form() -> None:
    """It forgot the group with its last connection, and of a short form it makes one without subscriptions."""

    async def acts(scene: Scene) -> None:
        knowing(scene)
        await scene.sender.send()
        scene.master.cut()
        await asyncio.sleep(0.1)
        await scene.sender.send()
        await scene.sender.send()
        assert forms(scene.master) == [False, True, False, True]
        assert forms(scene.slave) == [False, True, True]

    play(acts, short_heartbeats=True)


def test_a_broker_that_was_gone_gets_the_full_form() -> None:
    async def acts(scene: Scene) -> None:
        knowing(scene)
        await scene.sender.send()
        scene.book.put("T", route(queues("b"), group("a"), group("b", 0)))
        scene.sender.remove_unknown_brokers()
        scene.book.put("T", ROUTE)
        await scene.sender.send()
        assert forms(scene.master) == [False, False]
        assert forms(scene.other) == [False, True]

    play(acts, short_heartbeats=True)


def test_after_a_failure_a_broker_gets_the_full_form() -> None:
    async def acts(scene: Scene) -> None:
        knowing(scene)
        await scene.sender.send()
        scene.master.answer = lambda request: request.reply(ResponseCode.SYSTEM_BUSY)
        await scene.sender.send()
        scene.master.answer = broker_5
        await scene.sender.send()
        assert forms(scene.master) == [False, True, False]

    play(acts, short_heartbeats=True)


def test_after_leaving_a_broker_gets_the_full_form() -> None:
    async def acts(scene: Scene) -> None:
        knowing(scene)
        await scene.sender.send()
        await scene.sender.unregister([GroupUnregistration(consumer_group="another")])
        await scene.sender.send()
        assert forms(scene.master) == [False, False]

    play(acts, short_heartbeats=True)


def test_equal_groups_have_equal_fingerprints_in_every_process() -> None:
    """Brokers compare the fingerprints of a group's members: they would want full forms for ever."""
    seen: list[HeartbeatData] = []

    async def acts(scene: Scene) -> None:
        await scene.sender.send()
        seen.append(heartbeats_of(scene.master)[0][1])

    async def one(scene: Scene) -> None:
        scene.members.add_producer("pg1")
        scene.members.add_producer("pg2")
        scene.members.add_consumer(ConsumerGroup(group="cg", subscriptions={"A": "*", "B": "x||y"}), 7)
        await acts(scene)

    async def other(scene: Scene) -> None:
        scene.members.add_consumer(ConsumerGroup(group="cg", subscriptions={"B": "x||y", "A": ""}), 8)
        scene.members.add_producer("pg2")
        scene.members.add_producer("pg1")
        await acts(scene)

    play(one, short_heartbeats=True)
    play(other, short_heartbeats=True)
    assert seen[0].heartbeat_fingerprint == seen[1].heartbeat_fingerprint
