"""Answers that are compared with the tables: of a real server, and of one that says something else."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import redis as redis_py
import redis.asyncio as redis_asyncio

from mqnamesrv.store import EmbeddedStore
from registry.drains import Drain, drain
from registry.drivers import AsyncDriver
from registry.keys import Keys
from registry.options.catalogue import InvalidOption, Options, resolve
from registry.routes import RouteView, read_route, route_of
from rocketmq_remoting.codes import ResponseCode
from rocketmq_remoting.command import encode
from rocketmq_remoting.frame import FrameReader
from rocketmq_remoting.json_encoding import Dialect
from rocketmq_remoting.remoting_command import Command
from rocketmq_remoting.route import encode_route
from testbed.nameserver import NameServer
from tests.logged import logged
from tests.registry.brokers import origin
from tests.registry.namespace import Namespace
from worker.jobs import route_checker
from worker.jobs.route_checker import RouteChecker

KEYS = Keys()
Answer = Callable[[Command], bytes]
"""Returns what a server writes to a request."""


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(route_checker, "AGAIN_S", 0.05)


@pytest.fixture
def ns(redis: redis_py.Redis) -> Namespace:
    namespace = Namespace(redis)
    namespace.register("b1", topics=("T", "U"))
    return namespace


def checked(store: EmbeddedStore, address: str) -> dict[str, float]:
    """Return how many lookups had which result, of one run."""

    async def check() -> dict[str, float]:
        return await check_here(store, address)

    return asyncio.run(check())


async def check_here(store: EmbeddedStore, address: str) -> dict[str, float]:
    driver = AsyncDriver(redis_asyncio.Redis.from_url(store.url, decode_responses=True))
    checker = RouteChecker(Options(check_address=address), driver, KEYS)
    await checker.check()
    await driver.close()
    return {sample.labels[0]: sample.value for sample in checker.read() if sample.value}


@asynccontextmanager
async def answering(answer: Answer) -> AsyncIterator[str]:
    """Serve requests, one a connection; yield the address."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        frames = FrameReader()
        while True:
            frames.feed(await reader.read(65536))
            if request := frames.next_command():
                break
        writer.write(answer(request))
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"


def checked_with(store: EmbeddedStore, answer: Answer) -> dict[str, float]:
    async def check() -> dict[str, float]:
        async with answering(answer) as address:
            return await check_here(store, address)

    return asyncio.run(check())


def right(ns: Namespace) -> Answer:
    """Answer by the tables as they are at this moment."""
    known = {
        topic: encode_route(route_of(ns.run(read_route(KEYS, topic)), RouteView()), Dialect.STANDARD)
        for topic in ("T", "U")
    }
    return lambda request: encode(
        Command(ResponseCode.SUCCESS, opaque=request.opaque, flag=1, body=known[request.get("topic") or ""])
    )


def replying(code: int) -> Answer:
    return lambda request: encode(Command(code, opaque=request.opaque, flag=1))


def test_a_real_server_answers_as_the_tables_are(tmp_path: Path, store: EmbeddedStore, ns: Namespace) -> None:
    ns.register("b2", topics={"T": "4,4,4,0", "V": "1,1,6,0"})
    ns.run(drain(KEYS, "b1", Drain("alice", "kernel"), origin()))
    server = NameServer(tmp_path, {}, url=store.url).start()
    try:
        assert checked(store, f"127.0.0.1:{server.port}") == {"match": 3}
    finally:
        server.stop()


@pytest.mark.parametrize("omits", [False, True])
def test_both_kinds_of_clients_get_right_answers(
    tmp_path: Path, store: EmbeddedStore, ns: Namespace, omits: bool
) -> None:
    ns.register("b3", topics=("T", "V"), zone="z1", acting=True)
    server = NameServer(tmp_path, {"omitV5Members": str(omits).lower()}, url=store.url).start()
    try:

        async def check_twice() -> dict[str, float]:
            options = Options(check_address=f"127.0.0.1:{server.port}", omit_v5_members=omits)
            driver = AsyncDriver(redis_asyncio.Redis.from_url(store.url, decode_responses=True))
            checker = RouteChecker(options, driver, KEYS)
            await checker.check()
            await checker.check()
            await driver.close()
            return {sample.labels[0]: sample.value for sample in checker.read() if sample.value}

        assert asyncio.run(check_twice()) == {"match": 6}
    finally:
        server.stop()


