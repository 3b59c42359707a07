"""Drains: what routes show of a drained broker, how long, and what the stream tells."""

import json
from collections.abc import Iterator

import pytest

from mqnamesrv.store import EmbeddedStore
from registry.drains import (
    NAMES_MAX,
    Drain,
    Drained,
    DrainedBroker,
    StoredDrain,
    drain,
    drain_of,
    drained_brokers,
    drained_names,
    undrain,
)
from registry.errors import BrokerNotFound, InvalidField
from registry.events.entry import Event
from registry.events.replay import Tables, replay
from registry.expiry.worker_lease import HORIZON_MS
from registry.plans import as_json
from registry.queue_data.rewrite import add_write_perm
from registry.routes import RouteView
from registry.store.connect import connect
from tests.registry.brokers import address, origin
from tests.registry.namespace import Namespace
from tests.registry.stored import Store

UPGRADE = Drain("alice", "kernel upgrade")
MOVE = Drain("bob", "moves to another rack")


@pytest.fixture
def redis(each_store: EmbeddedStore) -> Iterator[Store]:
    with connect(each_store.url) as client:
        yield client


def drained(ns: Namespace, name: str = "b1", wanted: Drain = UPGRADE) -> Drained:
    return ns.run(drain(ns.keys, name, wanted, origin()))


def undrained(ns: Namespace, name: str = "b1") -> Drained:
    return ns.run(undrain(ns.keys, name, origin()))


def stored(ns: Namespace, name: str = "b1") -> StoredDrain:
    in_force = ns.run(drain_of(ns.keys, name))
    assert in_force is not None
    return in_force


def listed(ns: Namespace) -> tuple[DrainedBroker, ...]:
    return ns.run(drained_brokers(ns.keys, ns.run(drained_names(ns.keys))))


def perms(ns: Namespace, topic: str = "T1") -> dict[str, int]:
    return {data.broker_name: data.perm for data in ns.route(topic).queue_datas}


def only(ns: Namespace) -> Event:
    (event,) = ns.new_entries()
    return event


def since_ms(event: Event) -> int:
    """Return since when the drain is that this entry set: the time of its script, in which it is written."""
    since: int = json.loads(event.get("after"))["since_ms"]
    assert 0 <= event.id.ms - since < 1000
    return since


def over(ns: Namespace, name: str = "b1", ago_ms: int = 5) -> int:
    """The drain's time ended so long ago; that is not recorded yet. Returns its end."""
    ns.rewritten = True
    until_ms = ns.now_ms() - ago_ms
    ns.store.hset(ns.keys.drains, name, f'{{"owner":"alice","reason":"r","until_ms":{until_ms}}}')
    ns.store.zadd(ns.keys.drain_ends, {name: until_ms})
    return until_ms


def test_routes_lose_the_write_bit_of_a_drained_broker_alone(ns: Namespace) -> None:
    ns.register(topics={"T1": "8,8,6,0", "T2": "4,4,7,1"})
    ns.register("b2")
    drained(ns)
    assert (perms(ns), perms(ns, "T2")) == ({"b1": 4, "b2": 6}, {"b1": 5, "b2": 6})
    assert ns.topics() == {"T1": "8,8,6,0", "T2": "4,4,7,1"}  # as stored
    undrained(ns)
    assert perms(ns) == {"b1": 6, "b2": 6}


def test_entries_of_a_drain(ns: Namespace) -> None:
    ns.register()
    ns.new_entries()
    until_ms = ns.now_ms() + 60_000
    done = drained(ns)
    first = only(ns)
    assert (done, first.cause) == (Drained(str(first.id), 2), "drain")
    assert {name: first.get(name) for name in ("broker", "cluster", "before", "after", "topics")} == {
        "broker": "b1",
        "cluster": "c1",
        "before": "",
        "after": f'{{"owner":"alice","reason":"kernel upgrade","since_ms":{since_ms(first)}}}',
        "topics": "2",
    }
    drained(ns, wanted=Drain("bob", "disk", until_ms))
    second = only(ns)
    assert (second.cause, second.get("before")) == ("drain", first.get("after"))
    assert second.get("after") == (
        f'{{"owner":"bob","reason":"disk","until_ms":{until_ms},"since_ms":{since_ms(second)}}}'
    )
    undrained(ns)
    third = only(ns)
    assert (third.cause, third.get("before"), "after" in third.fields) == (
        "undrain",
        second.get("after"),
        False,
    )


