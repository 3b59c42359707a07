"""Which uses of credentials a worker notes: of keys, also where it answers by bytes alone, and of certificates."""

from pathlib import Path
from typing import Any

import redis as redis_py

from access.certificates import CertificateNames
from mqnamesrv.store import EmbeddedStore
from mqns.remoting.acl import AclCredentials
from mqns.remoting.request import Request
from registry.access_uses import uses
from registry.drivers import run
from registry.keys import Keys
from rocketmq_remoting.codes import RequestCode, ResponseCode
from tests.worker.scene import Broker, FakePeer, Scene, asynchronous, serving
from worker.access_records import AccessRecords
from worker.peer import Tls

FILE = """
[principals.client]
roles = ["broker"]
keys = [{ accessKey = "K", secrets = [{ file = "old" }, { file = "new" }] }]
[principals.brokers]
roles = ["broker"]
certificates = ["dns:broker.example"]
"""
LOOKUP = int(RequestCode.GET_ROUTEINFO_BY_TOPIC)
HEARTBEAT = int(RequestCode.BROKER_HEARTBEAT)


def access_file(folder: Path) -> dict[str, Any]:
    """Write one, and return the options of a worker that has it."""
    for name, text in (("access.toml", FILE), ("old", "old-secret-0123456"), ("new", "new-secret-0123456")):
        (folder / name).write_text(text)
        (folder / name).chmod(0o600)
    rules = {"access_read": "signed mtls", "access_broker": "signed mtls"}
    return {"access_file": str(folder / "access.toml"), **rules}


def fields(code: int, ext: dict[str, str], secret: str = "old") -> dict[str, str]:
    request = AclCredentials("K", f"{secret}-secret-0123456")("", Request(code, ext))
    return dict(request.ext or {})


def records(scene: Scene) -> AccessRecords:
    return scene.service.parts._records


def noted(redis: redis_py.Redis) -> set[str]:
    return set(run(uses(Keys()), redis))


class Shown(Tls):
    certificate = CertificateNames(4e9, dns=("broker.example",))


def with_certificate(scene: Scene) -> FakePeer:
    peer = scene.connect()
    peer.tls = Shown()
    scene.service.identified(peer)
    return peer


@asynchronous
async def test_what_is_answered_by_its_bytes_is_verified_again_after_a_while(
    store: EmbeddedStore, redis: redis_py.Redis, tmp_path: Path
) -> None:
    async with serving(store.url, **access_file(tmp_path)) as scene:
        scene.peer.rights = 0
        registering = with_certificate(scene)
        await scene.register(Broker(), peer=registering)
        asked = {LOOKUP: {"topic": "TA"}, HEARTBEAT: {"brokerName": "broker-a", **Broker().ext}}
        for code, ext in asked.items():
            for _ in range(3):
                assert (await scene.ask(code, ext=fields(code, ext))).code == 0
            await records(scene).write()
            assert noted(redis) >= {"acl:K#old"}
            redis.delete(Keys().access_used)
            before = scene.service.counters.cached_requests
            assert (await scene.ask(code, ext=fields(code, ext))).code == 0
            assert scene.service.counters.cached_requests == before + 1
            await records(scene).write()
            assert "acl:K#old" not in noted(redis)
            await records(scene).forget_proven()
            assert (await scene.ask(code, ext=fields(code, ext))).code == 0
            assert scene.service.counters.cached_requests == before + 1
            await records(scene).write()
            assert "acl:K#old" in noted(redis)


@asynchronous
async def test_each_secret_is_noted_by_itself_and_what_proves_nothing_is_not(
    store: EmbeddedStore, redis: redis_py.Redis, tmp_path: Path
) -> None:
    async with serving(store.url, **access_file(tmp_path)) as scene:
        scene.peer.rights = 0
        for secret, code in (
            ("wrong", ResponseCode.NO_PERMISSION),
            ("new", ResponseCode.TOPIC_NOT_EXIST),
        ):
            assert (await scene.ask(LOOKUP, ext=fields(LOOKUP, {"topic": "T"}, secret))).code == code
        await records(scene).write()
        assert noted(redis) == {"acl:K#new"}


@asynchronous
async def test_a_certificate_is_in_use_while_a_connection_is_open_that_has_shown_it(
    store: EmbeddedStore, redis: redis_py.Redis, tmp_path: Path
) -> None:
    async with serving(store.url, **access_file(tmp_path)) as scene:
        peer = with_certificate(scene)
        for _ in range(2):
            await records(scene).write()
            assert noted(redis) == {"dns:broker.example"}
            redis.delete(Keys().access_used)
        scene.disconnect(peer)
        await records(scene).write()
        assert noted(redis) == set()


@asynchronous
async def test_uses_are_written_once_the_store_is_back_and_at_the_end(
    store: EmbeddedStore, redis: redis_py.Redis, tmp_path: Path
) -> None:
    async with serving(store.url, **access_file(tmp_path)) as scene:
        scene.peer.rights = 0
        await scene.ask(LOOKUP, ext=fields(LOOKUP, {"topic": "T"}))
        redis.acl_setuser("default", enabled=True, commands=["-hset"])
        try:
            await records(scene).write()
        finally:
            redis.acl_setuser("default", enabled=True, commands=["+hset"])
        assert noted(redis) == set()
        await records(scene).write()
        assert noted(redis) == {"acl:K#old"}
        redis.delete(Keys().access_used)
        await scene.ask(LOOKUP, ext=fields(LOOKUP, {"topic": "U"}))
    assert noted(redis) == {"acl:K#old"}
