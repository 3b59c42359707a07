"""Requests that only the owner of a living broker may make: refused, or made once the broker in their way has gone."""

import asyncio
from typing import Any

import pytest
import redis as redis_py

from mqnamesrv.store import EmbeddedStore
from registry.ownership import Claimant
from rocketmq_remoting.codes import RequestCode, ResponseCode
from rocketmq_remoting.command import Command
from testbed.eventually import PATIENCE_S
from tests.worker.scene import Broker, FakePeer, asynchronous, serving
from worker import assembly
from worker.outgoing import Endpoint
from worker.peer import Peer
from worker.watch import contested_members, probes
from worker.watch.probes import Probe, probe

HERE, THERE = "127.0.0.1:40000", "127.0.0.5:40000"
OTHER = Broker(address="127.0.0.5:10911")


@pytest.fixture
def probed(monkeypatch: pytest.MonkeyPatch) -> list[Endpoint]:
    """What is probed."""
    seen: list[Endpoint] = []

    async def noted(to: Endpoint, timeout_s: float) -> Probe:
        seen.append(to)
        return await probe(to, timeout_s)

    monkeypatch.setattr(probes, "probe", noted)
    monkeypatch.setattr(probes, "SECOND_PROBE_S", 0.01)
    return seen


async def without_connection(store: EmbeddedStore, address: str, peer: str = HERE) -> None:
    """Have a broker that registered over a worker which has ended."""
    async with serving(store.url, "w2") as other:
        assert (await other.register(Broker(address=address), peer=other.connect(peer))).code == 0


async def refused_within_time(peer: FakePeer) -> None:
    reply = await asyncio.wait_for(peer.sent.get(), PATIENCE_S)
    assert reply.code == ResponseCode.NO_PERMISSION


def is_refusal(reply: Command, peer: FakePeer) -> bool:
    assert reply.code == ResponseCode.NO_PERMISSION
    assert reply.remark == f"access denied: broker needs the owner of broker-a; caller wire:{peer.address}"
    assert reply.ext is None
    return True


@asynchronous
async def test_a_broker_with_a_connection_has_its_id(store: EmbeddedStore, refused: str) -> None:
    async with serving(store.url, ownership_guard=True) as scene:
        await scene.register(Broker(address=refused), peer=scene.connect(HERE))
        there = scene.connect(THERE)
        assert is_refusal(await scene.register(OTHER, peer=there), there)
        assert is_refusal(await scene.ask(104, ext=Broker(address=refused).ext, peer=there), there)
        assert await scene.addresses() == {"broker-a": {"0": refused}}
        assert there.registered == set()


@asynchronous
async def test_without_the_guard_the_later_one_wins(store: EmbeddedStore, refused: str) -> None:
    async with serving(store.url) as scene:
        await scene.register(Broker(address=refused), peer=scene.connect(HERE))
        assert (await scene.register(OTHER, peer=scene.connect(THERE))).code == 0
        assert await scene.addresses() == {"broker-a": {"0": "127.0.0.5:10911"}}


@asynchronous
async def test_one_without_connection_whose_address_refuses_makes_way_at_once(
    store: EmbeddedStore, redis: redis_py.Redis, refused: str, probed: list[Endpoint]
) -> None:
    await without_connection(store, refused)
    async with serving(store.url, ownership_guard=True) as scene:
        there = scene.connect(THERE)
        assert (await scene.register(OTHER, peer=there)).code == 0
        assert await scene.addresses() == {"broker-a": {"0": "127.0.0.5:10911"}}
        assert there.registered == {"c1:127.0.0.5:10911"}
    assert len(probed) == 1
    store_entries: Any = redis.xrange("ns:{default}:events")
    entries = [fields for _, fields in store_entries]
    removed = next(fields for fields in entries if fields["kind"] == "broker_removed")
    assert (removed["cause"], removed["actor"]) == ("lost", "worker:w1")
    entered = [fields for fields in entries if fields["kind"] == "broker_registered"]
    assert removed["op"] == entered[-1]["op"]


@asynchronous
async def test_with_refused_conflicts_a_living_id_is_refused_so_that_the_broker_repeats_it(
    store: EmbeddedStore, redis: redis_py.Redis, refused: str
) -> None:
    """Code 1: after 16 a broker of 5.x would take its 322 for "not changed", and register wholly no more."""
    async with serving(store.url, identity_conflicts="refuse") as scene:
        first = scene.connect(HERE)
        await scene.register(Broker(address=refused), peer=first)
        there = scene.connect(THERE)
        for _ in range(3):
            reply = await scene.register(OTHER, peer=there)
            assert (reply.code, reply.remark) == (
                ResponseCode.SYSTEM_ERROR,
                f"id 0 of broker 'broker-a' is taken: {refused} of cluster 'c1' lives there (identityConflicts=refuse)",
            )
        assert await scene.addresses() == {"broker-a": {"0": refused}}
        assert there.registered == set()
        assert (await scene.register(Broker(address=refused), peer=first)).code == 0
    found: Any = redis.xrange("ns:{default}:events")
    assert [fields["cause"] for _, fields in found if fields["kind"] == "conflict_seen"] == ["two_addresses"]