def test_repeating_either_tells_nothing(ns: Namespace) -> None:
    ns.register()
    drained(ns)
    ns.new_entries()
    assert (drained(ns).event_id, ns.new_causes()) == ("", [])
    undrained(ns)
    ns.new_entries()
    assert (undrained(ns).event_id, ns.new_causes()) == ("", [])


@pytest.mark.parametrize("way", ["registration", "restart", "lapse", "restore"])
def test_it_outlives_whatever_the_broker_does(ns: Namespace, way: str) -> None:
    ns.register()
    drained(ns)
    if way == "registration":
        ns.register(version=2, topics=("T1", "T3"))
    if way == "restart":
        ns.unregister()
        ns.register(version=2)
    if way == "lapse":
        ns.lapse()
        ns.register()
    if way == "restore":
        ns.run(add_write_perm(ns.keys, "b1", origin()))
    assert perms(ns) == {"b1": 4}
    undrained(ns)
    assert perms(ns) == {"b1": 6}


@pytest.mark.parametrize("held", [True, False])
def test_a_removal_tells_whether_the_broker_was_drained(ns: Namespace, held: bool) -> None:
    ns.register()
    if held:
        drained(ns)
    else:
        over(ns)
    ns.new_entries()
    ns.unregister()
    assert only(ns).get("drained") == str(int(held))


def test_a_drain_of_a_broker_that_is_gone_can_be_looked_at_replaced_and_ended(ns: Namespace) -> None:
    ns.register()
    drained(ns)
    ns.unregister()
    assert (stored(ns).owner, stored(ns).reason) == (UPGRADE.owner, UPGRADE.reason)
    assert drained(ns, wanted=MOVE).event_id
    assert undrained(ns).event_id
    assert ns.run(drain_of(ns.keys, "b1")) is None


def test_an_unknown_broker_cannot_be_drained(ns: Namespace) -> None:
    for plan in (drain(ns.keys, "b1", UPGRADE, origin()), undrain(ns.keys, "b1", origin())):
        with pytest.raises(BrokerNotFound):
            ns.run(plan)
    assert ns.store.keys("*") == []


def test_an_end_in_the_past_is_refused(ns: Namespace) -> None:
    ns.register()
    with pytest.raises(InvalidField, match="untilMillis"):
        drained(ns, wanted=Drain("alice", "late", ns.now_ms()))
    assert not ns.store.exists(ns.keys.drains)


def test_it_ends_by_itself_when_its_time_is_over(ns: Namespace) -> None:
    ns.register()
    drained(ns, wanted=Drain("alice", "short", ns.now_ms() + 60_000))
    assert perms(ns) == {"b1": 4}
    until_ms = over(ns)
    assert (perms(ns), ns.run(drain_of(ns.keys, "b1"))) == ({"b1": 6}, None)
    ns.new_entries()
    ns.tick()
    ended = only(ns)
    assert (ended.kind, ended.cause, ended.number("effective_ms")) == ("drain_changed", "drain_end", until_ms)
    assert ("before" in ended.fields, "after" in ended.fields) == (True, False)
    assert ns.store.exists(ns.keys.drains, ns.keys.drain_ends) == 0
    ns.tick()
    assert ns.new_causes() == []


def test_a_tick_tells_when_the_next_one_ends(ns: Namespace) -> None:
    ns.register()
    until_ms = ns.now_ms() + HORIZON_MS // 2
    drained(ns, wanted=Drain("alice", "short", until_ms))
    assert ns.tick().next_end_ms == until_ms
    undrained(ns)
    assert ns.tick().next_end_ms is None


