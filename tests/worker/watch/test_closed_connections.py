"""What the end of a connection does to the brokers that registered over it."""

import asyncio
import select
import socket
from typing import Any, Self

import pytest
import redis as redis_py

from mqnamesrv.store import EmbeddedStore
from registry.errors import StoreUnavailable
from registry.keys import Keys
from registry.plans import Plan
from registry.removal import Disconnected, Removal, release_owner, remove_disconnected
from testbed.eventually import PATIENCE_S, eventually_async
from tests.logged import logged
from tests.worker.scene import Broker, Scene, asynchronous, last_cause, serving
from worker.handlers.registration import UNSURE_MOST
from worker.outgoing import Endpoint
from worker.watch import closed_connections, ticker
from worker.watch.probes import Probe


async def gone(scene: Scene) -> bool:
    return await scene.addresses() == {}


@pytest.mark.parametrize(
    ("probes", "cause"),
    [pytest.param(True, "lost", id="probe"), pytest.param(False, "closed", id="no-probe")],
)
@asynchronous
async def test_a_broker_that_answers_nowhere_is_gone_with_its_connection(
    store: EmbeddedStore, redis: redis_py.Redis, refused: str, probes: bool, cause: str
) -> None:
    async with serving(store.url, connection_loss_probe=probes) as scene:
        peer = scene.connect()
        await scene.register(Broker(address=refused), peer=peer)
        assert peer.registered == {f"c1:{refused}"}
        scene.disconnect(peer)
        await eventually_async(lambda: gone(scene))
        assert last_cause(redis) == cause


@pytest.mark.parametrize(
    ("registration", "kept"),
    [
        pytest.param({"body": b"{"}, False, id="an unreadable body"),
        pytest.param({"body": Broker().body(T=6)}, False, id="one topic only"),
        pytest.param({}, True, id="accepted"),
    ],
)
@asynchronous
async def test_a_first_registration_that_is_refused_is_not_kept(
    store: EmbeddedStore, registration: dict[str, bytes], kept: bool
) -> None:
    async with serving(store.url) as scene:
        peer = scene.connect()
        reply = await scene.register(
            Broker(), peer=peer, ext={"enableActingMaster": "false"}, version=513, **registration
        )
        assert ((reply.code == 0), bool(peer.registered)) == (kept, kept)
        assert (reply.code == 0) is ("c1:127.0.0.9:1" in peer.registered)
        await scene.register(Broker(), b"{", peer=peer)
        assert bool(peer.registered) is kept


@asynchronous
async def test_a_refused_one_takes_nothing_from_one_that_was_accepted_behind_it(store: EmbeddedStore) -> None:
    async with serving(store.url) as scene:
        peer, broker = scene.connect(), Broker()
        for body in (b"{" + bytes(100), broker.body()):
            scene.send(103, body, broker.ext, peer=peer)
        replies = [await asyncio.wait_for(peer.sent.get(), PATIENCE_S) for _ in range(2)]
        assert sorted(reply.code for reply in replies) == [0, 1]
        assert peer.registered == {"c1:127.0.0.9:1"}


@asynchronous
async def test_a_broker_that_still_listens_is_left_to_its_lease(store: EmbeddedStore, listening: str) -> None:
    async with serving(store.url) as scene:
        peer = scene.connect()
        await scene.register(Broker(address=listening), peer=peer)
        scene.disconnect(peer)
        await eventually_async(lambda: scene.service.parts.counters.probes_reachable == 1)
        assert await scene.addresses() == {"broker-a": {"0": listening}}


@asynchronous
async def test_a_broker_that_came_back_over_another_connection_stays_until_that_ends(
    store: EmbeddedStore, refused: str
) -> None:
    async with serving(store.url) as worker_1, serving(store.url, "w2") as worker_2:
        first, second = worker_1.connect(), worker_2.connect()
        await worker_1.register(Broker(address=refused), peer=first)
        await worker_2.register(Broker(address=refused), peer=second)
        worker_1.disconnect(first)
        await asyncio.sleep(0.1)
        assert await worker_2.addresses() == {"broker-a": {"0": refused}}
        worker_2.disconnect(second)
        await eventually_async(lambda: gone(worker_1))


