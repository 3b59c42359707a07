"""Signed requests while they are judged."""

from pathlib import Path

from mqnamesrv.store import EmbeddedStore
from mqns.remoting.acl import AclCredentials
from mqns.remoting.request import Request
from rocketmq_remoting.codes import RequestCode, ResponseCode
from tests.access.files import OTHER, access_file
from tests.worker.scene import Scene, asynchronous, serving
from worker.guard import LONG_BODY

BODY = bytes(2 * LONG_BODY)
WAITING = 20


@asynchronous
async def test_long_bodies_take_memory_of_all_while_their_signatures_are_verified(
    store: EmbeddedStore, tmp_path: Path
) -> None:
    """Else a peer that knows the name of a key has a worker hold any number of them."""
    key = 'keys = [{ accessKey = "K", secrets = [{ file = "a.key" }] }]'
    path = access_file(tmp_path, f'[principals.p]\nroles = ["broker"]\n{key}')
    async with serving(store.url, access_file=str(path), access_broker="signed") as scene:
        memory = scene.service.frame_memory
        send_forged(scene, WAITING)
        assert memory.taken > WAITING * len(BODY)
        for _ in range(WAITING):
            assert (await scene.peer.sent.get()).code == ResponseCode.NO_PERMISSION
        assert memory.taken == 0


def send_forged(scene: Scene, times: int) -> None:
    request = Request(RequestCode.REGISTER_BROKER, {"brokerName": "b"}, BODY)
    fields = dict(AclCredentials("K", OTHER)("", request).ext or {})
    for _ in range(times):
        scene.send(RequestCode.REGISTER_BROKER, BODY, fields)
