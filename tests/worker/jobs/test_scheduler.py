"""The tasks of a scheduler: a fault ends none of them."""

import asyncio
import logging
import signal
from pathlib import Path
from typing import Any

import pytest
import redis as redis_py

from mqnamesrv.store import EmbeddedStore
from registry.keys import Keys
from registry.kv import put
from registry.options.catalogue import Options
from registry.store.connect import connect, connect_queue
from testbed.eventually import eventually, eventually_async
from tests.logged import logged
from tests.registry.brokers import origin
from tests.registry.namespace import Namespace
from tests.worker.scene import asynchronous
from worker.jobs import scheduler
from worker.jobs.group_events import GroupEvents
from worker.jobs.observing import StreamObserver
from worker.jobs.repair_walker import RepairWalker
from worker.jobs.timetable import JOBS
from worker.logs.log_lines import FIELDS

TASKS = {
    "the timetable": (scheduler.PeriodScheduler, "step"),
    "the pushes of 905": (GroupEvents, "_catch_up"),
    "the walk over the tables": (RepairWalker, "walk"),
    "the observer of events": (StreamObserver, "observe_next"),
}


def test_a_queue_of_another_type_is_deleted(store: EmbeddedStore, caplog: pytest.LogCaptureFixture) -> None:
    queue = connect_queue(store.url, socket_timeout=5.0)
    timetable = scheduler.PeriodScheduler(queue, "default")
    key = f"rq:queue:{JOBS[0].queue_of('default')}"
    queue.sadd(key, "no list")
    with caplog.at_level(logging.WARNING):
        timetable.step()
    assert f"{key} was no list" in "".join(logged(caplog))
    eventually(
        lambda: timetable.step() and queue.llen(key)
    )  # from the next period on: its id was taken in this one


@asynchronous
async def test_what_a_fault_ends_begins_again(
    store: EmbeddedStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    begun = dict.fromkeys(TASKS, 0)

    def fail_at_first(what: str) -> None:
        owner, name = TASKS[what]
        whole = getattr(owner, name)

        def call(self: Any, *args: Any) -> Any:
            begun[what] += 1
            if begun[what] == 1:
                raise KeyError("addr")
            return whole(self, *args)

        monkeypatch.setattr(owner, name, call)

    for what in TASKS:
        fail_at_first(what)
    with caplog.at_level(logging.WARNING):
        serving = asyncio.create_task(scheduler.serve(Options(redis_url=store.url)))
        await eventually_async(lambda: all(times > 1 for times in begun.values()))
        assert not serving.done()
        signal.raise_signal(signal.SIGTERM)
        await serving
    lines = [line for line in logged(caplog) if "ended by a fault of this server" in line]
    assert {line.partition(" ended")[0] for line in lines} == set(TASKS)


@asynchronous
async def test_the_next_scheduler_logs_what_changed_since_one_ended(
    store: EmbeddedStore, redis: redis_py.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    ns = Namespace(redis)

    def keys() -> list[str]:
        """Of the lines, in their order."""
        return [
            getattr(line, FIELDS)["key"] for line in caplog.records if line.getMessage() == "kv_changed put"
        ]

    with caplog.at_level(logging.INFO):
        for n, changed in enumerate(("while it runs", "while the next one runs")):
            serving = asyncio.create_task(scheduler.serve(Options(redis_url=store.url)))
            await eventually_async(lambda: redis.exists(ns.keys.repair_walker))
            ns.run(put(ns.keys, "n", changed, "v", origin()))
            await eventually_async(lambda: changed in keys())  # noqa: B023
            signal.raise_signal(signal.SIGTERM)
            await serving
            assert not redis.exists(ns.keys.repair_walker)
            ns.run(put(ns.keys, "n", f"between {n}", "v", origin()))
    assert keys() == ["while it runs", "between 0", "while the next one runs"]


@asynchronous
async def test_a_scheduler_ends_though_the_store_is_away(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = EmbeddedStore(tmp_path, keep=False)
    store.start()
    serving = asyncio.create_task(scheduler.serve(Options(redis_url=store.url)))
    with connect(store.url) as client:
        await eventually_async(lambda: client.exists(Keys().repair_walker))
    store.stop()
    with caplog.at_level(logging.WARNING):
        signal.raise_signal(signal.SIGTERM)
        await serving
    assert any(line.startswith("the scheduler ends without releasing its claim: ") for line in logged(caplog))
