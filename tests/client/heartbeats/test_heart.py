"""Heartbeats to brokers: whom, when, in which form."""

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable

import pytest

from client.heartbeats.heart import AT_ONCE, Heart, Leaving
from client.heartbeats.members import Consumer, Members
from client.routes.book import RouteBook
from client.wire.connection import Connection
from client.wire.remoting_client import AsyncRemotingClient
from remoting.codes import RequestCode, ResponseCode
from remoting.command import Command
from remoting.heartbeat import HeartbeatData
from tests.client.cluster import V4_9_7, V5_5_0, Cluster, beat_times, beats, broker_4, broker_5
from tests.client.routes.routes import group, queues, route
from tests.harness.network import Peer
from tests.harness.virtual_time import now, run

MASTER, SLAVE, OTHER = "a-0:10911", "a-1:10911", "b-0:10911"
ROUTE = route(queues("a"), queues("b"), group("a", 0, 1), group("b", 0))
PUSH = Consumer(group="cg1", subscriptions={"T": "TagA"})


class Scene:
    """A heart with the brokers of ROUTE in its book."""

    def __init__(self, short_forms: bool = False) -> None:
        self.cluster = Cluster()
        self.master, self.slave, self.other = self.cluster.brokers(MASTER, SLAVE, OTHER)
        self.members = Members()
        self.book = RouteBook()
        self.book.put("T", ROUTE)
        self.remoting = AsyncRemotingClient(connect=self._connect)
        self.heart = Heart(self.remoting, self.members, self.book, "c1", short_forms=short_forms)

    async def _connect(
        self, host: str, port: int, protocol_factory: Callable[[], Connection], tls: ssl.SSLContext | None
    ) -> tuple[object, Connection]:
        made: tuple[object, Connection] = await self.cluster.network.connect(
            host, port, protocol_factory, tls
        )
        self.heart.connected(host, port)
        return made


def play(acts: Callable[[Scene], Awaitable[None]], *, short_forms: bool = False) -> Scene:
    """Have a scene played on a virtual clock."""

    async def whole() -> Scene:
        scene = Scene(short_forms)
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
    return [data.without_sub for _, data in beats(peer)]


def test_the_body_is_that_of_the_members() -> None:
    async def acts(scene: Scene) -> None:
        scene.members.add_consumer(PUSH, 7)
        assert await scene.heart.beat()
        frame = scene.master.frames[0]
        assert (frame.command.code, frame.command.ext) == (RequestCode.HEART_BEAT, None)
        assert beats(scene.master)[0][1] == scene.members.heartbeat("c1")

    play(acts)


def test_a_broker_under_two_names_is_told_once() -> None:
    async def acts(scene: Scene) -> None:
        alias = route(queues("z"), group("z"))
        alias.broker_datas[0].broker_addrs[0] = MASTER
        scene.book.put("U", alias)
        scene.members.add_producer("pg")
        await scene.heart.beat()
        assert len(beats(scene.master)) == 1
        scene.members.add_consumer(PUSH, 7)
        await scene.heart.beat()
        assert len(beats(scene.master)) == 2

    play(acts)


def test_no_address_no_beat() -> None:
    async def acts(scene: Scene) -> None:
        scene.members.add_producer("pg")
        scene.book.forget_all_but(())
        scene.book.drop_offline()
        await scene.heart.beat()
        assert scene.cluster.network.frames == []

    play(acts)


def test_versions_in_answers_are_remembered() -> None:
    async def acts(scene: Scene) -> None:
        scene.members.add_consumer(PUSH, 7)
        scene.other.answer = broker_5
        scene.slave.refuses = True
        await scene.heart.beat()
        assert scene.heart.versions == {MASTER: V4_9_7, OTHER: V5_5_0}
        scene.book.put("T", route(queues("a"), queues("b"), group("a", 1), group("b", 0)))
        scene.heart.forget_gone()
        assert scene.heart.versions == {OTHER: V5_5_0}

    play(acts)


@pytest.mark.parametrize("refused", [ResponseCode.SYSTEM_BUSY, ResponseCode.SYSTEM_ERROR])
def test_a_refusal_is_a_failure(refused: int, caplog: pytest.LogCaptureFixture) -> None:
    async def acts(scene: Scene) -> None:
        scene.members.add_consumer(PUSH, 7)
        scene.master.answer = lambda request: request.reply(refused, remark="not now")
        await scene.heart.beat()
        assert set(scene.heart.versions) == {SLAVE, OTHER}

    play(acts)
    assert f"{MASTER} answered code {refused}: not now" in caplog.text


