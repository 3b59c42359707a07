"""The stream of members that enter and leave: what scripts append to it, and its reader."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial

import pytest
import redis as redis_py

from mqnamesrv.store import EmbeddedStore
from registry.errors import StoreUnavailable
from registry.events.entry import Event
from registry.keys import Keys
from registry.store.connect import connect_follower
from testbed.eventually import eventually_async
from tests.logged import logged
from tests.registry.brokers import address
from tests.registry.namespace import Namespace
from tests.worker.scene import asynchronous
from worker.background import end
from worker.jobs.group_events import GroupEvents

KEYS = Keys()
ENTERS = ("registered", "b1", "0")


class Seen:
    """What the reader was given: the groups, by kind, broker and id; `failures` are raised before."""

    def __init__(self) -> None:
        self.groups: list[list[tuple[str, str, str]]] = []
        self.events: list[Event] = []
        self.failures: list[Exception] = []

    async def apply(self, group: Sequence[Event]) -> None:
        if self.failures:
            raise self.failures.pop()
        self.events += group
        self.groups.append(
            [(one.kind.removeprefix("broker_"), one.get("broker"), one.get("id")) for one in group]
        )

    async def has(self, *groups: list[tuple[str, str, str]]) -> None:
        await eventually_async(lambda: self.groups == [*groups])


@asynccontextmanager
async def reading(store: EmbeddedStore) -> AsyncIterator[Seen]:
    seen = Seen()
    reader = GroupEvents(partial(connect_follower, store.url), KEYS, seen.apply)
    task = asyncio.ensure_future(reader.run())
    assert await reader.following(3)
    try:
        yield seen
    finally:
        await end([task])


@pytest.fixture
def ns(redis: redis_py.Redis) -> Namespace:
    return Namespace(redis, KEYS)


@asynchronous
async def test_it_has_each_member_that_enters_or_leaves_and_no_topics(
    store: EmbeddedStore, ns: Namespace
) -> None:
    ns.register("before")
    async with reading(store) as seen:
        ns.register("b1")
        length = ns.store.xlen(KEYS.group_events)
        ns.register("b1", topics=("T1", "T3"), version=2)
        assert ns.store.xlen(KEYS.group_events) == length
        ns.register("b1", 1)
        ns.unregister("b1")
        await seen.has([ENTERS], [("registered", "b1", "1")], [("removed", "b1", "0")])
        whole = {one.id: one for one in ns.entries()}
        for one in seen.events:
            assert one.fields.items() - {("event", str(one.id))} <= whole[one.id].fields.items()
        addrs = json.loads(seen.events[1].get("addrs"))
        assert addrs == {"0": address("b1"), "1": address("b1", 1)}


@asynchronous
async def test_what_one_script_changes_comes_together(store: EmbeddedStore, ns: Namespace) -> None:
    ns.register("b1", 1)
    async with reading(store) as seen:
        ns.register("b1", 0, at=address("b1", 1))
        await seen.has([("removed", "b1", "1"), ENTERS])


def test_the_stream_is_short_and_ends_by_itself(ns: Namespace) -> None:
    for _ in range(1200):
        ns.store.xadd(KEYS.group_events, {"events": "[]"})
    ns.register("b1")
    assert ns.store.xlen(KEYS.group_events) <= 1101
    assert 50_000 < ns.store.pttl(KEYS.group_events) <= 60_000


@asynchronous
async def test_entries_that_cannot_be_read_are_left_out(
    store: EmbeddedStore, ns: Namespace, caplog: pytest.LogCaptureFixture
) -> None:
    async with reading(store) as seen:
        ids = [
            ns.store.xadd(KEYS.group_events, fields)
            for fields in ({"x": "y"}, {"events": "no JSON"}, {"events": '[{"event":"none"}]'})
        ]
        ns.register("b1")
        await seen.has([ENTERS])
    (line,) = logged(caplog)
    assert line.startswith(
        f"entry {ids[0]} of the stream events:groups cannot be read: KeyError('events'); 905 is "
    )


@pytest.mark.parametrize("damage", ["deleted", "another type", "no more ids"])
@asynchronous
async def test_a_stream_that_is_damaged_begins_again(
    store: EmbeddedStore, ns: Namespace, damage: str
) -> None:
    last = 2**64 - 1
    async with reading(store) as seen:
        ns.register("b2")
        await seen.has([("registered", "b2", "0")])
        if damage == "no more ids":
            ns.store.xadd(KEYS.group_events, {"events": "[]"}, id=f"{last}-{last}")
            await seen.has([("registered", "b2", "0")], [])
        else:
            ns.store.delete(KEYS.group_events)
        if damage == "another type":
            ns.store.set(KEYS.group_events, "x")
            await asyncio.sleep(0.1)
        seen.groups.clear()
        ns.register("b1")
        await seen.has([ENTERS])


@asynchronous
async def test_it_goes_on_where_a_connection_or_the_listener_failed(
    store: EmbeddedStore, ns: Namespace
) -> None:
    async with reading(store) as seen:
        seen.failures.append(StoreUnavailable("gone"))
        ns.register("b1")
        await seen.has([ENTERS])
        ns.store.client_kill_filter(_type="normal", skipme=True)
        ns.register("b2")
        await seen.has([ENTERS], [("registered", "b2", "0")])
