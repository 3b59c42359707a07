"""A value that is none, which is damage: what it is of is done without, or repaired, and nothing else fails for it."""

from collections.abc import Callable
from math import inf
from typing import Any

import pytest

from registry import kv, members
from registry.drains import Drain, drain, drain_of, undrain
from registry.errors import BrokerBusy, ValueDamaged
from registry.events.checkpoint import checkpoint, request_round
from registry.events.entry import EventKind
from registry.expiry.worker_lease import names_of_members
from registry.keys import ORDER_TOPIC_CONFIG, Keys, member_key
from registry.registration.script_calls import CLAIM_MS
from registry.repair.walk import Walk
from rocketmq_remoting.data_version import DataVersion
from rocketmq_remoting.route import TopicRouteData
from tests.registry.brokers import address, mapping_info, origin
from tests.registry.namespace import Namespace
from tests.registry.stored import Store

KEYS = Keys()
MEMBER = member_key("c1", address("b1"))
NO_TEXT = b"\xff\xfe"
GREATEST = "18446744073709551615-18446744073709551615"


@pytest.fixture
def ns(redis: Store) -> Namespace:
    """Its stream may be damaged, and is not replayed; of two brokers with the same topics b1 has the damage."""
    namespace = Namespace(redis)
    namespace.register("b1", mappings=[mapping_info("T1")], filters=("f:1",), ha="h:1")
    namespace.register("b2")
    return namespace


def walked(ns: Namespace) -> None:
    ns.run(Walk(ns.keys, origin(), "w", timeout_ms=120_000, rows_per_s=inf).run())


def shown(route: TopicRouteData) -> set[str]:
    return {data.broker_name for data in route.queue_datas}


def of_epoch(store: Store, rest: str) -> str:
    return f"{store.hget(KEYS.broker('b1'), 'epoch')},{rest}"


def both_sides(rest: str) -> Callable[[Store], None]:
    def damage(store: Store) -> None:
        store.hset(KEYS.route("T1"), "b1", of_epoch(store, rest))
        store.hset(KEYS.topics_of("b1"), "T1", of_epoch(store, rest))

    return damage


def mapping(store: Store) -> None:
    store.hset(KEYS.mapping("T1"), "b1", of_epoch(store, "{junk}"))
    store.hset(KEYS.mappings_of("b1"), "T1", of_epoch(store, "{junk}"))


ROUTES: dict[str, tuple[Callable[[Store], object], set[str]]] = {
    "filter servers": (lambda store: store.hset(KEYS.member(MEMBER), "filters", "junk"), {"b1", "b2"}),
    "filter servers of numbers": (
        lambda store: store.hset(KEYS.member(MEMBER), "filters", "[1]"),
        {"b1", "b2"},
    ),
    "filter servers that are no text": (
        lambda store: store.hset(KEYS.member(MEMBER), "filters", b'["' + NO_TEXT + b'"]'),
        {"b1", "b2"},
    ),
    "queue data": (both_sides("x"), {"b2"}),
    "queue data of three numbers": (both_sides("8,8,6"), {"b2"}),
    "mapping info": (mapping, {"b1", "b2"}),
    "order topics of another type": (
        lambda store: store.set(KEYS.kv(ORDER_TOPIC_CONFIG), "x"),
        {"b1", "b2"},
    ),
    "drains of another type": (lambda store: store.set(KEYS.drains, "x"), {"b1", "b2"}),
    "ends of drains of another type": (
        lambda store: (store.hset(KEYS.drains, "b1", "{}"), store.set(KEYS.drain_ends, "x")),
        {"b1", "b2"},
    ),
}


@pytest.mark.parametrize("damage", ROUTES)
def test_a_route_is_shown_without_what_is_damaged(ns: Namespace, damage: str) -> None:
    do, left = ROUTES[damage]
    do(ns.store)
    assert shown(ns.route("T1")) == left
    assert ns.run(members.brokers(ns.keys, ["b1"]))[0].members
    walked(ns)
    ns.register("b1", mappings=[mapping_info("T1")], filters=("f:1",), ha="h:1")
    walked(ns)
    assert shown(ns.route("T1")) == {"b1", "b2"}