def test_right_answers(store: EmbeddedStore, ns: Namespace) -> None:
    assert checked_with(store, right(ns)) == {"match": 2}


@pytest.mark.parametrize(("address", "tasks"), [("localhost:9876", ["check_routes"]), ("", [])])
def test_it_is_a_task_where_there_is_an_address(store: EmbeddedStore, address: str, tasks: list[str]) -> None:
    async def names() -> list[str]:
        driver = AsyncDriver(redis_asyncio.Redis.from_url(store.url, decode_responses=True))
        checker = RouteChecker(Options(check_address=address), driver, KEYS)
        await driver.close()
        return [task.name for task in checker.tasks]

    assert asyncio.run(names()) == tasks


def test_an_answer_that_the_tables_do_not_have(
    store: EmbeddedStore, ns: Namespace, caplog: pytest.LogCaptureFixture
) -> None:
    before = right(ns)
    ns.register("b1", topics={"T": "16,16,6,0", "U": "8,8,6,0"}, version=2)
    with caplog.at_level(logging.WARNING):
        assert checked_with(store, before) == {"mismatch": 1, "match": 1}
    [line] = logged(caplog)
    assert "answers a lookup of topic 'T' by a route that the tables do not have" in line
    assert len(line) < 1500


def test_no_route_of_a_topic_that_has_one(store: EmbeddedStore, ns: Namespace) -> None:
    assert checked_with(store, replying(ResponseCode.TOPIC_NOT_EXIST)) == {"mismatch": 2}


@pytest.mark.parametrize(
    "answer",
    [
        replying(ResponseCode.SYSTEM_ERROR),
        replying(ResponseCode.SYSTEM_BUSY),
        lambda _: b"",
        lambda _: b"HTTP/1.1",
    ],
    ids=["error", "busy", "closed", "no RocketMQ"],
)
def test_what_is_no_answer(store: EmbeddedStore, ns: Namespace, answer: Answer) -> None:
    assert checked_with(store, answer) == {"unanswered": 2}


def test_nothing_listens_there(store: EmbeddedStore, ns: Namespace, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert checked(store, "127.0.0.1:1") == {"unanswered": 2}
    assert logged(caplog)[0].startswith("lookups at 127.0.0.1:1 (checkAddress) get no answer: ")


def test_a_route_that_changes_meanwhile_proves_nothing(store: EmbeddedStore, ns: Namespace) -> None:
    """Each lookup finds one broker more than the one before."""
    before = right(ns)
    ns.register("late", topics=("T", "U"))
    names = iter(range(100))

    def changing(request: Command) -> bytes:
        ns.register(f"n{next(names)}", topics=("T", "U"))
        return before(request)

    assert checked_with(store, changing) == {"match": 2}


def test_a_worker_that_hears_of_a_change_later_is_right_then(store: EmbeddedStore, ns: Namespace) -> None:
    answers = iter([right(ns)])
    ns.register("b2", topics=("T", "U"))
    now = right(ns)
    assert checked_with(store, lambda request: next(answers, now)(request)) == {"match": 2}


def test_an_empty_namespace_has_nothing_to_check(store: EmbeddedStore, redis: redis_py.Redis) -> None:
    assert checked(store, "127.0.0.1:1") == {}


@pytest.mark.parametrize("text", ["localhost", "localhost:port", "a b:1"])
def test_an_address_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidOption, match="checkAddress is host:port"):
        resolve({}, {"MQNS_CHECK_ADDRESS": text})
