"""One plan, two drivers: the same results, and the same errors of ours."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
import redis as redis_py
import redis.asyncio as redis_asyncio
from redis.exceptions import ResponseError

from mqnamesrv.store import EmbeddedStore
from registry.drivers import PIPELINE_MOST, PIPELINES, AsyncDriver, raised, run, unavailable
from registry.errors import RegistrationRefused, StoreUnavailable
from registry.keys import Keys
from registry.plans import Batch, Pause, Plan, ScriptCall, call
from registry.registration.heartbeat import LOGGED_AT_ONCE, log_heartbeat
from registry.registration.register import register
from registry.store.connect import connect, connect_async
from registry.topics import all_topics
from tests.registry.brokers import origin, registration
from tests.registry.check_tables import check_tables
from tests.registry.stored import assert_replays

KEYS = Keys()
Runner = Callable[[Plan[Any]], Any]


@pytest.fixture(params=["sync", "async"])
def runs(request: pytest.FixtureRequest, store: EmbeddedStore) -> Runner:
    """Runs one plan on a fresh connection."""

    def sync(plan: Plan[Any]) -> Any:
        with connect(store.url) as client:
            return run(plan, client)

    async def on_loop(plan: Plan[Any]) -> Any:
        driver = AsyncDriver(connect_async(store.url))
        try:
            return await driver.run(plan)
        finally:
            await driver.close()

    return sync if request.param == "sync" else lambda plan: asyncio.run(on_loop(plan))


def asks(*requests: Any) -> Plan[list[Any]]:
    replies = []
    for request in requests:
        replies.append((yield request))
    return replies


def recovers(request: Any, error: type[Exception]) -> Plan[str]:
    try:
        yield request
    except error:
        return str((yield call("ECHO", "went on")))
    return "no error"


def test_calls_batches_and_pauses(runs: Runner) -> None:
    batch = Batch((call("SET", "k", "v"), call("GET", "k"), call("HGETALL", "none")))
    assert runs(asks(batch, Pause(0.001), call("GET", "k"))) == [[True, "v", {}], None, "v"]


def test_a_plan_without_requests(runs: Runner) -> None:
    assert runs(asks()) == []


def test_registrations(runs: Runner, redis: redis_py.Redis) -> None:
    many = [f"T{number}" for number in range(1200)]
    runs(register(KEYS, registration(topics=many), origin()))
    runs(register(KEYS, registration("b1", 1), origin()))
    assert len(runs(all_topics(KEYS))) == 1200
    check_tables(redis, KEYS)
    assert_replays(redis, KEYS)


def test_scripts_that_redis_has_dropped_are_sent_whole(runs: Runner, redis: redis_py.Redis) -> None:
    for version in (1, 2, 2):
        redis.script_flush()
        runs(register(KEYS, registration(version=version), origin()))
    check_tables(redis, KEYS)


def test_a_forgotten_script_within_a_batch(runs: Runner, redis: redis_py.Redis) -> None:
    redis.script_flush()
    once = ScriptCall("clear_deferred", (KEYS.deferred,), ("a", "b"))
    assert runs(asks(Batch((call("ECHO", "x"), once, call("ECHO", "y"))))) == [["x", 0, "y"]]


def test_what_a_plan_raises_is_raised(runs: Runner) -> None:
    with pytest.raises(RegistrationRefused):
        runs(register(KEYS, registration(topics=("T",)), origin()))


def test_a_wrong_request_is_thrown_into_the_plan(runs: Runner) -> None:
    assert runs(recovers(call("NO_SUCH_COMMAND"), ResponseError)) == "went on"


def test_an_unknown_reply_of_a_script_is_an_error(runs: Runner, redis: redis_py.Redis) -> None:
    redis.set(KEYS.deferred, "no hash")
    assert (
        runs(recovers(ScriptCall("clear_deferred", (KEYS.deferred,), ("a", "b")), ResponseError)) == "went on"
    )


def test_a_store_that_is_away(tmp_path: Any) -> None:
    url = f"unix://{tmp_path}/absent.sock"
    with pytest.raises(StoreUnavailable):
        run(all_topics(KEYS), connect(url))

    async def asked() -> None:
        driver = AsyncDriver(connect_async(url))
        await driver.open()
        with pytest.raises(StoreUnavailable):
            await driver.run(all_topics(KEYS))
        assert driver.waiting == 0
        await driver.close()

    asyncio.run(asked())


@pytest.mark.parametrize(
    ("error", "away"),
    [
        (redis_py.ConnectionError("x"), True),
        (redis_py.TimeoutError("x"), True),
        (redis_py.exceptions.BusyLoadingError("x"), True),
        (redis_py.ReadOnlyError("x"), True),
        (redis_py.exceptions.OutOfMemoryError("x"), True),
        (OSError("x"), True),
        (ResponseError("MISCONF Redis is configured to save"), True),
        (ResponseError("BUSY Redis is busy running a script"), True),
        (ResponseError("WRONGTYPE Operation"), False),
        (ResponseError("ERR unknown command"), False),
    ],
    ids=str,
)
def test_which_errors_mean_that_the_store_is_away(error: Exception, away: bool) -> None:
    assert unavailable(error) is away


class Counted(redis_asyncio.ConnectionPool):
    """Counts the pipelines, each of which takes a connection."""

    pipelines = 0

    async def get_connection(self, *args: Any, **kwargs: Any) -> Any:
        self.pipelines += 1
        return await super().get_connection(*args, **kwargs)  # type: ignore[no-untyped-call]


def on_loop(store: EmbeddedStore, body: Callable[[AsyncDriver, Counted], Any]) -> Any:
    async def main() -> Any:
        pool = Counted.from_url(store.url, decode_responses=True)
        driver = AsyncDriver(redis_asyncio.Redis.from_pool(pool))
        try:
            return await body(driver, pool)
        finally:
            await driver.close()

    return asyncio.run(main())


def test_a_store_that_is_away_without_a_word_is_named_by_the_kind_of_error() -> None:
    assert str(raised(TimeoutError())) == "the store cannot serve: TimeoutError"
    assert str(raised(OSError("cut"))) == "the store cannot serve: cut"


def test_one_tick_of_the_loop_is_one_pipeline(store: EmbeddedStore) -> None:
    async def body(driver: AsyncDriver, pool: Counted) -> None:
        plans = [driver.run(asks(call("ECHO", str(number)), call("ECHO", "again"))) for number in range(50)]
        replies = await asyncio.gather(*plans)
        assert replies == [[str(number), "again"] for number in range(50)]
        assert pool.pipelines <= 4

    on_loop(store, body)


def test_what_is_asked_behind_a_pipeline_goes_together_and_does_not_wait_for_long(
    store: EmbeddedStore, redis: redis_py.Redis
) -> None:
    async def body(driver: AsyncDriver, pool: Counted) -> None:
        slow = asyncio.ensure_future(driver.run(asks(call("BLPOP", "list", 0))))
        later = []
        for number in range(3):
            await asyncio.sleep(0)
            later.append(asyncio.ensure_future(driver.run(asks(call("ECHO", str(number))))))
        assert await asyncio.gather(*later) == [["0"], ["1"], ["2"]]
        assert pool.pipelines == 2
        assert not slow.done()
        redis.lpush("list", "x")
        await slow

    on_loop(store, body)


def test_a_flood_is_cut_into_pipelines_of_bounded_length(store: EmbeddedStore) -> None:
    async def body(driver: AsyncDriver, pool: Counted) -> None:
        many = 1537
        replies = await asyncio.gather(*(driver.run(asks(call("ECHO", str(i)))) for i in range(many)))
        assert replies == [[str(i)] for i in range(many)]
        assert pool.pipelines == 4

    on_loop(store, body)


def test_an_error_of_one_request_is_its_own(store: EmbeddedStore) -> None:
    async def body(driver: AsyncDriver, _: Counted) -> None:
        plans = [asks(call("ECHO", "a")), asks(call("NO_SUCH_COMMAND")), asks(call("ECHO", "b"))]
        first, wrong, last = await asyncio.gather(*map(driver.run, plans), return_exceptions=True)
        assert (first, last) == (["a"], ["b"])
        assert isinstance(wrong, ResponseError)

    on_loop(store, body)


def test_what_waits_is_counted(store: EmbeddedStore) -> None:
    async def body(driver: AsyncDriver, _: Counted) -> None:
        tasks = [asyncio.ensure_future(driver.run(asks(call("ECHO", "x")))) for _ in range(7)]
        await asyncio.sleep(0)
        assert driver.waiting == 7
        await asyncio.gather(*tasks)
        assert driver.waiting == 0

    on_loop(store, body)


def test_a_loop_that_ends_begins_no_other_pipeline(store: EmbeddedStore) -> None:
    async def body(driver: AsyncDriver, pool: Counted) -> None:
        many = (PIPELINES + 1) * PIPELINE_MOST
        callers = [asyncio.ensure_future(driver.run(asks(call("ECHO", str(i))))) for i in range(many)]
        while not pool.pipelines:
            await asyncio.sleep(0)
        before = pool.pipelines
        ended = asyncio.all_tasks() - {asyncio.current_task()}
        for task in ended:
            task.cancel()
        await asyncio.gather(*ended, return_exceptions=True)
        await asyncio.sleep(0)
        assert pool.pipelines == before
        assert all(task.cancelled() for task in callers)

    on_loop(store, body)


def test_connections_are_made_before_they_are_needed(store: EmbeddedStore, redis: redis_py.Redis) -> None:
    async def body(driver: AsyncDriver, _: Counted) -> None:
        before = len(redis.client_list())
        await driver.open()
        assert len(redis.client_list()) == before + PIPELINES
        many = PIPELINES * PIPELINE_MOST
        await asyncio.gather(*(driver.run(asks(call("ECHO", str(i)))) for i in range(many)))
        assert len(redis.client_list()) == before + PIPELINES

    on_loop(store, body)


def test_a_caller_that_gives_up_does_not_disturb_the_others(store: EmbeddedStore) -> None:
    async def body(driver: AsyncDriver, _: Counted) -> None:
        tasks = [asyncio.ensure_future(driver.run(asks(call("ECHO", str(i))))) for i in range(5)]
        await asyncio.sleep(0)
        tasks[2].cancel()
        replies = await asyncio.gather(*tasks, return_exceptions=True)
        assert [one for i, one in enumerate(replies) if i != 2] == [["0"], ["1"], ["3"], ["4"]]
        assert isinstance(replies[2], asyncio.CancelledError)

    on_loop(store, body)


def test_a_reply_that_is_no_text_leaves_no_request_unanswered(
    store: EmbeddedStore, redis: redis_py.Redis
) -> None:
    """Bytes that are no UTF-8 come as half surrogate pairs."""
    redis.set("bytes", b"\xff\xfe")

    async def main() -> None:
        driver = AsyncDriver(connect_async(store.url))
        keys = ["bytes", *(f"absent-{number}" for number in range(100))]
        found = await asyncio.gather(
            *(driver.run(asks(call("GET", key))) for key in keys), return_exceptions=True
        )
        assert ascii(found) == ascii([["\udcff\udcfe"], *([None] for _ in keys[1:])])
        assert driver.waiting == 0
        assert await driver.run(asks(call("GET", "absent"), call("ECHO", "here"))) == [None, "here"]
        await driver.close()

    asyncio.run(main())


def test_items_that_cost_more_are_few_a_call(store: EmbeddedStore, redis: redis_py.Redis) -> None:
    async def at_once(count: int) -> None:
        driver = AsyncDriver(connect_async(store.url))
        try:
            await driver.run(log_heartbeat(KEYS, "c1", "a:1", 322))
            redis.config_resetstat()
            plans = (log_heartbeat(KEYS, "c1", f"a:{number}", 322) for number in range(count))
            await asyncio.gather(*map(driver.run, plans))
        finally:
            await driver.close()

    asyncio.run(at_once(3 * LOGGED_AT_ONCE + 1))
    assert redis.info("commandstats")["cmdstat_evalsha"]["calls"] == 4