@asynchronous
async def test_with_refused_conflicts_one_without_connection_whose_address_refuses_makes_way_at_once(
    store: EmbeddedStore, refused: str, probed: list[Endpoint]
) -> None:
    """A broker that came back at another address, as a pod does, waits for no lease."""
    await without_connection(store, refused)
    async with serving(store.url, identity_conflicts="refuse") as scene:
        assert (await scene.register(OTHER, peer=scene.connect(THERE))).code == 0
        assert await scene.addresses() == {"broker-a": {"0": "127.0.0.5:10911"}}
    assert len(probed) == 1


@asynchronous
async def test_one_that_answers_stays_and_is_not_probed_by_each_request(
    store: EmbeddedStore, listening: str, probed: list[Endpoint], monkeypatch: pytest.MonkeyPatch
) -> None:
    await without_connection(store, listening)
    async with serving(store.url, ownership_guard=True) as scene:
        there = [scene.connect(THERE) for _ in range(30)]
        for peer in there:
            scene.send(103, OTHER.body(), OTHER.ext, peer=peer)
        for peer in there:
            assert is_refusal(await asyncio.wait_for(peer.sent.get(), PATIENCE_S), peer)
        assert len(probed) == 2  # by the one that was first, as after the end of a connection
        monkeypatch.setattr(contested_members, "EACH_S", 0.0)
        scene.service.parts.second_try._contested._next.clear()
        assert is_refusal(await scene.register(OTHER, peer=there[0]), there[0])
        assert len(probed) == 4
        assert await scene.addresses() == {"broker-a": {"0": listening}}