@pytest.mark.parametrize("text", ["x", "8,8,6", "8,8,6," + "9" * 30])
def test_queue_data_that_are_none_on_both_sides_are_registered_again(ns: Namespace, text: str) -> None:
    both_sides(text)(ns.store)
    walked(ns)
    ns.register("b1", mappings=[mapping_info("T1")], filters=("f:1",), ha="h:1")
    assert ns.topics("b1") == {"T1": "8,8,6,0", "T2": "8,8,6,0"}


def test_filter_servers_that_are_none_are_dropped(ns: Namespace) -> None:
    ns.store.hset(ns.keys.member(MEMBER), "filters", "junk")
    walked(ns)
    assert ns.store.hget(ns.keys.member(MEMBER), "filters") is None


def test_a_data_version_that_is_none_is_one_that_no_broker_sends(ns: Namespace) -> None:
    ns.store.hset(ns.keys.member(MEMBER), "dv", "junk")
    assert ns.heartbeat("b1").version == DataVersion(timestamp=-1)
    assert ns.run(members.brokers(ns.keys, ["b1"]))[0].members[0].version is None


@pytest.mark.parametrize("kind", ["namespaces", "values"])
def test_a_registration_does_without_damaged_order_topics(ns: Namespace, kind: str) -> None:
    """All brokers would be refused, and leave when their leases end."""
    ns.store.set(ns.keys.kv_namespaces if kind == "namespaces" else ns.keys.kv(ORDER_TOPIC_CONFIG), "x")
    if kind == "values":
        ns.store.sadd(ns.keys.kv_namespaces, ORDER_TOPIC_CONFIG)
    assert ns.register("b2").order_table is None
    assert ns.register("b2", topics=("T1", "T3"), version=2).order_table is None
    assert ns.register("b3").order_table is None


def test_order_topics_that_are_no_text_are_left_out(ns: Namespace) -> None:
    ns.run(kv.put(ns.keys, ORDER_TOPIC_CONFIG, "T1", "b1:4", origin()))
    ns.store.hset(ns.keys.kv(ORDER_TOPIC_CONFIG), mapping={"T2": NO_TEXT, NO_TEXT: "x"})
    assert ns.run(kv.table(ns.keys, ORDER_TOPIC_CONFIG)) == {"T1": "b1:4"}


def test_a_kv_namespace_of_another_type_is_deleted(ns: Namespace) -> None:
    ns.run(kv.put(ns.keys, "n", "k", "v", origin()))
    ns.store.set(ns.keys.kv("n"), "x")
    walked(ns)
    ns.run(kv.put(ns.keys, "n", "k", "w", origin()))
    assert ns.run(kv.get(ns.keys, "n", "k")) == "w"


def test_the_namespace_of_order_topics_is_listed_again(ns: Namespace) -> None:
    ns.run(kv.put(ns.keys, ORDER_TOPIC_CONFIG, "T1", "b1:4", origin()))
    ns.store.delete(ns.keys.kv_namespaces)
    walked(ns)
    assert ns.run(kv.table(ns.keys, ORDER_TOPIC_CONFIG)) == {"T1": "b1:4"}


STREAMS: dict[str, Callable[[Store], object]] = {
    "an entry with the greatest id": lambda store: store.xadd(KEYS.events, {"v": "1"}, id=GREATEST),
    "an entry with the greatest id that was deleted": lambda store: (
        store.xadd(KEYS.events, {"v": "1"}, id=GREATEST),
        store.xdel(KEYS.events, GREATEST),
    ),
    "another type": lambda store: store.set(KEYS.events, "x"),
    "an incarnation that is none": lambda store: store.hset(KEYS.events_meta, "inc", NO_TEXT),
}


@pytest.mark.parametrize("damage", STREAMS)
def test_a_stream_that_cannot_go_on_begins_anew(ns: Namespace, damage: str) -> None:
    STREAMS[damage](ns.store)
    ns.register("b3")
    assert shown(ns.route("T1")) == {"b1", "b2", "b3"}
    (started,) = [event for event in ns.entries() if event.kind == EventKind.STREAM_STARTED][-1:]
    assert (started.cause, started.sequence) == ("stream_lost", 1)
    assert ns.entries()[-1].sequence == 3
    assert ns.entries()[-1].incarnation == started.incarnation
    assert started.incarnation.isdecimal()