@asynchronous
async def test_all_brokers_of_a_connection_go_with_it(store: EmbeddedStore, refused: str) -> None:
    async with serving(store.url) as scene:
        peer = scene.connect()
        await scene.register(Broker("broker-a", refused), peer=peer)
        await scene.register(Broker("broker-b", "127.0.0.77:1"), peer=peer)
        scene.disconnect(peer)
        await eventually_async(lambda: gone(scene))


@asynchronous
async def test_a_worker_that_shuts_down_unregisters_no_broker(store: EmbeddedStore, refused: str) -> None:
    async with serving(store.url, connection_loss_probe=False) as scene:
        peer = scene.connect()
        await scene.register(Broker(address=refused), peer=peer)
        scene.disconnect(peer, shutting_down=True)
        await asyncio.sleep(0.1)
        assert await scene.addresses() == {"broker-a": {"0": refused}}


@asynchronous
async def test_a_connection_without_brokers_ends_quietly(store: EmbeddedStore, refused: str) -> None:
    async with serving(store.url, connection_loss_probe=False) as scene:
        await scene.register(Broker(address=refused))
        client = scene.connect()
        await scene.ask(105, topic="TA", peer=client)
        scene.disconnect(client)
        await asyncio.sleep(0.1)
        assert await scene.addresses() == {"broker-a": {"0": refused}}


@asynchronous
async def test_a_connection_that_ended_before_its_registration_was_done_owns_no_member(
    store: EmbeddedStore, redis: redis_py.Redis, refused: str
) -> None:
    async with serving(store.url) as scene:
        peer, broker = scene.connect(), Broker(address=refused)
        scene.send(103, broker.body(), broker.ext, peer=peer)
        scene.disconnect(peer)
        await asyncio.wait_for(peer.sent.get(), PATIENCE_S)
        await eventually_async(lambda: gone(scene))
        assert redis.keys("ns:{default}:member:*") == []


