"""Clients that look up routes at a steady rate over many connections, with their replies."""

import asyncio
import itertools
import random
import ssl
import threading
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

import msgspec

from rocketmq_remoting.codes import RequestCode, ResponseCode
from rocketmq_remoting.route import decode_route
from testbed.load import Client

PER_S, CONNECTIONS, NEW_AFTER = 200, 40, 25
"""Lookups a second of all, connections, and lookups of one connection on average before it is opened again."""
ANSWER_S = 3.0
"""How long RocketMQ's clients wait for a route (ClientConfig.mqClientApiTimeout)."""


class Lookup(msgspec.Struct, frozen=True):
    """One lookup over connection number `over`: when it was sent and replied to.

    `brokers` are name -> address of the route; none for "no such topic". `error` where there was neither."""

    over: int
    topic: str
    asked: float
    answered: float
    brokers: dict[str, str]
    error: str = ""


class Lookups:
    """A context; `done` has all lookups when it is left.

    Each connection has the same pace, so fewer connections have fewer lookups."""

    def __init__(
        self,
        ports: Sequence[int],
        topics: Sequence[str],
        tls: ssl.SSLContext | None = None,
        *,
        connections: int = CONNECTIONS,
    ) -> None:
        self.done: list[Lookup] = []
        self._ports, self._topics, self._tls = ports, topics, tls
        self._connections = connections
        self._decoded: dict[bytes, dict[str, str]] = {}
        self._end = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()
        self._thread.join()
        if self._failure is not None:
            raise self._failure from error

    def _run(self) -> None:
        try:
            asyncio.run(self._all())
        except BaseException as failure:
            self._failure = failure

    async def _all(self) -> None:
        async with asyncio.TaskGroup() as group:
            for number, port in zip(range(self._connections), itertools.cycle(self._ports), strict=False):
                group.create_task(self._one(number, Client(port, tls=self._tls, answer_s=ANSWER_S)))

    async def _one(self, number: int, client: Client) -> None:
        every_s = CONNECTIONS / PER_S
        due = time.monotonic() + every_s * number / self._connections
        for topic in itertools.cycle(random.sample(self._topics, len(self._topics))):
            await asyncio.sleep(max(due - time.monotonic(), 0))
            if self._end.is_set():
                client.close()
                return
            self.done.append(await self._look(number, client, topic))
            if random.random() < 1 / NEW_AFTER:
                client.close()
            due = max(due + every_s, time.monotonic() - every_s)

    async def _look(self, number: int, client: Client, topic: str) -> Lookup:
        asked = time.monotonic()
        brokers: dict[str, str] = {}
        why = ""
        try:
            reply = await client.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic})
        except TimeoutError:
            why = f"no answer within {ANSWER_S:g} s"
        except OSError as error:
            why = f"{type(error).__name__}: {error}"
        else:
            if reply.code == ResponseCode.SUCCESS:
                brokers = self._brokers(reply.body)
            elif reply.code != ResponseCode.TOPIC_NOT_EXIST:
                why = f"code {reply.code}: {reply.remark}"
        return Lookup(number, topic, asked, time.monotonic(), brokers, why)

    def _brokers(self, body: bytes) -> dict[str, str]:
        if body not in self._decoded:
            route = decode_route(body)
            names = {queues.broker_name for queues in route.queue_datas}
            addresses = {data.broker_name: data.broker_addrs.get(0, "") for data in route.broker_datas}
            self._decoded[body] = {name: addresses.get(name, "") for name in names}
        return self._decoded[body]