def test_a_name_server_may_give_addresses_that_are_none() -> None:
    async def acts(scene: Scene) -> None:
        scene.members.add_producer("pg")
        odd = route(queues("z"), group("z", 0))
        odd.broker_datas[0].broker_addrs[0] = "no address"
        scene.book.put("U", odd)
        await scene.heart.beat()
        assert beat_times(scene.master) == [0]

    play(acts)


def test_brokers_that_do_not_answer_hold_up_nobody_else() -> None:
    """3 s for each dead broker one after the other would be longer than the 120 s in which brokers forget clients."""

    async def acts(scene: Scene) -> None:
        dead = [f"dead-{number}:10911" for number in range(AT_ONCE - 1)]
        for number, address in enumerate(dead):
            scene.cluster.network.serve(address, lambda _: None)
            part = route(queues(f"0dead-{number}"), group(f"0dead-{number}", 0))
            part.broker_datas[0].broker_addrs[0] = address
            scene.book.put(f"0{number}", part)
        scene.members.add_producer("pg")
        await scene.heart.beat()
        assert max(beat_times(scene.master) + beat_times(scene.other)) <= 0.001
        assert now() == 3

    play(acts)


def test_many_brokers_are_told_quickly() -> None:
    async def acts(scene: Scene) -> None:
        scene.members.add_producer("pg")
        for number in range(1000):
            part = route(queues(f"n{number}"), group(f"n{number}", 0))
            scene.cluster.network.serve(f"n{number}-0:10911", slowly(0.01))
            scene.book.put(f"T{number}", part)
        await scene.heart.beat()
        assert len(scene.cluster.network.frames) == 1002
        assert now() < 1

    play(acts)


def test_a_new_group_waits_for_the_beat_that_goes_on() -> None:
    async def acts(scene: Scene) -> None:
        scene.members.add_producer("pg")
        scene.master.answer = slowly(2)
        first = asyncio.create_task(scene.heart.beat())
        await asyncio.sleep(1)
        scene.members.add_producer("new")
        await scene.heart.beat_anew()
        assert await first
        assert [(at, len(data.producer_data_set)) for at, data in beats(scene.master)] == [(0, 1), (2, 2)]

    play(acts)


def test_each_twentieth_round_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "client.heartbeats.heart")

    async def acts(scene: Scene) -> None:
        scene.members.add_producer("pg")
        for _ in range(41):
            await scene.heart.beat()

    play(acts)
    assert [record.levelname for record in caplog.records] == ["INFO"] * 3


def test_leaving_goes_to_everybody() -> None:
    async def acts(scene: Scene) -> None:
        scene.slave.answer = lambda request: request.reply(1, remark="no")
        await scene.heart.leave([Leaving(producer_group="pg"), Leaving(consumer_group="cg")])
        for peer in (scene.master, scene.slave, scene.other):
            assert [(f.command.code, f.command.ext, f.command.body) for f in peer.frames] == [
                (RequestCode.UNREGISTER_CLIENT, {"clientID": "c1", "producerGroup": "pg"}, b""),
                (RequestCode.UNREGISTER_CLIENT, {"clientID": "c1", "consumerGroup": "cg"}, b""),
            ]

    play(acts)


def test_who_does_not_answer_is_asked_to_take_leave_of_one_group_only() -> None:
    async def acts(scene: Scene) -> None:
        scene.master.answer = lambda _: None
        await scene.heart.leave([Leaving(producer_group=f"pg{number}") for number in range(10)])
        assert (len(scene.master.frames), len(scene.slave.frames)) == (1, 10)
        assert now() == 3

    play(acts)


def test_leaving_comes_after_the_beat_that_goes_on() -> None:
    """Else the broker would take the group in again."""

    async def acts(scene: Scene) -> None:
        scene.members.add_producer("pg")
        scene.master.answer = slowly(2)
        beat = asyncio.create_task(scene.heart.beat())
        await asyncio.sleep(1)
        scene.members.remove_producer("pg")
        await scene.heart.leave([Leaving(producer_group="pg")])
        await beat
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