@asynchronous
async def test_probes_of_any_number_of_members_are_few_at_once_and_no_host_has_them_all(
    store: EmbeddedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    under_way, go_on = list[Endpoint](), asyncio.Event()

    async def slow(to: Endpoint, timeout_s: float) -> Probe:
        under_way.append(to)
        await go_on.wait()
        return Probe.REACHABLE

    monkeypatch.setattr(probes, "probe", slow)
    monkeypatch.setattr(probes, "SECOND_PROBE_S", 0.0)
    monkeypatch.setattr(contested_members, "AT_ONCE", 4)
    async with serving(store.url, "w2") as other:
        for number in range(16):
            await other.register(Broker(f"broker-{number}", f"127.0.0.1:{1000 + number}"))
    async with serving(store.url, ownership_guard=True) as scene:
        peers = {host: scene.connect(f"127.0.0.{host}:40000") for host in (5, 6, 7, 8)}
        for number in range(16):
            host = 5 + number // 4
            broker = Broker(f"broker-{number}", f"127.0.0.{host}:{1000 + number}")
            scene.send(103, broker.body(), broker.ext, peer=peers[host])
        for host, probing in {5: 2, 6: 1, 7: 1, 8: 0}.items():
            for _ in range(4 - probing):
                await refused_within_time(peers[host])
        assert len(under_way) == 4
        go_on.set()
        for host in (5, 5, 6, 7):
            await refused_within_time(peers[host])


@asynchronous
async def test_one_that_may_not_be_probed_stays_until_its_lease_ends(
    store: EmbeddedStore, refused: str, probed: list[Endpoint]
) -> None:
    await without_connection(store, refused, "127.0.0.9:40000")
    async with serving(store.url, ownership_guard=True) as scene:
        there = scene.connect(THERE)
        assert is_refusal(await scene.register(OTHER, peer=there), there)
        assert probed == []
    async with serving(store.url, ownership_guard=True, probe_networks="127.0.0.0/8") as scene:
        assert (await scene.register(OTHER, peer=scene.connect(THERE))).code == 0


@asynchronous
async def test_one_that_may_not_be_probed_has_no_owner_when_its_lease_has_ended(
    store: EmbeddedStore, redis: redis_py.Redis, refused: str
) -> None:
    await without_connection(store, refused, "127.0.0.9:40000")
    async with serving(store.url, ownership_guard=True) as scene:
        redis.zadd("ns:{default}:leases", {f"c1:{refused}": 1})
        assert (await scene.register(OTHER, peer=scene.connect(THERE))).code == 0


@asynchronous
async def test_another_unregisters_one_that_has_gone(store: EmbeddedStore, refused: str) -> None:
    await without_connection(store, refused)
    async with serving(store.url, ownership_guard=True) as scene:
        reply = await scene.ask(104, ext=Broker(address=refused).ext, peer=scene.connect(THERE))
        assert reply.code == 0
        assert await scene.addresses() == {}


@asynchronous
async def test_two_that_are_in_the_way_are_probed_both(store: EmbeddedStore, refused: str) -> None:
    """The one that has the id, and the one that has the address."""
    await without_connection(store, refused)
    async with serving(store.url, "w3") as other:
        await other.register(Broker("broker-b", "127.0.0.1:1"), peer=other.connect(HERE))
    async with serving(store.url, ownership_guard=True) as scene:
        taking = Broker("broker-b", refused)
        assert (await scene.register(taking, peer=scene.connect(THERE))).code == 0
        assert await scene.addresses() == {"broker-b": {"0": refused}}


@asynchronous
async def test_a_oneway_request_is_answered_by_nothing(store: EmbeddedStore, refused: str) -> None:
    async with serving(store.url, ownership_guard=True) as scene:
        await scene.register(Broker(address=refused), peer=scene.connect(HERE))
        there = scene.connect(THERE)
        scene.send(103, OTHER.body(), OTHER.ext, peer=there, flag=2)
        assert await scene.addresses() == {"broker-a": {"0": refused}}
        assert there.sent.empty()


def principals(monkeypatch: pytest.MonkeyPatch, **names: str) -> None:
    """Have peers be principals by their hosts, as if certificates proved it."""

    def claimant(command: Command, peer: Peer, *_: object) -> Claimant:
        name = names.get(f"h{peer.host.rpartition('.')[2]}")
        return Claimant(f"principal:{name}" if name else f"host:{peer.host}", guard=True)

    monkeypatch.setattr(assembly, "claimant_of", claimant)


@asynchronous
async def test_no_bytes_renew_a_principals_lease_but_its_own(
    store: EmbeddedStore, redis: redis_py.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a heartbeat was answered is cached by its bytes; another connection may send the same."""
    async with serving(store.url, ownership_guard=True) as scene:
        principals(monkeypatch, h1="p1")
        broker, version = Broker(), b'{"counter":1,"timestamp":1000}'
        here, there = scene.connect(HERE), scene.connect(THERE)
        await scene.register(broker, peer=here)
        for _ in range(3):
            redis.zadd("ns:{default}:leases", {"c1:127.0.0.9:1": 8e12})
            scene.service.parts.registration_cache.renewals.invalidate()
            assert (await scene.ask(904, ext=broker.ext, peer=here)).code == 0
            assert (await scene.ask(322, version, broker.ext, peer=here)).ext == {"changed": "false"}
            assert redis.zscore("ns:{default}:leases", "c1:127.0.0.9:1") != 8e12
            redis.zadd("ns:{default}:leases", {"c1:127.0.0.9:1": 8e12})
            assert is_refusal(await scene.ask(904, ext=broker.ext, peer=there), there)
            changed = await scene.ask(322, version, broker.ext, peer=there)
            assert (changed.code, changed.ext, changed.body) == (0, {"changed": "true"}, b"")
            assert is_refusal(await scene.register(broker, peer=there), there)
            assert redis.zscore("ns:{default}:leases", "c1:127.0.0.9:1") == 8e12


@asynchronous
async def test_bytes_that_renewed_a_hosts_lease_do_not_renew_it_once_a_principal_has_it(
    store: EmbeddedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(store.url, ownership_guard=True) as scene:
        principals(monkeypatch, h7="p1")
        broker, here, owner = Broker(), scene.connect(HERE), scene.connect("127.0.0.7:1")
        await scene.register(broker, peer=here)
        for _ in range(3):
            assert (await scene.ask(904, ext=broker.ext, peer=here)).code == 0
        assert (await scene.register(broker, peer=owner)).code == 0
        scene.service.parts.registration_cache.renewals.invalidate()
        assert is_refusal(await scene.ask(904, ext=broker.ext, peer=here), here)
        assert (await scene.ask(904, ext=broker.ext, peer=owner)).code == 0


@asynchronous
async def test_a_topic_is_registered_by_the_principal_of_its_broker_or_by_an_operator(
    store: EmbeddedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = b'{"queueDatas":[{"brokerName":"broker-a","readQueueNums":1,"writeQueueNums":1,"perm":6}]}'
    async with serving(store.url, ownership_guard=True) as scene:
        operator = scene.connect(THERE)
        principals(monkeypatch, h1="p1")
        await scene.register(Broker(), peer=scene.connect(HERE))
        asked = RequestCode.REGISTER_TOPIC_IN_NAMESRV, body, {"topic": "TN"}
        assert is_refusal(await scene.ask(*asked, peer=operator), operator)
        monkeypatch.undo()  # by its address, which may ask all
        assert (await scene.ask(*asked, peer=operator)).code == 0
