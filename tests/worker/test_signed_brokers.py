"""Brokers with a key, on a real store: unchanged registrations take the short cut, and each is verified."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import redis as redis_py

from access.live import Stored
from mqnamesrv.store import EmbeddedStore
from registry.keys import Keys, member_key
from rocketmq_remoting.acl_signature import SIGNATURE
from rocketmq_remoting.codes import RequestCode, ResponseCode
from rocketmq_remoting.command import Command
from rocketmq_remoting.remoting_command import SerializeType
from tests.access.files import OTHER, access_file
from tests.worker.registrations import ADDRESS, KINDS, body_of, registration, signed
from tests.worker.scene import FakePeer, Scene, asynchronous, serving
from tests.worker.test_registering_again import moved_back, register

FILE = """
[principals.team]
roles = ["broker"]
limits = { topics = ["T*"] }
keys = [{ accessKey = "K", secrets = [{ file = "a.key" }] }]

[principals.other]
roles = ["broker"]
keys = [{ accessKey = "J", secrets = [{ file = "b.key" }] }]
"""
REFUSED = ResponseCode.NO_PERMISSION
KEYS = Keys()
MEMBER = member_key("c1", ADDRESS)


@asynccontextmanager
async def guarded(
    store: EmbeddedStore, folder: Path, rule: str = "signed", **options: Any
) -> AsyncIterator[Scene]:
    """A service that knows two brokers' keys."""
    file = str(access_file(folder, FILE))
    async with serving(store.url, access_file=file, access_broker=rule, **options) as scene:
        scene.service.identified(scene.peer)
        yield scene


def of_stamp(stamp: int, kind: SerializeType = SerializeType.JSON, **body: int) -> Command:
    return registration(body_of(stamp, **body), 7 + stamp, kind)


async def by_bytes(scene: Scene, command: Command, peer: FakePeer | None = None) -> bool:
    """Register; return whether that was answered by its bytes."""
    counters = scene.service.parts.counters
    before = counters.cached_requests
    assert (await register(scene, command, peer)).code == 0
    return counters.cached_requests > before


async def code_of(scene: Scene, command: Command, peer: FakePeer | None = None) -> int:
    return int((await register(scene, command, peer)).code)


def count(scene: Scene, operation: str, result: str) -> float:
    return scene.service.parts.counters.security.of(operation, result).value


@pytest.mark.parametrize("ownership", [False, True], ids=["unguarded", "with ownershipGuard"])
@pytest.mark.parametrize("kind", KINDS, ids=str)
@asynchronous
async def test_from_the_second_round_on_it_takes_the_short_cut(
    store: EmbeddedStore, tmp_path: Path, kind: SerializeType, ownership: bool
) -> None:
    async with guarded(store, tmp_path, ownership_guard=ownership) as scene:
        rounds = [signed(of_stamp(stamp, kind)) for stamp in range(20)]
        assert len({command.get(SIGNATURE) for command in rounds}) == 20
        taken = [await by_bytes(scene, command) for command in rounds]
        assert taken[:2] in ([False, False], [False, True])  # the second may be the first unchanged one
        assert all(taken[2:])
        assert count(scene, "authn", "allowed") == 20


@asynchronous
async def test_the_lease_is_renewed_and_the_key_is_in_use(
    store: EmbeddedStore, redis: redis_py.Redis, tmp_path: Path
) -> None:
    async with guarded(store, tmp_path) as scene:
        for stamp in range(3):
            await register(scene, signed(of_stamp(stamp)))
        await scene.ask(RequestCode.PUT_KV_CONFIG, namespace="N", key="k", value="v")
        lease, uses = moved_back(redis), scene.service.parts.guard.records.uses
        uses.take()
        assert await by_bytes(scene, signed(of_stamp(3)))
        assert uses.take().keys() == {"acl:K#a.key"}
        assert (redis.zscore(KEYS.leases, MEMBER) or 0) > lease


@pytest.mark.parametrize("kind", KINDS, ids=str)
@asynchronous
async def test_what_is_not_signed_by_it_is_refused(
    store: EmbeddedStore, redis: redis_py.Redis, tmp_path: Path, kind: SerializeType
) -> None:
    async with guarded(store, tmp_path) as scene:
        for stamp in range(3):
            await register(scene, signed(of_stamp(stamp, kind)))
        lease = moved_back(redis)
        old = signed(of_stamp(2, kind)).ext or {}
        for refused in (
            registration(body_of(3), 9, kind, AccessKey=old["AccessKey"], Signature=old[SIGNATURE]),
            signed(of_stamp(3, kind), secret=OTHER),
            signed(of_stamp(3, kind), "U"),
            of_stamp(3, kind),
        ):
            for _ in range(3):
                assert await code_of(scene, refused) == REFUSED
        assert redis.zscore(KEYS.leases, MEMBER) == lease
        assert await by_bytes(scene, signed(of_stamp(3, kind)))