def test_who_has_heard_all_gets_the_short_form() -> None:
    async def acts(scene: Scene) -> None:
        knowing(scene)
        scene.other.answer = broker_4
        for _ in range(3):
            await scene.heart.beat()
        assert forms(scene.master) == forms(scene.slave) == [False, True, True]
        assert forms(scene.other) == [False, False, False]
        full, short, _ = (data for _, data in beats(scene.master))
        assert full.heartbeat_fingerprint == short.heartbeat_fingerprint != 0
        assert [c.subscription_data_set for c in short.consumer_data_set] == [()]
        assert short.producer_data_set == full.producer_data_set

    play(acts, short_forms=True)


def test_without_the_option_every_form_is_full() -> None:
    async def acts(scene: Scene) -> None:
        knowing(scene)
        for _ in range(3):
            await scene.heart.beat()
        assert forms(scene.master) == [False, False, False]
        assert {data.heartbeat_fingerprint for _, data in beats(scene.master)} == {0}

    play(acts)


def test_changed_groups_are_told_in_full() -> None:
    async def acts(scene: Scene) -> None:
        knowing(scene)
        await scene.heart.beat()
        scene.members.subscribe("cg1", "T", "TagB", 8)
        await scene.heart.beat()
        await scene.heart.beat()
        assert forms(scene.master) == [False, False, True]

    play(acts, short_forms=True)


def test_who_wants_the_full_form_gets_it_at_once() -> None:
    async def acts(scene: Scene) -> None:
        knowing(scene)
        await scene.heart.beat()
        scene.master.answer = lambda request: broker_5(request, wants_full_form=True)
        await scene.heart.beat()
        await scene.heart.beat()
        assert forms(scene.master) == [False, True, False, False]
        scene.master.answer = broker_5
        await scene.heart.beat()
        await scene.heart.beat()
        assert forms(scene.master) == [False, True, False, False, False, True]

    play(acts, short_forms=True)


def test_a_broker_over_a_new_connection_is_told_in_full() -> None:
    """It forgot the group with its last connection, and of a short form it makes one without subscriptions."""

    async def acts(scene: Scene) -> None:
        knowing(scene)
        await scene.heart.beat()
        scene.master.cut()
        await asyncio.sleep(0.1)
        await scene.heart.beat()
        await scene.heart.beat()
        assert forms(scene.master) == [False, True, False, True]
        assert forms(scene.slave) == [False, True, True]

    play(acts, short_forms=True)


def test_a_broker_that_was_gone_is_told_in_full() -> None:
    async def acts(scene: Scene) -> None:
        knowing(scene)
        await scene.heart.beat()
        scene.book.put("T", route(queues("b"), group("a"), group("b", 0)))
        scene.heart.forget_gone()
        scene.book.put("T", ROUTE)
        await scene.heart.beat()
        assert forms(scene.master) == [False, False]
        assert forms(scene.other) == [False, True]

    play(acts, short_forms=True)


def test_after_a_failure_a_broker_is_told_in_full() -> None:
    async def acts(scene: Scene) -> None:
        knowing(scene)
        await scene.heart.beat()
        scene.master.answer = lambda request: request.reply(ResponseCode.SYSTEM_BUSY)
        await scene.heart.beat()
        scene.master.answer = broker_5
        await scene.heart.beat()
        assert forms(scene.master) == [False, True, False]

    play(acts, short_forms=True)


def test_after_leaving_a_broker_is_told_in_full() -> None:
    async def acts(scene: Scene) -> None:
        knowing(scene)
        await scene.heart.beat()
        await scene.heart.leave([Leaving(consumer_group="another")])
        await scene.heart.beat()
        assert forms(scene.master) == [False, False]

    play(acts, short_forms=True)


def test_equal_groups_have_equal_fingerprints_in_every_process() -> None:
    """Brokers compare the fingerprints of a group's members: they would want full forms for ever."""
    seen: list[HeartbeatData] = []

    async def acts(scene: Scene) -> None:
        await scene.heart.beat()
        seen.append(beats(scene.master)[0][1])

    async def one(scene: Scene) -> None:
        scene.members.add_producer("pg1")
        scene.members.add_producer("pg2")
        scene.members.add_consumer(Consumer(group="cg", subscriptions={"A": "*", "B": "x||y"}), 7)
        await acts(scene)

    async def other(scene: Scene) -> None:
        scene.members.add_consumer(Consumer(group="cg", subscriptions={"B": "x||y", "A": ""}), 8)
        scene.members.add_producer("pg2")
        scene.members.add_producer("pg1")
        await acts(scene)

    play(one, short_forms=True)
    play(other, short_forms=True)
    assert seen[0].heartbeat_fingerprint == seen[1].heartbeat_fingerprint
