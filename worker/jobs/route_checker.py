"""Compares answers with the tables: a few topics each half minute, looked up as clients do; in one of all schedulers.

A worker that answers by a cache which is no longer true is seen by nothing else: its answers look like any other."""

import asyncio
import logging
from collections.abc import Iterator
from itertools import cycle
from typing import Final

import msgspec

from metrics.catalogue import CONSISTENCY_CHECKS
from metrics.counts import Counts
from metrics.samples import Sample
from registry import settings
from registry.drivers import AsyncDriver
from registry.errors import TopicNotFound
from registry.keys import Keys
from registry.options.catalogue import Options, overlay
from registry.plans import Plan, call
from registry.routes import RouteView, read_route, route_of
from registry.task_times import CHECK
from rocketmq_remoting.codes import RequestCode, ResponseCode
from rocketmq_remoting.command import encode
from rocketmq_remoting.errors import BodyError, FrameError
from rocketmq_remoting.frame import FrameReader
from rocketmq_remoting.json_encoding import Dialect
from rocketmq_remoting.remoting_command import Command
from rocketmq_remoting.route import TopicRouteData, decode_route, encode_route
from rocketmq_remoting.version import V4_9_4, V5_0_0
from worker.jobs.claimed_task import Task
from worker.logs.rate_limited_log import RateLimitedLog
from worker.transport.tls_context import unverified_context

__all__ = ["RouteChecker"]

EVERY_S: Final = 30.0
SAMPLES: Final = 20
AGAIN_S: Final = 2.0
"""A change that has not reached a worker by then will not reach it."""
ANSWER_S: Final = 3.0
READ_BYTES: Final = 1 << 16
VERSIONS: Final = (V5_0_0, V4_9_4 - 1)
"""Of clients that get standard JSON, and of older ones: workers cache the answers to both."""
MISMATCH: Final = "mismatch"
NO_ROUTE: Final = TopicRouteData((), ())

log = RateLimitedLog(logging.getLogger(__name__), every_s=60.0)


class RouteChecker:
    """Asks at `checkAddress`, and counts the results."""

    def __init__(self, options: Options, driver: AsyncDriver, keys: Keys) -> None:
        self._options = options
        self._driver = driver
        self._keys = keys
        self._counts = Counts(CONSISTENCY_CHECKS)
        self._versions = cycle(VERSIONS)

    def read(self) -> Iterator[Sample]:
        """Yield what is counted here as values of metrics."""
        yield from self._counts.read()

    @property
    def tasks(self) -> tuple[Task, ...]:
        """Return the task; none without an address to ask at."""
        task = Task(CHECK, EVERY_S, "answers are not compared with the tables", self.check)
        return (task,) if self._options.check_address else ()

    async def check(self) -> None:
        """Check some topics, drawn at random, as a client of one version, then of the other. Raises RedisError,
        StoreUnavailable."""
        version = next(self._versions)
        suspect = [
            topic
            for topic in await self._driver.run(_some_topics(self._keys))
            if await self._compared(topic, version) == MISMATCH
        ]
        if suspect:  # a change may be on its way to the worker
            await asyncio.sleep(AGAIN_S)
        for topic in suspect:
            if await self._compared(topic, version, certain=True) == MISMATCH:
                self._counts.add(MISMATCH)

    async def _compared(self, topic: str, version: int, *, certain: bool = False) -> str:
        """Compare one answer with what the tables have before and behind it, and count it unless it differs.

        A route that changes meanwhile proves nothing. With `certain` a difference is logged."""
        before = await self._driver.run(_route(self._options, self._keys, topic, version))
        answer = await self._answer(topic, version)
        after = await self._driver.run(_route(self._options, self._keys, topic, version))
        if answer is None:
            result = "unanswered"
        elif answer in (before, after) or (certain and before != after):
            result = "match"
        else:
            if certain:
                self._log(topic, answer, after)
            return MISMATCH
        self._counts.add(result)
        return result

    def _log(self, topic: str, answer: TopicRouteData, stored: TopicRouteData) -> None:
        log.warning(
            "%s answers a lookup of topic %r by a route that the tables do not have: %.500r, not %.500r; keep the log "
            "of its workers and restart them, see docs/runbook.md",
            self._options.check_address,
            topic,
            answer,
            stored,
        )

    async def _answer(self, topic: str, version: int) -> TopicRouteData | None:
        """Return the route that a lookup gets, None where there is no answer or another one."""
        try:
            async with asyncio.timeout(ANSWER_S):
                reply = await self._asked(topic, version)
            if reply.code == ResponseCode.TOPIC_NOT_EXIST:
                return NO_ROUTE
            return _sorted(decode_route(reply.body)) if reply.code == ResponseCode.SUCCESS else None
        except (OSError, TimeoutError, EOFError, FrameError, BodyError) as error:
            log.warning(
                "lookups at %s (checkAddress) get no answer: %s; see whether its workers run, and on that port",
                self._options.check_address,
                error,
            )
            return None

    async def _asked(self, topic: str, version: int) -> Command:
        host, _, port = self._options.check_address.rpartition(":")
        tls = unverified_context() if self._options.tls_server_mode == "enforcing" else None
        reader, writer = await asyncio.open_connection(host.strip("[]"), int(port), ssl=tls)
        try:
            request = Command(
                RequestCode.GET_ROUTEINFO_BY_TOPIC, opaque=1, version=version, ext={"topic": topic}
            )
            writer.write(encode(request))
            frames = FrameReader()
            while True:
                data = await reader.read(READ_BYTES)
                if not data:
                    raise EOFError("the connection was closed")
                frames.feed(data)
                if reply := frames.next_command():
                    return reply
        finally:
            writer.close()


def _some_topics(keys: Keys) -> Plan[list[str]]:
    topics: list[str] = yield call("SRANDMEMBER", keys.topics, SAMPLES)
    return topics


def _route(options: Options, keys: Keys, topic: str, version: int) -> Plan[TopicRouteData]:
    """Return the route that a client of this version is to get now, as it reads it."""
    shared = yield from settings.read(keys)
    stored = yield from read_route(keys, topic)
    try:
        route = route_of(stored, RouteView.of(overlay(options, shared), topic, None))
    except TopicNotFound:
        return NO_ROUTE
    omits_v5 = options.omit_v5_members and version < V5_0_0
    return _sorted(decode_route(encode_route(route, Dialect.STANDARD, v5_members=not omits_v5)))


def _sorted(route: TopicRouteData) -> TopicRouteData:
    """Return the route in the order of broker names: that of an answer is the one in which the store kept its rows."""
    return msgspec.structs.replace(
        route,
        broker_datas=tuple(sorted(route.broker_datas, key=lambda data: (data.broker_name, data.cluster))),
        queue_datas=tuple(sorted(route.queue_datas, key=lambda data: data.broker_name)),
    )