@pytest.mark.parametrize("text", ["9" * 25, str(2**63), "1e5", "-1"])
def test_a_sequence_that_is_none_begins_again(ns: Namespace, text: str) -> None:
    ns.store.hset(ns.keys.events_meta, "seq", text)
    ns.register("b3")
    assert ns.entries()[-1].sequence == 2


def test_offsets_that_are_no_ids_stop_no_writes(ns: Namespace) -> None:
    """They are where the stream is trimmed, after the first write of a script."""
    ns.store.hset(ns.keys.events_meta, "max_bytes", "1000")
    ns.store.zadd(ns.keys.events_offsets, {"junk": -1})
    ns.register("b3")
    assert shown(ns.route("T1")) == {"b1", "b2", "b3"}


@pytest.mark.parametrize("score", [inf, -inf, 1e300, 1_700_000_000_000.5])
def test_a_lease_that_is_no_time_stops_no_writes(ns: Namespace, score: float) -> None:
    """Of a member with two names that leaves one of them."""
    ns.register("b9", at=address("b1"))
    ns.store.zadd(ns.keys.leases, {MEMBER: score})
    ns.unregister("b9", at=address("b1"))
    walked(ns)
    ns.register("b1", mappings=[mapping_info("T1")], filters=("f:1",), ha="h:1")
    assert 0 < ns.store.zscore(ns.keys.leases, MEMBER) - ns.now_ms() <= 120_000
    assert shown(ns.route("T1")) == {"b1", "b2"}


def test_a_tick_takes_a_lease_with_a_fraction(ns: Namespace) -> None:
    ns.store.zadd(ns.keys.leases, {MEMBER: ns.now_ms() + 700.25})
    assert ns.tick().next_end_ms is not None


def test_a_time_out_that_is_none_is_the_usual_one_until_the_next_registration(ns: Namespace) -> None:
    """Also where it is unchanged: the broker may have asked for another."""
    ns.register("b3", timeout_ms=300_000)
    member = ns.keys.member(member_key("c1", address("b3")))
    ns.store.hset(member, "timeout", "long")
    ns.heartbeat("b3")
    assert ns.store.hget(member, "timeout") == "120000"
    ns.register("b3", timeout_ms=300_000)
    assert ns.store.hget(member, "timeout") == "300000"


@pytest.mark.parametrize(
    "newcomer",
    [
        pytest.param({"number": 0, "at": "127.9.9.9:10911"}, id="another address"),
        pytest.param({"number": 1, "at": address("b1")}, id="another id"),
    ],
)
def test_the_place_of_a_member_that_was_lost_can_be_taken(ns: Namespace, newcomer: dict[str, Any]) -> None:
    ns.store.delete(ns.keys.member(MEMBER))
    ns.register("b1", **newcomer, version=2)
    assert ns.addrs("b1") == {newcomer["number"]: newcomer["at"]}


def test_a_walk_survives_members_that_are_none(ns: Namespace) -> None:
    """It is what repairs them."""
    ns.store.hset(ns.keys.member("nocolon"), mapping={"slot:7:b1": "1", "broker": "b1", "id": "7"})
    ns.store.zadd(ns.keys.leases, {"nocolon": 9e12})
    ns.store.hset(ns.keys.member(MEMBER), mapping={"slot:": "1", "slot:x:b1": "1", "slot:0": "1"})
    assert ns.run(names_of_members(ns.keys, [MEMBER])) == {"b1"}
    walked(ns)
    assert ns.store.zscore(ns.keys.leases, "nocolon") is None
    assert {field for field in ns.store.hkeys(ns.keys.member(MEMBER)) if field[:5] == "slot:"} == {
        "slot:0:b1"
    }
    assert ns.addrs("b1") == {0: address("b1")}


