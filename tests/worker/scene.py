"""A service over a real store, asked directly: what the transport would do, without sockets."""

import asyncio
import functools
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager, contextmanager
from typing import Any, ParamSpec

import redis as redis_py

from access.classes import ALL
from access.standing import UNKNOWN
from registry.options.catalogue import Options
from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.command import Command, decode, encode
from rocketmq_remoting.remoting_command import SerializeType
from testbed.eventually import PATIENCE_S, eventually_async
from worker.peer import Frames, Tls, Via, host_of
from worker.service import Service
from worker.watch.follower import REACHED_WITHIN_S, Follower

P = ParamSpec("P")
NOTHING: Mapping[str, str] = {}


def asynchronous(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run a test that is a coroutine on a loop of its own."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        asyncio.run(test(*args, **kwargs))

    return run


class FakePeer:
    """A connection that remembers what was sent over it."""

    def __init__(self, number: int, address: str = "127.0.0.1:40000") -> None:
        self.id = str(number)
        self.address = address
        self.host = host_of(address)
        self.registered: AbstractSet[str] = frozenset()
        self.via = Via.DIRECT
        self.tls: Tls | None = None
        self.standing = UNKNOWN
        self.rights = int(ALL)
        self.go_away = True
        self.closed = False
        self.awaited_long = 0
        self.reason = ""
        self._frame = b""
        self.sent: asyncio.Queue[Command] = asyncio.Queue()

    def receive(self, command: Command, service: Service) -> None:
        """As a connection does: cached requests first, which `frame` does not return."""
        frame, cached = encode(command), service.cached_for(self)
        answers, length, due = (
            cached.answers(frame, service.parts.clock(), 1 << 20, rights=self.rights)
            if cached is not None
            else ([], 0, [])
        )
        if answers:
            self.send(tuple(answers))
        for one in due:
            service.check_repeat(one, self)
        if not length:
            self._frame = frame
            service.handle(command, self)

    def frame(self) -> bytes:
        return self._frame

    def send(self, frame: Frames) -> None:
        whole = b"".join(frame) if isinstance(frame, tuple) else frame
        self.sent.put_nowait(decode(whole[4:]))

    def await_long(self) -> None:
        self.awaited_long += 1

    def close(self, reason: str) -> None:
        self.closed, self.reason = True, reason


class Broker:
    """What a broker says of itself; `topics` name -> perm."""

    def __init__(
        self, name: str = "broker-a", address: str = "127.0.0.9:1", id: int = 0, cluster: str = "c1"
    ) -> None:
        self.ext = {
            "brokerName": name,
            "brokerAddr": address,
            "clusterName": cluster,
            "haServerAddr": address + "1",
            "brokerId": str(id),
        }

    def body(self, counter: int = 1, **topics: int) -> bytes:
        table = {
            topic: {
                "topicName": topic,
                "perm": perm,
                "readQueueNums": 8,
                "writeQueueNums": 8,
                "topicSysFlag": 0,
            }
            for topic, perm in (topics or {"TA": 6, "TB": 6}).items()
        }
        wrapper = {"dataVersion": {"counter": counter, "timestamp": 1000}, "topicConfigTable": table}
        return json.dumps({"filterServerList": [], "topicConfigSerializeWrapper": wrapper}).encode()


class Scene:
    """One service and any number of connections to it."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._peers = 0
        self._opaque = 0
        self.peer = self.connect()

    def connect(self, address: str = "127.0.0.1:40000") -> FakePeer:
        self._peers += 1
        peer = FakePeer(self._peers, address)
        self.service.connected(peer)
        return peer

    def disconnect(self, peer: FakePeer, *, shutting_down: bool = False) -> None:
        peer.closed = True
        self.service.disconnected(peer, shutting_down=shutting_down)

    def send(
        self,
        code: int,
        body: bytes = b"",
        ext: Mapping[str, str] = NOTHING,
        *,
        peer: FakePeer | None = None,
        version: int = 373,
        flag: int = 0,
        kind: SerializeType = SerializeType.JSON,
        **more: str,
    ) -> None:
        self._opaque += 1
        fields = {**ext, **more} or None
        command = Command(code, self._opaque, flag, version, 0, None, fields, body, kind)
        (peer or self.peer).receive(command, self.service)

    async def ask(
        self,
        code: int,
        body: bytes = b"",
        ext: Mapping[str, str] = NOTHING,
        *,
        peer: FakePeer | None = None,
        **given: Any,
    ) -> Command:
        """The answer to one request."""
        self.send(code, body, ext, peer=peer, **given)
        return await asyncio.wait_for((peer or self.peer).sent.get(), PATIENCE_S)

    async def register(
        self,
        broker: Broker,
        body: bytes | None = None,
        ext: Mapping[str, str] = NOTHING,
        *,
        peer: FakePeer | None = None,
        **given: Any,
    ) -> Command:
        whole = broker.body() if body is None else body
        return await self.ask(RequestCode.REGISTER_BROKER, whole, {**broker.ext, **ext}, peer=peer, **given)

    async def route(self, topic: str = "TA", **given: Any) -> Any:
        """The parsed route, or the code of a refusal."""
        answer = await self.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, topic=topic, **{"version": 513, **given})
        return json.loads(answer.body) if answer.code == 0 else answer.code

    async def addresses(self, topic: str = "TA") -> dict[str, dict[str, str]]:
        """Broker name -> its addresses in the route; {} when there is none."""
        route = await self.route(topic)
        return (
            {}
            if isinstance(route, int)
            else {one["brokerName"]: one["brokerAddrs"] for one in route["brokerDatas"]}
        )


@asynccontextmanager
async def serving(url: str, worker_id: str = "w1", **options: Any) -> AsyncIterator[Scene]:
    """A started service; it is stopped at the end, when each request that was admitted has been answered."""
    service = Service(Options(redis_url=url, **options), worker_id)
    await service.start()
    try:
        yield Scene(service)
        await eventually_async(lambda: service.parts.admission.waiting == 0)
    finally:
        await service.stop()


async def reached(follower: Follower, event_id: str, *, within_s: float = REACHED_WITHIN_S) -> bool:
    """Wait until this entry has been applied; False when that takes too long."""
    future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
    follower.when_reached(event_id, future.set_result, within_s=within_s)
    return await future


@contextmanager
def reads_denied(redis: redis_py.Redis) -> Iterator[None]:
    """Refuse XREAD; every other command works."""
    redis.acl_setuser("default", enabled=True, commands=["-xread"])
    try:
        redis.client_kill_filter(_type="normal", skipme=True)
        yield
    finally:
        redis.acl_setuser("default", enabled=True, commands=["+xread"])


def last_cause(redis: redis_py.Redis) -> str:
    """Of the newest event."""
    newest: Any = redis.xrevrange("ns:{default}:events", count=1)
    return str(newest[0][1]["cause"])
