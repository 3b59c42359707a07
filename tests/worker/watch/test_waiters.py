"""What waits for entries of the stream, and what is left of it when it waited too long."""

import asyncio
import gc
import weakref
from functools import partial

from registry.events.entry import EventId
from testbed.eventually import eventually_async
from tests.worker.scene import asynchronous
from worker.watch.waiters import Waiters


class Asked:
    """A request that waits."""

    def __init__(self) -> None:
        self.reported: list[bool] = []

    def done(self, in_time: bool) -> None:
        self.reported.append(in_time)


@asynchronous
async def test_a_request_that_waited_too_long_is_answered_once_and_dropped() -> None:
    waiters, reported = Waiters(), list[bool]()
    requests = [Asked() for _ in range(100)]
    references = [weakref.ref(request) for request in requests]
    for number, request in enumerate(requests):
        request.reported = reported
        waiters.add(EventId(5, number), request.done, 0.01)
    del requests, request
    await eventually_async(lambda: len(reported) == 100)
    gc.collect()
    assert [ref for ref in references if ref() is not None] == []
    assert len(waiters) == 0
    waiters.reach(EventId(9))
    await asyncio.sleep(0)
    assert reported == [False] * 100


@asynchronous
async def test_others_go_on_waiting() -> None:
    waiters, reported = Waiters(), list[tuple[int, bool]]()

    def add(number: int, within_s: float) -> None:
        waiters.add(
            EventId(number),
            partial(lambda number, in_time: reported.append((number, in_time)), number),
            within_s,
        )

    for number in range(1, 11):
        add(number, 0.01 if number % 3 else 60)
    await eventually_async(lambda: len(reported) == 7)
    waiters.reach(EventId(6))
    await eventually_async(lambda: len(reported) == 9)
    assert reported[-2:] == [(3, True), (6, True)]
    add(7, 60)
    waiters.reach(EventId(10))
    await eventually_async(lambda: len(reported) == 11)
    assert reported[-2:] == [(7, True), (9, True)]
    assert len(waiters) == 0