@pytest.mark.parametrize("name", ["b1", "new"])
def test_a_claim_of_a_broker_name_without_an_end_ends(
    ns: Namespace, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("registry.registration.register.PENDING_PAUSES", 0)
    ns.store.set(ns.keys.pending(name), "77")
    with pytest.raises(BrokerBusy):
        ns.register(name, topics=("T1", "T4"), version=9)
    assert 0 < ns.store.pttl(ns.keys.pending(name)) <= CLAIM_MS


@pytest.mark.parametrize(
    "damage",
    [
        {"at": "junk", "name": "b1"},
        {"at": "topics"},
        {"at": "topics", "name": "b1", "epoch": "1", "cursor": "x"},
        {"at": "values", "name": "n", "cursor": ""},
        {"at": "done", "number": "x", "brokers": "y"},
    ],
)
def test_a_checkpoint_round_that_was_damaged_begins_again(ns: Namespace, damage: dict[str, str]) -> None:
    ns.store.hset(ns.keys.events_round, mapping={"inc": ns.entries()[-1].incarnation, **damage})
    ns.run(request_round(ns.keys, "request", origin()))
    assert ns.run(checkpoint(ns.keys, origin(), slices=100)).ended == 1
    assert ns.entries()[-1].get("scope") == "end"


@pytest.mark.parametrize(
    "damage",
    [{"hold_until_ms": "1"}, {"hold_from_ms": "1", "hold_until_ms": "x"}, {"hold_until_ms": "9" * 30}],
)
def test_a_hold_that_is_none_stops_no_checkpoint_round(ns: Namespace, damage: dict[str, str]) -> None:
    ns.store.hset(ns.keys.events_meta, mapping=damage)
    ns.run(request_round(ns.keys, "request", origin()))
    assert ns.run(checkpoint(ns.keys, origin(), slices=100)).ended == 1
    assert ns.run(members.lease_clock(ns.keys)).hold_until_ms in (None, 1)


def test_a_clean_up_that_is_no_text_stops_no_other(ns: Namespace) -> None:
    ns.store.hset(ns.keys.deferred, NO_TEXT, NO_TEXT)
    ns.unregister("b2")
    ns.clean_up()
    assert not ns.store.exists(ns.keys.topics_of("b2"))


@pytest.mark.parametrize(("score", "state"), [("inf", "living"), ("-inf", "overdue"), ("1e300", "living")])
def test_a_lease_that_is_none_is_of_its_member_only(ns: Namespace, score: str, state: str) -> None:
    """Routes take it as it stands; a walk cuts one that is too long."""
    ns.store.zadd(ns.keys.leases, {MEMBER: score})
    assert [broker.members[0].lease.state for broker in ns.run(members.brokers(ns.keys, ["b1", "b2"]))] == [
        state,
        "living",
    ]
    assert set(ns.tick().overdue) == ({MEMBER} if state == "overdue" else set())
    assert shown(ns.route("T1")) == ({"b1", "b2"} if state == "living" else {"b2"})
    walked(ns)
    assert ns.store.zscore(ns.keys.leases, MEMBER) in (-inf, pytest.approx(ns.now_ms() + 120_000, abs=5_000))


@pytest.mark.parametrize(
    "text",
    ["notjson", '{"owner":1}', NO_TEXT, f'{{"owner":"{"a" * 16384}","reason":"r"}}'],
    ids=["no JSON", "no drain", "no text", "longer than any"],
)
def test_a_drain_that_is_none_is_in_force_until_it_is_written_again(ns: Namespace, text: str | bytes) -> None:
    ns.store.hset(ns.keys.drains, "b1", text)
    with pytest.raises(ValueDamaged, match="drain of broker 'b1'"):
        ns.run(drain_of(ns.keys, "b1"))
    assert {data.broker_name: data.perm for data in ns.route("T1").queue_datas} == {"b1": 4, "b2": 6}
    ns.run(drain(ns.keys, "b1", Drain("alice", "repair"), origin()))
    stored = ns.run(drain_of(ns.keys, "b1"))
    assert stored is not None
    assert (stored.owner, stored.reason) == ("alice", "repair")
    ns.store.hset(ns.keys.drains, "b1", text)
    ns.run(undrain(ns.keys, "b1", origin()))
    assert ns.run(drain_of(ns.keys, "b1")) is None
