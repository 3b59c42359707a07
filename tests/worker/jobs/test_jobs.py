"""The jobs on a real store, the periods of the scheduler, and a worker that runs them."""

import asyncio
import json
import logging
import time
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
import redis as redis_py
from rq import Queue
from rq.cron import CronScheduler
from rq.cron_scheduler_registry import get_registry_key
from rq.serializers import JSONSerializer
from rq.utils import import_attribute

from mqnamesrv.store import EmbeddedStore
from registry import task_times
from registry.drivers import AsyncDriver, run
from registry.events.checkpoint import request_round
from registry.events.entry import FIRST, Event
from registry.events.trim import AUDITOR, KEPT, Trimmed, trim
from registry.keys import Keys
from registry.kv import put
from registry.options.catalogue import Options, to_env
from registry.plans import Origin
from registry.registration.register import Registration, register
from registry.removal import any_lease_over
from registry.settings import update
from registry.store.connect import connect_async
from testbed.eventually import eventually
from tests.logged import logged
from tests.worker.scene import last_cause
from worker.jobs import rq_worker
from worker.jobs import scheduler as scheduler_module
from worker.jobs import tasks as jobs
from worker.jobs.rq_worker import worker
from worker.jobs.scheduler import PeriodScheduler
from worker.jobs.timetable import JOBS, QUEUE, Periodic
from worker.jobs.unread_log import UnreadLog
from worker.logs.rate_limited_log import RateLimitedLog

KEYS = Keys("default")
ACT = Origin("op", "test")
DAY_MS = 24 * 3600 * 1000


def tick(seconds: int) -> Periodic:
    return Periodic(jobs.run_deferred, every_s=seconds)


def job_ids(redis: redis_py.Redis) -> list[str]:
    return sorted(key.removeprefix("rq:job:") for key in redis.scan_iter("rq:job:*"))


@pytest.fixture
def queue(store: EmbeddedStore) -> Iterator[redis_py.Redis]:
    """The job queue's Redis, as RQ wants it: replies are bytes."""
    with redis_py.Redis.from_url(store.url, socket_timeout=1) as client:
        yield client


@pytest.fixture
def schedulers(queue: redis_py.Redis) -> list[PeriodScheduler]:
    return [PeriodScheduler(queue, "default", [tick(1000)]) for _ in range(3)]


def test_three_schedulers_enqueue_once_a_period(
    schedulers: list[PeriodScheduler], redis: redis_py.Redis
) -> None:
    for _ in range(2):
        for scheduler in schedulers:
            assert 0 < scheduler.step() <= 1000
    assert job_ids(redis) == [f"run_deferred-{int(time.time()) // 1000}-default"]


def in_environment(store: EmbeddedStore, monkeypatch: pytest.MonkeyPatch) -> Options:
    """Return the options of a job worker over this store, and have them in the environment."""
    options = Options(redis_url=store.url)
    for variable, value in to_env(options).items():
        monkeypatch.setenv(variable, value)
    return options