@pytest.mark.parametrize("others", [0, 60])
def test_a_drain_after_the_end_of_another_is_a_new_one(ns: Namespace, others: int) -> None:
    """Whatever else ended since the last tick, which is more than one script records."""
    ns.register()
    drained(ns)
    for number in range(others):
        over(ns, f"other-{number}", ago_ms=6)
    over(ns)
    ns.new_entries()
    drained(ns, wanted=MOVE)
    ended, begun = ns.new_entries()
    assert (ended.cause, begun.cause, begun.get("before")) == ("drain_end", "drain", "")
    while ns.tick().event_id:
        pass
    assert perms(ns) == {"b1": 4}
    assert {event.get("broker") for event in ns.new_entries()} == {f"other-{n}" for n in range(others)}


def test_the_end_of_a_drain_may_be_moved_or_taken_away(ns: Namespace) -> None:
    ns.register()
    soon = ns.now_ms() + 60_000
    drained(ns, wanted=Drain("alice", "r", soon))
    drained(ns, wanted=Drain("alice", "r", soon + 1))
    assert ns.store.zscore(ns.keys.drain_ends, "b1") == soon + 1
    drained(ns)
    assert ns.store.zscore(ns.keys.drain_ends, "b1") is None


def test_since_when_a_drain_is(ns: Namespace) -> None:
    """When its entry was written; a request that repeats it does not begin it again, another drain does."""
    ns.register()
    ns.new_entries()
    drained(ns)
    first = since_ms(only(ns))
    assert stored(ns).since_ms == first
    ns.next_ms()
    drained(ns)
    assert stored(ns).since_ms == first
    drained(ns, wanted=MOVE)
    assert stored(ns).since_ms == since_ms(only(ns)) > first


@pytest.mark.parametrize("wanted", [UPGRADE, Drain("alice", '"since_ms":1}', 2**41)])
def test_a_drain_of_0_1_has_no_beginning_and_is_the_same_drain(ns: Namespace, wanted: Drain) -> None:
    ns.register()
    ns.rewritten = True
    ns.store.hset(ns.keys.drains, "b1", as_json(wanted))
    ns.new_entries()
    drained(ns, wanted=wanted)
    assert (ns.new_causes(), stored(ns).since_ms, stored(ns).reason) == ([], None, wanted.reason)


def test_all_drains_in_force(ns: Namespace) -> None:
    for name in ("b1", "b2", "b3", "b4"):
        ns.register(name)
        drained(ns, name)
    ns.unregister("b2")
    over(ns, "b3")
    ns.store.hset(ns.keys.drains, "b4", "none")
    ns.store.hset(ns.keys.drains, b"\xff", "none")
    assert listed(ns) == (
        DrainedBroker("b1", stored(ns, "b1"), "c1", 2),
        DrainedBroker("b2", stored(ns, "b2"), None, 0),
        DrainedBroker("b4", None, "c1", 2),
    )


def test_more_drains_than_one_script_takes(ns: Namespace) -> None:
    names = [f"b{number:03}" for number in range(2 * NAMES_MAX + 1)]
    ns.rewritten = True
    ns.store.hset(ns.keys.drains, mapping=dict.fromkeys(names, "{}"))
    assert [broker.name for broker in listed(ns)] == names


def test_the_smallest_slave_acts_as_master_of_a_drained_group(ns: Namespace) -> None:
    """What counts is the effective permission: a group that is not writable has an acting master."""
    ns.register("b1", 1, acting=True)
    ns.store.hset(ns.keys.route("T1"), "b1", "1,8,8,6,0")
    ns.store.hset(ns.keys.topics_of("b1"), "T1", "1,8,8,6,0")
    ns.rewritten = True
    view = RouteView(acting_master=True)
    assert set(ns.route("T1", view).broker_datas[0].broker_addrs) == {1}
    drained(ns)
    assert ns.route("T1", view).broker_datas[0].broker_addrs == {0: address("b1", 1)}


def test_a_store_of_drains_alone_is_not_an_empty_one(ns: Namespace) -> None:
    ns.register()
    drained(ns)
    ns.unregister()
    ns.store.delete(ns.keys.events)
    ns.rewritten = True
    ns.register()
    assert ns.entries()[0].cause == "stream_lost"


def test_the_stream_leads_to_the_drains(ns: Namespace) -> None:
    ns.register()
    ns.register("b2")
    drained(ns)
    drained(ns, "b2", MOVE)
    undrained(ns, "b2")
    assert replay(Tables(), ns.entries()).drains == ns.store.hgetall(ns.keys.drains)