@asynchronous
async def test_another_principal_takes_nothing(store: EmbeddedStore, tmp_path: Path) -> None:
    async with guarded(store, tmp_path, ownership_guard=True) as scene:
        for stamp in range(3):
            await register(scene, signed(of_stamp(stamp)))
        for _ in range(3):
            assert await code_of(scene, signed(of_stamp(3), "J", OTHER)) == REFUSED
        assert await by_bytes(scene, signed(of_stamp(4)))


@asynchronous
async def test_topics_beyond_its_limits_are_refused_as_at_first(store: EmbeddedStore, tmp_path: Path) -> None:
    async with guarded(store, tmp_path) as scene:
        for stamp in range(3):
            await register(scene, signed(of_stamp(stamp)))
        other = body_of(3).replace(b"T2", b"X2")
        assert await code_of(scene, signed(registration(other))) == REFUSED
        assert await by_bytes(scene, signed(of_stamp(4)))
        assert await scene.route("X2") == ResponseCode.TOPIC_NOT_EXIST


@pytest.mark.parametrize("counter", [1, 3], ids=["as the other had them", "changed"])
@asynchronous
async def test_topics_beyond_its_limits_are_refused_though_another_principal_registered_them(
    store: EmbeddedStore, tmp_path: Path, counter: int
) -> None:
    async with guarded(store, tmp_path) as scene:

        def beyond(counter: int, perm: int) -> Command:
            return registration(body_of(counter, counter=counter, perm=perm).replace(b"T2", b"X2"))

        assert await code_of(scene, signed(beyond(1, 6), "J", OTHER)) == 0
        for stamp in range(2):
            assert await code_of(scene, signed(of_stamp(stamp, counter=2, topics=2))) == 0
        assert await code_of(scene, signed(beyond(3, 6 if counter == 1 else 4))) == REFUSED


@pytest.mark.parametrize("revoked", ["acl:K", "principal:team"])
@asynchronous
async def test_a_revoked_one_is_refused_at_once(store: EmbeddedStore, tmp_path: Path, revoked: str) -> None:
    async with guarded(store, tmp_path) as scene:
        for stamp in range(3):
            await register(scene, signed(of_stamp(stamp)))
        guard = scene.service.parts.guard
        guard.take_stored(Stored(revoked=frozenset({revoked})))
        assert [await code_of(scene, signed(of_stamp(stamp))) for stamp in range(3, 6)] == [REFUSED] * 3
        guard.take_stored(Stored())
        assert not await by_bytes(scene, signed(of_stamp(6)))
        assert await by_bytes(scene, signed(of_stamp(7)))


@pytest.mark.parametrize("code", [RequestCode.REGISTER_BROKER, RequestCode.BROKER_HEARTBEAT])
@asynchronous
async def test_what_was_under_way_when_its_key_was_revoked_is_not_cached(
    store: EmbeddedStore, tmp_path: Path, code: RequestCode
) -> None:
    async with guarded(store, tmp_path) as scene:
        for stamp in range(2):
            await register(scene, signed(of_stamp(stamp)))
        command = signed(of_stamp(2))
        if code == RequestCode.BROKER_HEARTBEAT:
            names = {name: command.get(name) or "" for name in ("brokerAddr", "brokerName", "clusterName")}
            command = signed(Command(code, 9, ext=names))
        scene.service.parts.registrations.clear()
        scene.peer.receive(command, scene.service)
        scene.service.parts.guard.take_stored(Stored(revoked=frozenset({"acl:K"})))
        assert (await scene.peer.sent.get()).code == 0
        assert await code_of(scene, command) == REFUSED


@asynchronous
async def test_a_key_that_is_not_known_does_no_harm_and_takes_the_short_cut(
    store: EmbeddedStore, tmp_path: Path
) -> None:
    async with guarded(store, tmp_path, "open") as scene:
        for stamp in range(3):
            await register(scene, signed(of_stamp(stamp), "U"))
        assert await by_bytes(scene, signed(of_stamp(3), "U"))
        assert not await by_bytes(scene, of_stamp(4))
        assert not await by_bytes(scene, signed(of_stamp(5)))


@asynchronous
async def test_while_it_observes_each_round_of_a_wrong_signature_is_counted(
    store: EmbeddedStore, tmp_path: Path
) -> None:
    async with guarded(store, tmp_path, "open", access_mode="observe") as scene:
        for number in range(1, 6):
            assert not await by_bytes(scene, signed(of_stamp(number), secret=OTHER))
            assert count(scene, "authz", "denied") == number