def test_a_job_that_is_done_is_not_enqueued_again_in_its_period(
    store: EmbeddedStore,
    schedulers: list[PeriodScheduler],
    redis: redis_py.Redis,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    options = in_environment(store, monkeypatch)
    jobs._options.cache_clear()
    schedulers[0].step()
    worker(options).work(burst=True, logging_level="ERROR")
    done = job_ids(redis)
    schedulers[1].step()
    assert job_ids(redis) == done
    assert redis.llen(f"rq:queue:{QUEUE}:default") == 0
    jobs._options.cache_clear()


def test_a_job_that_rests_is_late_by_the_time_in_which_it_runs_once(
    store: EmbeddedStore, queue: redis_py.Redis, redis: redis_py.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = in_environment(store, monkeypatch)
    jobs._options.cache_clear()
    Queue(f"{QUEUE}:default", connection=queue, serializer=JSONSerializer).enqueue_call(jobs.expire_brokers)
    worker(options).work(burst=True, logging_level="ERROR")
    jobs._options.cache_clear()
    assert run(task_times.read(KEYS), redis)["expire_brokers"].every_s == 10


def test_jobs_that_the_store_refuses_are_one_line_without_traceback(
    store: EmbeddedStore,
    queue: redis_py.Redis,
    redis: redis_py.Redis,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    options = in_environment(store, monkeypatch)
    jobs._options.cache_clear()
    redis.set(KEYS.leases, "of a wrong type")
    upkeep = Queue(f"{QUEUE}:default", connection=queue, serializer=JSONSerializer)
    for _ in range(3):
        upkeep.enqueue_call(jobs.expire_brokers)
    worker(options).work(burst=True, logging_level="ERROR")
    jobs._options.cache_clear()
    [line] = [record for record in caplog.records if record.name == rq_worker.log.name]
    assert line.exc_info is None
    assert line.getMessage().startswith("job worker.jobs.tasks.expire_brokers failed: WRONGTYPE")
    assert "compare keys and rights" in line.getMessage()


def test_the_next_period_is_enqueued_and_a_missed_one_is_not(
    queue: redis_py.Redis, redis: redis_py.Redis
) -> None:
    scheduler = PeriodScheduler(queue, "default", [tick(1)])
    scheduler.step()
    first = job_ids(redis)
    period = int(first[0].split("-")[1])
    scheduler._enqueue(tick(1), period + 7)
    assert job_ids(redis) == [*first, f"run_deferred-{period + 7}-default"]


def test_a_job_without_work_is_enqueued_seldom(queue: redis_py.Redis, redis: redis_py.Redis) -> None:
    job = Periodic(jobs.run_deferred, every_s=1, resting_every_s=10)
    assert [period for period in range(990, 1012) if not job.rests(period)] == [990, 1000, 1010]
    resting = msgspec.structs.replace(job, resting_every_s=10**12)
    scheduler = PeriodScheduler(queue, "default", [resting])
    scheduler.step([resting.name])
    first = job_ids(redis)
    assert len(first) == 1  # a scheduler that begins shows that its jobs run
    eventually(lambda: resting.period(time.time()) > int(first[0].split("-")[1]))
    scheduler.step([resting.name])
    assert job_ids(redis) == first
    scheduler.step()
    assert len(job_ids(redis)) == 2


@pytest.mark.parametrize(("timeout_ms", "is_over"), [(60_000, False), (1, True)])
def test_a_lease_that_is_over_is_work(redis: redis_py.Redis, *, timeout_ms: int, is_over: bool) -> None:
    assert not run(any_lease_over(KEYS), redis)
    run(register(KEYS, Registration("c1", "a", "127.0.0.1:1", 0, timeout_ms=120_000), ACT), redis)
    run(register(KEYS, Registration("c1", "b", "127.0.0.1:2", 0, timeout_ms=timeout_ms), ACT), redis)
    time.sleep(0.005)
    assert run(any_lease_over(KEYS), redis) == is_over


def test_all_jobs_run_while_the_store_does_not_say_what_they_have_to_do(
    store: EmbeddedStore, redis: redis_py.Redis
) -> None:
    async def idle() -> list[str]:
        driver = AsyncDriver(connect_async(store.url))
        try:
            return [*await scheduler_module.without_work(driver, KEYS, JOBS)]
        finally:
            await driver.close()

    assert asyncio.run(idle()) == ["expire_brokers"]
    redis.set(KEYS.leases, "of a wrong type")
    assert asyncio.run(idle()) == []
    redis.delete(KEYS.leases)
    redis.client_pause(2000)
    assert asyncio.run(idle()) == []


def test_name_servers_that_share_a_queue_have_jobs_of_their_own(
    queue: redis_py.Redis, redis: redis_py.Redis
) -> None:
    for namespace in ("a_b.c", "a__b_-c"):
        PeriodScheduler(queue, namespace, [tick(1000)]).step()
        assert redis.llen(f"rq:queue:{QUEUE}:{namespace}") == 1
    assert len(job_ids(redis)) == 2


def test_a_queued_job_lives_no_longer_than_its_period(queue: redis_py.Redis, redis: redis_py.Redis) -> None:
    PeriodScheduler(queue, "default", [tick(1000)]).step()
    assert 900 < redis.ttl(f"rq:job:{job_ids(redis)[0]}") <= 1000


def test_a_queue_without_workers_does_not_grow(queue: redis_py.Redis, redis: redis_py.Redis) -> None:
    waiting = f"rq:queue:{QUEUE}:default"
    redis.rpush(waiting, *(f"run_deferred-{period}-default" for period in range(500)))
    PeriodScheduler(queue, "default", [tick(1000)]).step()
    assert redis.llen(waiting) == 100
    assert redis.lrange(waiting, -1, -1) == job_ids(redis)


def test_a_scheduler_waits_out_an_outage() -> None:
    nowhere = redis_py.Redis.from_url("redis://127.0.0.1:1/0", socket_timeout=0.1)
    scheduler = PeriodScheduler(nowhere, "default", [tick(1)])
    assert scheduler.step() == 0.5
    scheduler.unregister()


def test_the_end_of_an_outage_is_logged_once(
    queue: redis_py.Redis,
    redis: redis_py.Redis,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(scheduler_module, "log", RateLimitedLog(logging.getLogger("test"), every_s=0))
    one = PeriodScheduler(queue, "default", [tick(1000)])
    redis.set(f"rq:queue:{QUEUE}:default", "no list")
    assert one.step() == 0.5
    one.step()
    one.step()
    said = [message.partition(":")[0] for message in caplog.messages if message.startswith("the job queue")]
    assert said == ["the job queue cannot be used", "the job queue can be used again"]


def test_schedulers_are_on_rqs_list_also_after_it_came_back_empty(
    schedulers: list[PeriodScheduler], queue: redis_py.Redis
) -> None:
    names = {scheduler.name for scheduler in schedulers}
    for scheduler in schedulers:
        scheduler.step()
    assert {scheduler.name for scheduler in CronScheduler.all(queue)} == names
    queue.flushall()
    for scheduler in schedulers:
        scheduler._registered_until = 0.0
        scheduler.step()
    assert {scheduler.name for scheduler in CronScheduler.all(queue)} == names
    for scheduler in schedulers:
        scheduler.unregister()
    assert CronScheduler.all(queue) == []


def test_a_scheduler_that_was_killed_leaves_rqs_list(queue: redis_py.Redis) -> None:
    killed, other = (PeriodScheduler(queue, "default", [tick(1000)]) for _ in range(2))
    killed.step()
    queue.zadd(get_registry_key(), {killed.name: time.time() - 121})
    other.step()
    assert queue.zrange(get_registry_key(), 0, -1) == [other.name.encode()]


def test_the_timetable_names_every_job_once() -> None:
    assert [(job.name, job.every_s) for job in JOBS] == [
        ("expire_brokers", 1),
        ("run_deferred", 10),
        ("trim_events", 10),
        ("checkpoint_tables", 2),
    ]
    assert {job.queue for job in JOBS} == {QUEUE}
    assert Queue(QUEUE, connection=redis_py.Redis()).name == QUEUE


def test_lapses_are_recorded_and_what_they_owe_is_done(store: EmbeddedStore, redis: redis_py.Redis) -> None:
    options = Options(redis_url=store.url)
    run(register(KEYS, Registration("c1", "a", "127.0.0.1:1", 0, timeout_ms=1), ACT), redis)
    time.sleep(0.005)
    assert jobs.expire_brokers(options) == 1
    assert jobs.expire_brokers(options) == 0
    assert last_cause(redis) == "expired"
    redis.hset(KEYS.deferred, "clean:gone", "1")
    jobs.run_deferred(options)
    assert redis.hgetall(KEYS.deferred) == {}


def entries(redis: redis_py.Redis, stream: str) -> list[tuple[str, dict[str, str]]]:
    found: Any = redis.xrange(stream)
    return list(found)


def test_a_round_that_is_asked_for_is_carried_out_in_as_many_runs_as_it_needs(
    store: EmbeddedStore, redis: redis_py.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = Options(redis_url=store.url)
    assert jobs.checkpoint_tables(options) == {"slices": 0, "ended": 0}
    run(register(KEYS, Registration("c1", "a", "127.0.0.1:1", 0), ACT), redis)
    run(update(KEYS, {"tls.server.keyPassword": "pw"}, ACT), redis)
    run(request_round(KEYS, "request", ACT), redis)
    monkeypatch.setattr(jobs, "SLICES", 2)
    runs = [jobs.checkpoint_tables(options) for _ in range(3)]
    assert [done["ended"] for done in runs].count(1) == 1
    assert runs[-1]["slices"] < 2
    checkpoints = [fields for _, fields in entries(redis, KEYS.events) if fields["kind"] == "checkpoint"]
    assert (checkpoints[0]["scope"], checkpoints[-1]["scope"]) == ("begin", "end")
    assert {fields["actor"] for fields in checkpoints} == {"job:restate"}
    assert checkpoints[-2]["settings"] == '{"tls.server.keyPassword":"***"}'


def trim_counts(options: Options) -> tuple[object, ...]:
    return tuple(jobs.trim_events(options)[name] for name in ("audited", "passed", "capped", "lagging"))


def test_what_operators_did_is_copied_once_with_its_ids(store: EmbeddedStore, redis: redis_py.Redis) -> None:
    options = Options(redis_url=store.url)
    run(register(KEYS, Registration("c1", "a", "127.0.0.1:1", 0), ACT), redis)
    for value in ("1", "2"):
        run(put(KEYS, "n", "k", value, ACT), redis)
    assert trim_counts(options) == (2, 0, 0, 0)
    run(put(KEYS, "n", "k", "3", ACT), redis)
    assert trim_counts(options) == (1, 0, 0, 0)
    redis.hdel(KEYS.events_consumers, AUDITOR)
    assert trim_counts(options) == (0, 0, 0, 0)
    copied = [entry for entry in entries(redis, KEYS.events) if entry[1]["kind"] == "kv_changed"]
    assert entries(redis, KEYS.audit) == copied


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({"kind": "topics_changed", "cause": "wipe"}, True, id="wipe"),
        pytest.param({"kind": "topics_changed", "cause": "topic_delete"}, True, id="topic-deleted"),
        pytest.param({"kind": "topics_changed", "cause": "register"}, False, id="registered"),
        pytest.param({"kind": "broker_removed", "cause": "evicted"}, True, id="evicted"),
        pytest.param({"kind": "broker_removed", "cause": "expired"}, False, id="expired"),
        pytest.param({"kind": "settings_changed", "cause": "update"}, True, id="settings"),
    ],
)
def test_entries_of_operators_are_audited(fields: dict[str, str], expected: bool) -> None:
    assert Event(FIRST, fields).is_audited is expected


def fill(redis: redis_py.Redis, count: int, at_ms: int) -> None:
    pipe = redis.pipeline(transaction=False)
    for number in range(1, count + 1):
        pipe.xadd(KEYS.events, {"kind": "conflict", "seq": str(number)}, id=f"{at_ms}-{number}")
    pipe.execute()


def hold(redis: redis_py.Redis, at: str, *, seq: int = 1, silent_ms: int = 0, holds: bool = True) -> None:
    seen = int(time.time() * 1000) - silent_ms
    consumer = {"id": at, "seq": seq, "at_ms": seen, "hold": holds}
    redis.hset(KEYS.events_consumers, "pipeline", msgspec.json.encode(consumer))


@pytest.mark.parametrize(
    ("age_ms", "held", "gone"),
    [
        pytest.param(2 * DAY_MS, None, 5_000, id="old"),
        pytest.param(DAY_MS // 2, None, 0, id="young"),
        pytest.param(2 * DAY_MS, {"at": "1000", "seq": 1000}, 1_000, id="held-back"),
        pytest.param(
            2 * DAY_MS, {"at": "1000", "silent_ms": 2 * DAY_MS}, 5_000, id="holder-silent-for-a-day"
        ),
        pytest.param(2 * DAY_MS, {"at": "1000", "holds": False}, 5_000, id="consumer-that-does-not-hold"),
    ],
)
def test_old_entries_go_that_no_consumer_needs_but_the_newest_stay(
    redis: redis_py.Redis, age_ms: int, held: dict[str, Any] | None, gone: int
) -> None:
    at_ms = int(time.time() * 1000) - age_ms
    fill(redis, KEPT + 5_000, at_ms)
    if held is not None:
        hold(redis, f"{at_ms}-{held.pop('at')}", **held)
    done = run(trim(KEYS, ACT, retention_ms=DAY_MS, max_bytes=1 << 30), redis)
    assert gone - 100 <= done.passed <= gone
    assert redis.xlen(KEYS.events) == KEPT + 5_000 - done.passed
    assert (done.capped, done.lagging) == (0, 0)


def test_the_cap_on_memory_overrides_consumers(redis: redis_py.Redis) -> None:
    at_ms = int(time.time() * 1000)
    fill(redis, 5_000, at_ms)
    hold(redis, "1-0")
    used = int(redis.memory_usage(KEYS.events) or 0)
    done = run(trim(KEYS, ACT, retention_ms=DAY_MS, max_bytes=used // 2), redis)
    assert 2_300 <= done.capped <= 3_000
    assert used // 3 < int(redis.memory_usage(KEYS.events, samples=0) or 0) <= used // 2
    assert done.lagging == 1
    assert done.passed == 0


def test_an_empty_store_has_nothing_to_trim(redis: redis_py.Redis) -> None:
    assert run(trim(KEYS, ACT, retention_ms=1, max_bytes=1), redis) == Trimmed()


def test_what_trimming_cannot_read_is_logged_when_it_first_shows(
    store: EmbeddedStore,
    redis: redis_py.Redis,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(jobs, "unread", UnreadLog())
    options = Options(redis_url=store.url)
    redis.xadd(KEYS.events, {"v": "1", "kind": "foo", "seq": "abc", "inc": "1"}, id="5-0")
    redis.hset(KEYS.events_consumers, "mine", "nojson")
    for _ in range(2):
        jobs.trim_events(options)
    entry, consumer = logged(caplog)
    assert "entries without a number (seq), 5-0 and" in entry
    assert "the report of consumer 'mine'" in consumer
    redis.hset(KEYS.events_consumers, "mine", '{"id":"1-0","seq":"5"}')
    assert json.dumps(jobs.trim_events(options))  # as RQ stores it
    assert "Expected `int`, got `str`" in logged(caplog)[-1]


def test_memory_is_bounded_also_where_trimming_fails(store: EmbeddedStore, redis: redis_py.Redis) -> None:
    fill(redis, 300, 1)
    redis.set(KEYS.events_consumers, "of a wrong type")
    used = int(redis.memory_usage(KEYS.events) or 0)
    with pytest.raises(redis_py.ResponseError, match="WRONGTYPE"):
        jobs.trim_events(Options(redis_url=store.url, events_max_bytes=used // 2))
    assert redis.xlen(KEYS.events) <= 200


@pytest.mark.parametrize("name", ["expire_brokers", "settle_owed", "trim_events", "restate_tables"])
def test_a_job_that_0_1_enqueued_is_still_found(name: str) -> None:
    assert callable(import_attribute(f"worker.jobs.{name}"))