@asynchronous
async def test_a_connection_lost_while_the_store_was_away_is_released_later(
    store: EmbeddedStore, redis: redis_py.Redis, refused: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worker.watch.closed_connections.RETRY_S", 0.05)
    async with serving(store.url) as scene:
        peer = scene.connect()
        await scene.register(Broker(address=refused), peer=peer)
        redis.config_set("maxclients", 1)
        redis.client_kill_filter(_type="normal", skipme=True)
        scene.disconnect(peer)
        await asyncio.sleep(0.2)
        redis.config_set("maxclients", 1000)
        await eventually_async(lambda: gone(scene))


@asynchronous
async def test_a_disconnected_member_is_removed_even_if_the_store_was_away_after_its_probe(
    store: EmbeddedStore, refused: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[int] = []

    def away_at_first(*given: Any) -> Plan[Removal]:
        tries.append(1)
        if len(tries) < 3:
            raise StoreUnavailable("away")
        return remove_disconnected(*given)

    monkeypatch.setattr("worker.watch.closed_connections.RETRY_S", 0.01)
    monkeypatch.setattr("worker.watch.closed_connections.remove_disconnected", away_at_first)
    async with serving(store.url) as scene:
        peer = scene.connect()
        await scene.register(Broker(address=refused), peer=peer)
        scene.disconnect(peer)
        await eventually_async(lambda: gone(scene))


@asynchronous
async def test_the_connection_of_an_expired_broker_is_closed(store: EmbeddedStore, refused: str) -> None:
    async with serving(store.url, "w1") as worker_1, serving(store.url, "w2") as worker_2:
        peer, bystander = worker_1.connect(), worker_1.connect()
        await worker_1.register(Broker(address=refused), peer=peer, heartbeatTimeoutMillis="50")
        await worker_1.register(Broker("broker-b", "127.0.0.8:1"), peer=bystander)
        await eventually_async(lambda: only_b(worker_1))
        await worker_2.service.parts.ticker._expire()
        await eventually_async(lambda: peer.closed)
        assert not bystander.closed


async def only_b(scene: Scene) -> bool:
    return set(await scene.addresses()) == {"broker-b"}


@asynchronous
async def test_the_connection_of_a_broker_that_registered_again_stays_open(
    store: EmbeddedStore, refused: str
) -> None:
    async with serving(store.url) as scene:
        peer = scene.connect()
        await scene.register(Broker(address=refused), peer=peer, heartbeatTimeoutMillis="50")
        await asyncio.sleep(0.1)
        await scene.register(Broker(address=refused), peer=peer)
        await scene.service.parts.ticker._expire()
        scene.service.parts.closed.expired(f"c1:{refused}")
        await asyncio.sleep(0.1)
        assert not peer.closed


@asynchronous
async def test_what_cannot_be_looked_up_or_recorded_is_logged(
    store: EmbeddedStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Any error: these tasks are not awaited, and Python would report it when they are collected."""

    def damaged(*given: Any) -> Plan[Any]:
        raise KeyError("addr")
        yield

    monkeypatch.setattr(closed_connections, "is_member", damaged)
    monkeypatch.setattr(ticker, "expire", damaged)
    async with serving(store.url) as scene:
        peer = scene.connect()
        await scene.register(Broker(), peer=peer)
        scene.service.parts.closed.expired("c1:127.0.0.9:1")
        await scene.service.parts.ticker._expire()
        await eventually_async(lambda: len(logged(caplog)) >= 2)
    first, second = sorted(logged(caplog))
    assert first.startswith("connections of member c1:127.0.0.9:1, which has expired, stay open: 'addr'")
    assert second.startswith("ended leases were not recorded: 'addr'")


class Probed:
    """Addresses of 127.0.0.1 or another host that are alive, and which of them were connected to."""

    def __init__(self, count: int, host: str) -> None:
        self._sockets = [socket.create_server((host, 0)) for _ in range(count)]
        self.addresses = [f"{host}:{one.getsockname()[1]}" for one in self._sockets]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for one in self._sockets:
            one.close()

    @property
    def count(self) -> int:
        """To how many of them somebody connected."""
        return len(select.select(self._sockets, [], [], 0)[0])


@pytest.mark.parametrize(
    ("networks", "came_from", "kept"),
    [
        pytest.param("", "10.0.0.1:40000", False, id="from elsewhere"),
        pytest.param("10.0.0.0/8,fd00::/8", "10.0.0.1:40000", False, id="not listed"),
        pytest.param("10.0.0.0/8, 127.10.0.0/16", "10.0.0.1:40000", True, id="listed"),
        pytest.param("", "127.10.0.5:40000", True, id="from there"),
    ],
)
@asynchronous
async def test_only_where_the_peer_came_from_is_probed_unless_a_network_is_listed(
    store: EmbeddedStore, redis: redis_py.Redis, networks: str, came_from: str, kept: bool
) -> None:
    with Probed(1, "127.10.0.5") as there:
        async with serving(store.url, probe_networks=networks) as scene:
            peer = scene.connect(came_from)
            await scene.register(Broker(address=there.addresses[0]), peer=peer)
            scene.disconnect(peer)
            if kept:
                await eventually_async(lambda: scene.service.parts.counters.probes_reachable == 1)
            else:
                await eventually_async(lambda: gone(scene))
                assert last_cause(redis) == "closed"
            assert (bool(await scene.addresses()), there.count) == (kept, int(kept))


@asynchronous
async def test_a_name_is_never_probed(store: EmbeddedStore, listening: str) -> None:
    async with serving(store.url, probe_networks="0.0.0.0/0,::/0") as scene:
        peer = scene.connect()
        await scene.register(Broker(address=listening.replace("127.0.0.1", "localhost")), peer=peer)
        scene.disconnect(peer)
        await eventually_async(lambda: gone(scene))


@asynchronous
async def test_a_connection_has_sixteen_members_probed_however_many_it_registered(
    store: EmbeddedStore,
) -> None:
    with Probed(20, "127.0.0.1") as there:
        async with serving(store.url) as scene:
            peer = scene.connect()
            for number, address in enumerate(there.addresses):
                await scene.register(Broker(f"broker-{number}", address), peer=peer)
            scene.disconnect(peer)
            await eventually_async(lambda: sixteen_left(scene))
            assert there.count == 16


async def sixteen_left(scene: Scene) -> bool:
    return len(await scene.addresses()) == 16 == scene.service.parts.counters.probes_reachable


@asynchronous
async def test_a_broker_waits_for_no_more_than_a_probe_of_another_host(
    store: EmbeddedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A probe may take its whole time-out, if a peer keeps its own port from answering."""
    all_wait, probed = asyncio.Event(), list[str]()

    async def refused_late(to: Endpoint, timeout_s: float) -> Probe:
        probed.append(to.host)
        await all_wait.wait()
        return Probe.REFUSED

    monkeypatch.setattr(closed_connections, "PROBES_MAX", 1)
    monkeypatch.setattr("worker.watch.probes.probe", refused_late)
    async with serving(store.url) as scene:
        hostile, killed = scene.connect("127.10.0.5:40000"), scene.connect()
        for number in range(4):
            await scene.register(Broker(f"broker-{number}", f"127.10.0.5:{1000 + number}"), peer=hostile)
        await scene.register(Broker("broker-a", "127.0.0.1:1"), peer=killed)
        for peer in (hostile, killed):
            scene.disconnect(peer)
            await asyncio.sleep(0.1)
        all_wait.set()
        await eventually_async(lambda: gone(scene))
    assert probed == ["127.10.0.5", "127.0.0.1", *3 * ["127.10.0.5"]]


@asynchronous
async def test_few_registrations_that_the_store_could_not_take_are_kept(
    store: EmbeddedStore, redis: redis_py.Redis, refused: str
) -> None:
    """Any number of made-up addresses would be, while the store is away."""
    async with serving(store.url) as scene:
        peer = scene.connect()
        await scene.register(Broker(address=refused), peer=peer)
        redis.config_set("maxclients", 1)
        redis.client_kill_filter(_type="normal", skipme=True)
        for number in range(UNSURE_MOST + 5):
            broker = Broker("broker-b", f"127.0.0.77:{number + 1}")
            assert (await scene.register(broker, peer=peer, brokerId="5")).code == 1
        assert f"c1:{refused}" in peer.registered
        assert len(peer.registered) == UNSURE_MOST
        redis.config_set("maxclients", 1000)


@asynchronous
async def test_while_the_store_is_away_few_ask_it_again(
    store: EmbeddedStore, refused: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    away = True

    def while_away(keys: Keys, cluster: str, address: str, owner: str) -> Plan[Disconnected | None]:
        if away:
            asked.append(address)
            raise StoreUnavailable("away")
        return release_owner(keys, cluster, address, owner)

    monkeypatch.setattr(closed_connections, "RETRY_S", 0.01)
    monkeypatch.setattr(closed_connections, "ASKING_MAX", 2)
    monkeypatch.setattr(closed_connections, "release_owner", while_away)
    async with serving(store.url) as scene:
        peer = scene.connect()
        for number in range(8):
            await scene.register(Broker(f"broker-{number}", f"127.0.0.77:{number + 1}"), peer=peer)
        scene.disconnect(peer)
        await eventually_async(lambda: many(asked))
        assert len(set(asked)) == 2
        away = False
        await eventually_async(lambda: gone(scene))


async def many(asked: list[str]) -> bool:
    return len(asked) > 20


@pytest.mark.parametrize("is_back", [True, False])
@asynchronous
async def test_a_broker_whose_connection_is_closed_from_here_has_time_to_come_back(
    store: EmbeddedStore, redis: redis_py.Redis, refused: str, monkeypatch: pytest.MonkeyPatch, is_back: bool
) -> None:
    """No probe is there that would keep it: without that time it would be gone with its connection, as with Java."""
    monkeypatch.setattr(closed_connections, "COME_BACK_S", 0.5)
    async with serving(store.url, connection_loss_probe=False) as scene:
        peer, later = scene.connect(), scene.connect()
        await scene.register(Broker(address=refused), peer=peer)
        scene.service.comes_back(peer)
        scene.disconnect(peer)
        await asyncio.sleep(0.2)
        assert await scene.addresses() == {"broker-a": {"0": refused}}
        if is_back:
            await scene.register(Broker(address=refused), peer=later)
            await asyncio.sleep(0.6)
            assert await scene.addresses() == {"broker-a": {"0": refused}}
            scene.disconnect(later)
        await eventually_async(lambda: gone(scene))
        assert last_cause(redis) == "closed"
