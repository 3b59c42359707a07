"""The rules of events: literal entries of the stream, and what the cache still holds after them."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable

import pytest
from msgspec.structs import replace

from registry.errors import StoreUnavailable
from registry.events.entry import Event, EventId
from registry.registration.renewals import Renewals
from tests.worker.cache.test_route_cache import ROUTE_A, TA, filled, held
from tests.worker.scene import asynchronous
from worker.cache.before_loss import BeforeLoss
from worker.cache.invalidation import Invalidation
from worker.cache.lists import ListCache, ListKey
from worker.cache.routes import RouteCache
from worker.counters import Counters
from worker.reply import Depends, Reply
from worker.watch.follower import ResetCause

ALL = {"TA", "TB", "X", "106"}


def entry(kind: str, cause: str = "", **fields: str) -> Event:
    return Event(EventId(1767225599000), {"v": "1", "kind": kind, "cause": cause, "inc": "1", **fields})


def member(kind: str, cause: str, broker: str, id: int = 0, **fields: str) -> Event:
    return entry(kind, cause, cluster="c1", broker=broker, id=str(id), addr=f"127.0.0.{id}:1", **fields)


class Reported:
    """What the listener asked others to do; `reading` is done when the settings are read. The store has the brokers
    `stored`."""

    def __init__(self, reading: Callable[[], Awaitable[None]] | None = None) -> None:
        self.stored: dict[str, frozenset[int]] = {}
        self.expired: list[str] = []
        self.leased: list[int] = []
        self.reloads = 0
        self.reread: list[bool] = []
        self._reading = reading

    async def reload(self) -> None:
        self.reloads += 1
        if self._reading is not None:
            await self._reading()

    async def reread_access(self, lost_writes: bool) -> None:
        self.reread.append(lost_writes)

    async def present(self) -> dict[str, frozenset[int]]:
        return self.stored


def rules_for(
    reported: Reported,
    cache: RouteCache | None = None,
    remembered: BeforeLoss | None = None,
    renewals: Renewals | None = None,
    lists: ListCache | None = None,
) -> Invalidation:
    """The rules over what is given, and what `filled` has otherwise."""
    return Invalidation(
        filled() if cache is None else cache,
        ListCache(1 << 20, Counters()) if lists is None else lists,
        remembered or BeforeLoss(1 << 20),
        renewals or Renewals(time.monotonic),
        Counters(),
        reported.reload,
        reported.reread_access,
        reported.present,
        reported.expired.append,
        reported.leased.append,
    )


ADDRS = json.dumps({"0": "127.0.0.0:1", "1": "127.0.0.1:1"})


@pytest.mark.parametrize(
    ("event", "left"),
    [
        pytest.param(
            member("broker_registered", "join", "a", addrs=ADDRS, dv="0:1:1"), {"TB", "X"}, id="registered"
        ),
        pytest.param(
            member("broker_registered", "first", "new", addrs=ADDRS), ALL - {"106"}, id="a-new-broker"
        ),
        pytest.param(member("broker_removed", "unregistered", "b", addrs="{}"), {"X"}, id="removed"),
        pytest.param(
            member("broker_updated", "register", "a", zone="z", zone_before=""), {"TB", "X"}, id="zone"
        ),
        pytest.param(
            member("broker_updated", "register", "a", acting="1", acting_before="0"), {"TB", "X"}, id="acting"
        ),
        pytest.param(
            member("broker_updated", "register", "a", filters="[]", filters_before="[]"),
            {"TB", "X"},
            id="filters",
        ),
        pytest.param(
            member("broker_updated", "register", "a", dv="0:1:2", dv_before="0:1:1"), ALL, id="version-alone"
        ),
        pytest.param(member("broker_updated", "register", "a", ha="h", ha_before=""), ALL, id="ha-address"),
        pytest.param(
            entry("topics_changed", "register", rows='[["a","","8,8,6,0",["TA","TZ"]]]'),
            ALL - {"TA"},
            id="topics",
        ),
        pytest.param(
            entry("topics_changed", "topic_register", rows='[["b","","8,8,6,0",["X"]]]'),
            ALL - {"X"},
            id="missing-topic-comes",
        ),
        pytest.param(
            entry("mappings_changed", "register", rows='[["a","TA",null,{}]]'), ALL - {"TA"}, id="mappings"
        ),
        pytest.param(entry("drain_changed", "drain", broker="a"), {"TB", "X"}, id="drain"),
        pytest.param(
            entry("kv_changed", "put", kv_ns="ORDER_TOPIC_CONFIG", key="TA", after="a:4"),
            ALL - {"TA"},
            id="order",
        ),
        pytest.param(entry("kv_changed", "put", kv_ns="OTHER", key="TA", after="x"), ALL, id="other-kv"),
        pytest.param(entry("settings_changed", "update", changes="{}"), set(), id="settings"),
        pytest.param(entry("hold_changed", "outage", after="{}"), set(), id="hold"),
        pytest.param(entry("conflict_seen", "two_names", broker="a"), ALL, id="conflict"),
        pytest.param(entry("checkpoint", "request", broker="a"), ALL, id="checkpoint"),
        pytest.param(entry("stream_started", "empty_store"), set(), id="empty-store"),
        pytest.param(entry("stream_started", "stream_lost"), set(), id="stream-lost"),
        pytest.param(entry("something_new", ""), set(), id="unknown-kind"),
        pytest.param(
            Event(EventId(1), {"v": "9", "kind": "conflict_seen"}),
            set(),
            id="unknown-version",
        ),
    ],
)
@asynchronous
async def test_an_event_drops_what_it_makes_untrue(event: Event, left: set[str]) -> None:
    cache, reported = filled(), Reported()
    await rules_for(reported, cache).apply([event])
    assert held(cache) == left


LISTS = {"206", "219", "304", "319"}


@pytest.mark.parametrize(
    ("event", "left"),
    [
        pytest.param(member("broker_registered", "join", "a", addrs=ADDRS), {"219", "319"}, id="registered"),
        pytest.param(member("broker_removed", "unregistered", "b", addrs="{}"), {"219", "319"}, id="removed"),
        pytest.param(member("broker_updated", "register", "a", zone="z", zone_before=""), LISTS, id="zone"),
        pytest.param(
            entry("topics_changed", "register", rows='[["a","","8,8,6,0",["TA"]]]'),
            LISTS - {"206"},
            id="topics",
        ),
        pytest.param(
            entry("mappings_changed", "register", rows='[["a","TA",null,{}]]'), LISTS, id="mappings"
        ),
        pytest.param(entry("drain_changed", "drain", broker="a"), LISTS, id="drain"),
        pytest.param(entry("kv_changed", "put", kv_ns="n", key="k", after="x"), LISTS - {"219"}, id="kv"),
        pytest.param(entry("settings_changed", "update", changes="{}"), set(), id="settings"),
        pytest.param(entry("hold_changed", "outage", after="{}"), set(), id="hold"),
        pytest.param(entry("conflict_seen", "two_names", broker="a"), LISTS, id="conflict"),
        pytest.param(entry("checkpoint", "request", broker="a"), LISTS, id="checkpoint"),
        pytest.param(entry("stream_started", "stream_lost"), set(), id="stream-lost"),
        pytest.param(entry("something_new", ""), set(), id="unknown-kind"),
    ],
)
@asynchronous
async def test_an_event_drops_the_lists_that_it_makes_untrue(event: Event, left: set[str]) -> None:
    lists = ListCache(1 << 20, Counters())
    keys = {name: ListKey(int(name), None) for name in LISTS}
    for key in keys.values():
        lists.end(lists.begin(key), Reply(body=b"a list", depends=Depends()))
    await rules_for(Reported(), lists=lists).apply([event])
    assert {name for name, key in keys.items() if lists.get(key)} == left


@pytest.mark.parametrize(
    ("group", "waits"),
    [
        pytest.param([], {"a", "b"}, id="no-broker-is-back"),
        pytest.param(
            [
                member("broker_registered", "first", "b", addrs='{"0":"x:1"}', dv="0:1:1"),
                entry(
                    "topics_changed",
                    "register",
                    broker="b",
                    dv="0:1:1",
                    rows='[["b","","8,8,6,0",["TA","TB"]]]',
                ),
            ],
            {"a"},
            id="one-broker-back-in-one-group",
        ),
        pytest.param(
            [member("broker_registered", "first", "b", addrs='{"0":"x:1"}')],
            {"a", "b"},
            id="table-not-whole-yet",
        ),
        pytest.param(
            [
                member("broker_registered", "first", "b", addrs='{"0":"x:1"}'),
                entry("topics_changed", "register", broker="b", rows='[["b","","8,8,6,0",["TZ"]]]'),
                entry(
                    "topics_changed", "register", broker="b", dv="0:1:1", rows='[["b","","8,8,6,0",["TB"]]]'
                ),
            ],
            {"a"},
            id="last-slice-of-a-big-table",
        ),
        pytest.param(
            [member("broker_registered", "first", "a", 1, addrs='{"1":"x:1"}', dv="0:1:1")],
            {"a", "b"},
            id="the-slave-came-first",
        ),
        pytest.param(
            [member("broker_removed", "unregistered", "a", addrs="{}")], {"b"}, id="one-left-for-good"
        ),
    ],
)
@asynchronous
async def test_after_an_emptied_store_brokers_are_waited_for(group: list[Event], waits: set[str]) -> None:
    cache, reported, remembered = filled(), Reported(), BeforeLoss(1 << 20)
    rules = rules_for(reported, cache, remembered)
    await rules.apply([entry("stream_started", "empty_store"), *group])
    assert held(cache) == set()
    assert {name for name in ("a", "b") if remembered.returned(name, None)} == waits


@pytest.mark.parametrize(
    ("cause", "stored", "waits"),
    [
        ("rollback", {"a": frozenset({0, 1})}, {"b"}),
        ("rollback", {"a": frozenset({0, 1}), "b": frozenset({0, 1})}, set()),
        ("rollback", {"a": frozenset(), "b": frozenset({0, 1, 2})}, {"a"}),
        ("incarnation", {"c": frozenset({0})}, {"a", "b"}),
        ("hole", {}, set()),
    ],
)
@asynchronous
async def test_brokers_that_another_store_does_not_have_are_waited_for(
    cause: ResetCause, stored: dict[str, frozenset[int]], waits: set[str]
) -> None:
    """A snapshot of earlier, a replica that was behind: those that registered since are there all the same."""
    cache, reported, remembered = filled(), Reported(), BeforeLoss(1 << 20)
    reported.stored = stored
    await rules_for(reported, cache, remembered).reset(cause)
    assert held(cache) == set()
    assert remembered.awaited.keys() == waits


@asynchronous
async def test_what_the_new_store_had_before_its_stream_was_read_is_not_waited_for() -> None:
    """Else a broker that leaves at once is shown with what others registered since: a route that never was."""
    cache, remembered = RouteCache(1 << 20, Counters()), BeforeLoss(1 << 20)
    rules = rules_for(Reported(), cache, remembered)
    start = entry("stream_started", "empty_store")
    rules.emptied()
    cache.end(cache.begin(TA), ROUTE_A)
    await rules.apply([start])
    assert remembered.awaited == {}
    cache.end(cache.begin(TA), ROUTE_A)
    await rules.apply([start])
    assert remembered.awaited.keys() == {"a"}, "emptied once more"


@asynchronous
async def test_a_broker_that_is_not_back_in_time_is_not_shown_and_nothing_else_is_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("worker.cache.invalidation.RETURN_WITHIN_S", 0.02)
    cache, remembered, renewals = filled(), BeforeLoss(1 << 20), Renewals(time.monotonic)
    rules = rules_for(Reported(), cache, remembered, renewals)
    rules.emptied()
    assert renewals.generation == 1, "heartbeats go to the store, which does not know their brokers"
    assert held(cache) == ALL, "what is shown stays true"
    rules._returned("a", None)
    cache.end(cache.begin(TA), replace(ROUTE_A, depends=Depends(frozenset({"a"}))))
    await asyncio.sleep(0.05)
    assert held(cache) == {"TA", "X"}, "b was waited for"
    assert remembered.awaited == {}


@asynchronous
async def test_a_store_that_was_new_is_no_reason_to_drop_replies_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("worker.cache.invalidation.RETURN_WITHIN_S", 0.02)
    cache = RouteCache(1 << 20, Counters())
    await rules_for(Reported(), cache).apply([entry("stream_started", "empty_store")])
    cache.end(cache.begin(TA), ROUTE_A)
    await asyncio.sleep(0.05)
    assert held(cache) == {"TA"}


@pytest.mark.parametrize(
    ("group", "expired"),
    [
        pytest.param(
            [member("broker_removed", "expired", "a", addrs="{}")], ["c1:127.0.0.0:1"], id="expired"
        ),
        pytest.param([member("broker_removed", "unregistered", "a", addrs="{}")], [], id="unregistered"),
        pytest.param(
            [
                member("broker_removed", "expired", "a", addrs="{}"),
                member("broker_registered", "revive", "a", addrs=ADDRS),
            ],
            [],
            id="back-in-the-same-group",
        ),
        pytest.param(
            [
                member("broker_removed", "expired", "a", 1, addrs="{}"),
                member("broker_registered", "first", "a", addrs=ADDRS),
            ],
            ["c1:127.0.0.1:1"],
            id="another-member-came",
        ),
    ],
)
@asynchronous
async def test_members_that_expired_for_good_are_reported(group: list[Event], expired: list[str]) -> None:
    reported = Reported()
    await rules_for(reported).apply(group)
    assert reported.expired == expired


@pytest.mark.parametrize(
    ("group", "forgets"),
    [
        pytest.param([entry("checkpoint", scope="begin"), entry("checkpoint", scope="end")], 0, id="round"),
        pytest.param(
            [entry("stream_started", "stream_lost"), entry("checkpoint", scope="begin")], 1, id="start"
        ),
        pytest.param([entry("conflict_seen", "two_names", broker="a")], 1, id="conflict"),
    ],
)
@asynchronous
async def test_a_round_does_not_make_renewals_be_asked_again(group: list[Event], forgets: int) -> None:
    reported, renewals = Reported(), Renewals(time.monotonic)
    await rules_for(reported, renewals=renewals).apply(group)
    assert renewals.generation == forgets


@asynchronous
async def test_timeouts_are_reported() -> None:
    reported = Reported()
    rules = rules_for(reported)
    await rules.apply([member("broker_registered", "first", "a", addrs="{}", timeout_ms="400")])
    await rules.apply([member("broker_updated", "register", "a", timeout_ms="500", timeout_ms_before="400")])
    await rules.apply([member("broker_removed", "lost", "a", addrs="{}")])
    assert reported.leased == [400, 500]


@asynchronous
async def test_settings_are_read_before_the_next_answer_is_kept() -> None:
    cache, reported = filled(), Reported()
    rules = rules_for(reported, cache)
    await rules.apply([entry("settings_changed", "update", changes="{}")])
    await rules.apply([entry("tables_repaired", "keys", keys='["settings"]', count="1")])
    await rules.reset("hole")
    assert reported.reloads == 3


@asynchronous
async def test_what_is_revoked_is_read_again_and_whether_the_store_may_have_lost_it() -> None:
    reported = Reported()
    rules = rules_for(reported)
    await rules.apply([entry("access_changed", "revoked")])
    await rules.apply([entry("stream_started", "new_stream")])
    await rules.apply([entry("tables_repaired", "keys", keys='["access:revoked"]', count="1")])
    await rules.apply([entry("stream_started", "empty_store")])
    await rules.reset("hole")
    await rules.reset("rollback")
    await rules.reset("incarnation")
    assert reported.reread == [False, False, True, False, True, True]


@asynchronous
async def test_what_old_settings_made_while_new_ones_are_read_is_not_kept() -> None:
    cache = filled()

    async def slow() -> None:
        cache.end(cache.begin(("TA", None)), ROUTE_A)

    rules = rules_for(Reported(slow), cache)
    await rules.apply([entry("settings_changed", "update", changes="{}")])
    assert len(cache) == 0


@asynchronous
async def test_a_change_of_settings_that_cannot_be_read_is_not_passed_over() -> None:
    async def away() -> None:
        raise StoreUnavailable("away")

    cache = filled()
    rules = rules_for(Reported(away), cache)
    with pytest.raises(StoreUnavailable):
        await rules.apply([entry("settings_changed", "update", changes="{}")])
    assert held(cache) == set()
