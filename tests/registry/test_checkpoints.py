"""Checkpoint rounds on a real store: a reader of one, from its begin, has all tables, whatever happens meanwhile."""

import signal
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from mqnamesrv.store import EmbeddedStore
from registry.drains import Drain, drain, undrain
from registry.events.checkpoint import LastRound, last_round
from registry.events.entry import Event, EventId
from registry.events.replay import UNKNOWN, CheckpointDiffers, ReplayError, Tables, replay
from registry.keys import Keys
from registry.kv import delete, put
from registry.queue_data.rewrite import wipe_write_perm
from registry.registration.register import register
from registry.removal import unregister
from registry.settings import update
from registry.store.connect import connect
from registry.topics import delete_topic
from tests.registry.brokers import address, mapping_info, origin, registration
from tests.registry.checkpoints import SMALLEST, a_round, asked, newcomers, paged_hashes, scopes, slices
from tests.registry.namespace import MORE_MEMBERS, Namespace
from tests.registry.steps import Stepped
from tests.registry.stored import assert_replays

COMMON = {"v", "kind", "cause", "inc", "seq", "part", "op", "actor", "round", "scope"}
LONG = "x" * 240


@pytest.fixture
def smallest(ns: Namespace, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A round takes as many scripts as it can."""
    monkeypatch.setattr("registry.events.checkpoint.SLICE", SMALLEST)
    with paged_hashes(ns.store):
        yield


def own(event: Event) -> dict[str, str]:
    return {name: value for name, value in event.fields.items() if name not in COMMON}


def populate(ns: Namespace) -> None:
    """Some of everything."""
    ns.tick()
    ns.register("b1", topics=("T1", "T2", "T3"), mappings=[mapping_info("T1")], filters=("f:1",), zone="z")
    ns.register("b1", 1, cluster="c:2", acting=True)
    ns.register("b2", topics={"T1": "4,4,6,0", "T4": "8,8,6,0"}, ha="h:1")
    ns.register("b3", at=address("b2"), version=3)
    for key in ("T1", "T2"):
        ns.run(put(ns.keys, "ORDER_TOPIC_CONFIG", key, "b1:4", origin()))
    ns.run(update(ns.keys, {"a": "1"}, origin()))
    ns.register("b4")
    for name in ("b2", "b4"):
        ns.run(drain(ns.keys, name, Drain("alice", "upgrade"), origin()))
    ns.unregister("b4")


# -- what it tells


def test_a_round_writes_all_in_order(ns: Namespace) -> None:
    ns.register("b1", mappings=[mapping_info("T1")], filters=("f:1",), zone="z", ha="h:1")
    lease = int(ns.store.zscore(ns.keys.leases, f"c1:{address('b1')}"))
    since = int(ns.store.hget(ns.keys.member(f"c1:{address('b1')}"), "since"))
    ns.run(put(ns.keys, "n", "k", "v", origin()))
    ns.run(update(ns.keys, {"a": "1"}, origin()))
    begin, broker, topics, mappings, kv, settings, end = a_round(ns)
    assert {(event.kind, event.cause, event.get("round")) for event in (begin, broker, end)} == {
        ("checkpoint", "request", "1")
    }
    assert scopes([begin, broker, topics, mappings, kv, settings, end]) == [
        "begin",
        "broker",
        "topics",
        "mappings",
        "kv",
        "settings",
        "end",
    ]
    assert own(begin) == {}
    assert broker.json("members", dict[str, Any]) == {
        "0": {
            "cluster": "c1",
            "addr": address("b1"),
            "since_ms": since,
            "ha": "h:1",
            "timeout_ms": 120_000,
            "filters": ["f:1"],
            "dv": "0:1700000000000:1",
            "last_seen_ms": lease - 120_000,
            "lease_ms": lease,
        }
    }
    assert {name: text for name, text in own(broker).items() if name != "members"} == {
        "broker": "b1",
        "epoch": "1",
        "cluster": "c1",
        "clusters": '["c1"]',
        "acting": "0",
        "zone": "z",
        "count": "1",
    }
    assert (topics.get("broker"), topics.get("epoch"), topics.get("count")) == ("b1", "1", "2")
    ((name, before, after, names),) = topics.json("rows", list[Any])
    assert (name, before, after, sorted(names)) == ("b1", "", "8,8,6,0", ["T1", "T2"])
    ((name, topic, before, info),) = mappings.json("rows", list[Any])
    assert (name, topic, before, info["epoch"]) == ("b1", "T1", None, 1)
    assert own(kv) == {"kv_ns": "n", "values": '{"k":"v"}', "count": "1"}
    assert own(settings) == {"settings": '{"a":"1"}', "count": "1"}
    assert own(end) == {
        "entries": "7",
        "brokers": "1",
        "members": "1",
        "topics": "2",
        "mappings": "1",
        "kv": "1",
        "settings": "1",
    }


def test_an_empty_store_has_a_short_round(ns: Namespace) -> None:
    events = a_round(ns)
    assert scopes(events) == ["stream_started", "begin", "settings", "end"]
    assert (events[0].cause, events[1].cause) == ("empty_store", "start")
    assert newcomers(events[1:]).whole


def test_no_round_begins_without_a_request(ns: Namespace) -> None:
    ns.register()
    ns.new_entries()
    assert ns.run(slices(ns.keys)).slices == 0
    assert ns.new_entries() == []
    assert ns.run(last_round(ns.keys)) is None


def test_a_newcomer_has_all_at_the_end_and_nothing_is_promised_before(ns: Namespace, smallest: None) -> None:
    populate(ns)
    events = a_round(ns)
    assert len({event.get("seq") for event in events}) == len(events) > 10
    assert not newcomers(events[:-1]).whole
    late = newcomers(events)
    assert late.whole
    assert_replays(ns.store, ns.keys, late)


def test_secret_settings_are_not_in_a_round(ns: Namespace) -> None:
    ns.run(update(ns.keys, {"redisPassword": "pw", "a": "1"}, origin()))
    events = a_round(ns)
    assert events[-2].json("settings", dict[str, str]) == {"redisPassword": "***", "a": "1"}
    assert "pw" not in str(events)
    ns.rewritten = True  # what is secret cannot be replayed


def test_a_large_value_is_in_a_round_by_its_size(ns: Namespace) -> None:
    ns.run(put(ns.keys, "n", "large", "x" * 65_537, origin()))
    ns.run(put(ns.keys, "n", "k", "", origin()))
    events = a_round(ns)
    assert events[1].json("values", dict[str, Any]) == {"large": 65_537, "k": ""}
    assert newcomers(events).kv == {"n": {"large": None, "k": ""}}
    ns.rewritten = True


def test_a_round_has_the_drains_of_brokers_without_members_too(ns: Namespace) -> None:
    populate(ns)
    events = {event.get("broker"): event for event in a_round(ns) if event.get("scope") == "broker"}
    drains = {name: event.get("drain") for name, event in events.items() if "drain" in event.fields}
    assert drains.keys() == {"b2", "b4"}
    assert drains == ns.store.hgetall(ns.keys.drains)
    assert set(own(events["b4"])) == {"broker", "drain"}


def test_the_begin_of_a_round_has_the_hold(ns: Namespace) -> None:
    ns.register()
    ns.silent_for(60_000)
    ns.tick()
    assert newcomers(a_round(ns)).hold == replay(Tables(), ns.entries()).hold != ""


def test_no_entry_is_larger_than_others_are(ns: Namespace) -> None:
    ns.limits = MORE_MEMBERS
    names = [f"{number:04}{LONG}" for number in range(600)]
    ns.register("b1", topics=names, mappings=[mapping_info(name) for name in names[:250]])
    for number in range(1, 200):
        ns.register("b1", number, (), filters=(LONG, LONG, LONG))
    for name in names[:40]:
        ns.run(put(ns.keys, "n", name, 16 * LONG, origin()))
    events = a_round(ns)
    assert {scope for scope in scopes(events) if scopes(events).count(scope) > 1} == {
        "members",
        "topics",
        "mappings",
        "kv",
    }
    assert max(len(str(event.fields)) for event in events) < 68_000
    assert all(event.number("count") <= 500 for event in events if event.get("scope") == "topics")
    assert all(event.number("count") <= 100 for event in events if event.get("scope") == "mappings")
    assert_replays(ns.store, ns.keys, newcomers(events))


def test_brokers_and_namespaces_are_many(ns: Namespace) -> None:
    """More than one script looks at."""
    for number in range(70):
        ns.register(f"b{number}", topics=("T1", "T2"))
    for number in range(160):
        ns.run(put(ns.keys, f"n{number}", "k", "v" if number % 4 == 0 else None, origin()))
    assert_replays(ns.store, ns.keys, newcomers(a_round(ns)))


# -- requests, and processes that carry a round out


@pytest.mark.parametrize(
    ("causes", "cause"),
    [
        pytest.param(["request", "gap"], "gap", id="gap"),
        pytest.param(["gap", "start", "request"], "start", id="start"),
        pytest.param(["request"], "request", id="request"),
    ],
)
def test_one_round_is_for_all_earlier_requests(ns: Namespace, causes: list[Any], cause: str) -> None:
    ns.register()
    last = str(ns.entries()[-1].id)
    assert {asked(ns, one) for one in causes} == {last}
    assert ns.run(slices(ns.keys)).ended == 1
    begin = ns.entries()[3]
    assert (begin.get("scope"), begin.cause) == ("begin", cause)
    assert ns.run(last_round(ns.keys)) == LastRound(cause, begin.id)
    assert ns.run(slices(ns.keys)).slices == 0


def test_a_request_during_a_round_gets_the_next(ns: Namespace, smallest: None) -> None:
    populate(ns)
    asked(ns)
    ns.run(slices(ns.keys, 4))
    asked(ns)
    assert ns.run(slices(ns.keys)).ended == 2
    begins = [event for event in ns.entries() if event.get("scope") == "begin"]
    assert [event.get("round") for event in begins] == ["1", "2"]


def test_a_round_goes_on_where_a_dead_process_left_it(ns: Namespace, smallest: None) -> None:
    populate(ns)
    asked(ns)
    for _ in range(7):
        dying = Stepped(slices(ns.keys), ns.store)
        dying.step()
    assert ns.run(slices(ns.keys)).ended == 1
    events = [event for event in ns.entries() if event.kind == "checkpoint"]
    assert scopes(events).count("begin") == scopes(events).count("end") == 1
    assert_replays(ns.store, ns.keys, newcomers(events))


def test_several_at_once_carry_out_one_round(ns: Namespace, smallest: None) -> None:
    populate(ns)
    asked(ns)
    plans = [Stepped(slices(ns.keys), ns.store) for _ in range(3)]
    while under_way := [plan for plan in plans if plan.request is not None]:
        for plan in under_way:
            plan.step()
    assert sum(plan.finish().ended for plan in plans) == 1
    events = [event for event in ns.entries() if event.kind == "checkpoint"]
    assert scopes(events).count("broker") == 4
    assert_replays(ns.store, ns.keys, newcomers(events))


# -- registrations between the slices


def new_broker(ns: Namespace) -> None:
    ns.register("b9", topics=("T9", "T1"), mappings=[mapping_info("T9", "b9")])


def new_member(ns: Namespace) -> None:
    ns.register("b2", 1, ha="h:9")


def all_gone(ns: Namespace) -> None:
    for name, number, cluster in (("b1", 0, "c1"), ("b1", 1, "c:2"), ("b2", 0, "c1")):
        ns.unregister(name, number, cluster=cluster)
    ns.unregister("b3", at=address("b2"))


def gone_and_back(ns: Namespace) -> None:
    ns.unregister("b2")
    ns.register("b2", topics=("N1", "N2", "N3"))


def gone_and_back_before_it_is_cleaned_up(ns: Namespace) -> None:
    """Fields of the old epoch are still there."""
    leaving = unregister(ns.keys, "c1", address("b2"), "b2", "0", origin())
    assert Stepped(leaving, ns.store).until("sweep_topics")
    coming = register(ns.keys, registration("b2", topics=("N1", "N2", "N3")), origin())
    assert Stepped(coming, ns.store).until("sweep_topics")


def comes_again_after_its_lapse(ns: Namespace) -> None:
    ns.lapse("b2")
    ns.heartbeat("b2")


def changed(ns: Namespace) -> None:
    ns.register(
        "b2", topics={"T1": "1,1,6,0", "T4": "8,8,6,0", "T7": "2,2,6,0"}, version=2, zone="y", ha="h:7"
    )


def said_of_both_names(ns: Namespace) -> None:
    """Of an address under two names, of which one then goes."""
    ns.register("b3", at=address("b2"), ha="h:8", version=4)
    ns.unregister("b3", at=address("b2"))


def by_operators(ns: Namespace) -> None:
    ns.run(wipe_write_perm(ns.keys, "b1", origin()))
    ns.run(delete_topic(ns.keys, "T1", "", origin()))
    ns.run(delete(ns.keys, "ORDER_TOPIC_CONFIG", "T1", origin()))
    ns.run(put(ns.keys, "ORDER_TOPIC_CONFIG", "T2", "b2:1", origin()))
    ns.run(put(ns.keys, "other", "k", "v", origin()))
    ns.run(update(ns.keys, {"a": "2", "b": "1"}, origin()))


def other_drains(ns: Namespace) -> None:
    ns.run(undrain(ns.keys, "b2", origin()))
    ns.run(undrain(ns.keys, "b4", origin()))
    ns.run(drain(ns.keys, "b1", Drain("bob", "moves"), origin()))
    ns.register("b5")
    ns.run(drain(ns.keys, "b5", Drain("bob", "moves"), origin()))
    ns.unregister("b5")


def outage(ns: Namespace) -> None:
    ns.silent_for(60_000)
    ns.tick()


@pytest.mark.parametrize(
    "change",
    [
        new_broker,
        new_member,
        all_gone,
        gone_and_back,
        gone_and_back_before_it_is_cleaned_up,
        comes_again_after_its_lapse,
        changed,
        said_of_both_names,
        by_operators,
        other_drains,
        outage,
    ],
)
def test_a_change_at_any_place_of_a_round(
    ns: Namespace, smallest: None, change: Callable[[Namespace], None]
) -> None:
    populate(ns)
    asked(ns)
    count = ns.run(slices(ns.keys)).slices
    assert count > 12
    ns.store.flushall()
    for place in range(count):
        own = Namespace(ns.store, Keys(f"place-{place}"))
        populate(own)
        asked(own)
        own.run(slices(own.keys, place))
        change(own)
        own.run(slices(own.keys))
        own.clean_up()
        events = own.entries()
        begin = scopes(events).index("begin")
        for cut in {begin, begin // 2}:
            assert newcomers(events[cut:]).whole
            assert_replays(own.store, own.keys, newcomers(events[cut:]))
        own.check()


def test_a_large_table_that_comes_between_the_slices(
    ns: Namespace, smallest: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slices under a claim are in no round, and what follows the commit has entries of its own."""
    monkeypatch.setattr("registry.queue_data.slices.TOPICS_MAX", 2)
    monkeypatch.setattr("registry.registration.write.COMMIT_MAX_BYTES", 60)
    ns.register("b2")
    asked(ns)
    ns.run(slices(ns.keys, 1))
    coming = Stepped(
        register(ns.keys, registration("b1", topics=[f"T{n}" for n in range(12)]), origin()), ns.store
    )
    while coming.request is not None:
        coming.step()
        ns.run(slices(ns.keys, 1))
        if not ns.store.hexists(ns.keys.events_asked, "request"):
            asked(ns)
    coming.finish()
    ns.run(slices(ns.keys))
    events = ns.entries()
    begins = [number for number, scope in enumerate(scopes(events)) if scope == "begin"]
    assert len(begins) > 2
    for begin in begins:
        assert_replays(ns.store, ns.keys, newcomers(events[begin:]))


# -- streams that are lost


def test_a_lost_stream_is_followed_by_a_round(ns: Namespace, smallest: None) -> None:
    populate(ns)
    before = replay(Tables(), ns.entries())
    ns.store.delete(ns.keys.events)
    ns.register("b1", topics=("T1", "T9"), version=2)
    assert ns.run(slices(ns.keys)).ended == 1
    events = ns.entries()
    assert (events[0].kind, events[0].cause) == ("stream_started", "stream_lost")
    assert {event.cause for event in events if event.kind == "checkpoint"} == {"start"}
    assert not replay(before, events[:-1]).whole
    for known in (before, UNKNOWN, Tables()):
        assert replay(known, events).whole
        assert_replays(ns.store, ns.keys, replay(known, events))
    assert ns.run(slices(ns.keys)).slices == 0
    ns.rewritten = True


def test_a_round_that_finds_the_stream_gone_begins_it(ns: Namespace) -> None:
    ns.register()
    ns.store.delete(ns.keys.events)
    events = a_round(ns)
    assert scopes(events)[:2] == ["stream_started", "begin"]
    assert (events[0].cause, events[1].cause) == ("stream_lost", "start")
    assert_replays(ns.store, ns.keys, replay(Tables(), events))
    assert ns.run(slices(ns.keys)).slices == 0


@pytest.mark.parametrize("written", [True, False])
def test_a_round_whose_stream_is_lost_begins_again(ns: Namespace, smallest: None, written: bool) -> None:
    populate(ns)
    asked(ns)
    ns.run(slices(ns.keys, 5))
    ns.store.delete(ns.keys.events)
    if written:
        ns.register("b9")
    assert ns.run(slices(ns.keys)).ended == 1
    events = ns.entries()
    assert scopes(events).count("begin") == 1
    assert_replays(ns.store, ns.keys, replay(Tables(), events))


def test_settings_alone_are_a_round(ns: Namespace) -> None:
    ns.run(update(ns.keys, {"a": "1"}, origin()))
    ns.store.delete(ns.keys.events, ns.keys.events_meta)
    ns.run(put(ns.keys, "n", "k", "v", origin()))
    assert ns.run(slices(ns.keys)).ended == 1
    assert ns.entries()[0].cause == "stream_lost"
    assert_replays(ns.store, ns.keys, replay(Tables(), ns.entries()))


def test_an_emptied_store_needs_no_round(ns: Namespace, smallest: None) -> None:
    populate(ns)
    asked(ns)
    ns.run(slices(ns.keys, 5))
    before = replay(Tables(), ns.entries())
    ns.store.flushall()
    ns.next_ms()
    ns.register("b1")
    assert ns.run(slices(ns.keys)).slices == 0
    events = ns.entries()
    assert events[0].cause == "empty_store"
    assert replay(before, events).whole
    assert_replays(ns.store, ns.keys, replay(before, events))


@pytest.fixture
def own_store(tmp_path: Path, store: EmbeddedStore) -> Iterator[EmbeddedStore]:
    """A store that a test may kill; it keeps what was saved last."""
    own = EmbeddedStore(tmp_path, keep=False)
    own.start()
    yield own
    own.stop()


@pytest.mark.parametrize("saved_at", [0, 6])
def test_acknowledged_writes_that_a_failover_lost(
    own_store: EmbeddedStore, saved_at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader of entries that a failover lost notices, requests a round and is whole
    again; a round under way goes on."""
    monkeypatch.setattr("registry.events.checkpoint.SLICE", SMALLEST)
    with connect(own_store.url) as store:
        ns = Namespace(store)
        populate(ns)
        asked(ns)
        ns.run(slices(ns.keys, saved_at))
        store.save()
        ns.register("b7")
        ns.unregister("b2")
        ns.run(slices(ns.keys, 3))
        seen = replay(Tables(), ns.entries())
        last = ns.entries()[-1].id
        own_store.child.signal(signal.SIGKILL)
        own_store.child.end()
    own_store.start()
    with connect(own_store.url) as store:
        ns = Namespace(store)
        assert ns.entries()[-1].id < last
        assert {"b2"} == set(replay(Tables(), ns.entries()).living()) - set(seen.living())
        ns.register("b8")
        with pytest.raises(ReplayError, match="follows"):
            replay(seen, [event for event in ns.entries() if event.id > last])
        ns.run(slices(ns.keys))
        ns.check()
        position = EventId.parse(asked(ns))
        ns.run(slices(ns.keys))
        events = [event for event in ns.entries() if event.id > position]
        for known in (seen.incomplete(), UNKNOWN):
            assert_replays(ns.store, ns.keys, replay(known, events))


# -- a round proves a replay


def test_a_round_proves_whole_tables(ns: Namespace, smallest: None) -> None:
    populate(ns)
    ns.unregister("b2")
    known = replay(Tables(), ns.entries())
    after = replay(known, a_round(ns))
    assert after.round is None
    assert (after.brokers, after.members) == (known.brokers, known.members)


@pytest.mark.parametrize(
    ("spoil", "part"),
    [
        pytest.param(
            lambda ns: ns.store.hset(ns.keys.topics_of("b1"), "T1", "1,9,9,6,0"), "'topic'", id="topic"
        ),
        pytest.param(lambda ns: ns.store.hdel(ns.keys.topics_of("b1"), "T1"), "'topic'", id="topic gone"),
        pytest.param(lambda ns: ns.store.hdel(ns.keys.mappings_of("b1"), "T1"), "'mapping'", id="mapping"),
        pytest.param(lambda ns: ns.store.hset(ns.keys.broker("b1"), "zone", "x"), "'broker'", id="zone"),
        pytest.param(lambda ns: ns.store.srem(ns.keys.brokers, "b1"), "'broker'", id="broker gone"),
        pytest.param(
            lambda ns: ns.store.hset(ns.keys.member(f"c1:{address('b1')}"), "ha", "x"),
            "'member'",
            id="member",
        ),
        pytest.param(lambda ns: ns.store.hset(ns.keys.settings, "a", "x"), "'setting'", id="setting"),
        pytest.param(
            lambda ns: ns.store.hset(ns.keys.kv("ORDER_TOPIC_CONFIG"), "T1", "x"), "'kv'", id="KV value"
        ),
        pytest.param(lambda ns: ns.store.hset(ns.keys.drains, "b4", "x"), "'drain'", id="drain"),
        pytest.param(
            lambda ns: ns.store.hset(ns.keys.events_meta, mapping={"hold_from_ms": 1, "hold_until_ms": 2}),
            "'hold'",
            id="hold",
        ),
    ],
)
def test_a_round_finds_a_change_without_an_entry(
    ns: Namespace, spoil: Callable[[Namespace], None], part: str
) -> None:
    populate(ns)
    spoil(ns)
    events = a_round(ns)
    with pytest.raises(CheckpointDiffers, match=part) as found:
        replay(Tables(), ns.entries())
    checkpoint = found.value.tables
    assert checkpoint == newcomers(events)
    assert (checkpoint.whole, checkpoint.seq) == (True, ns.entries()[-1].number("seq"))
    ns.store.flushall()


def test_a_round_that_is_not_all_there_makes_nothing_whole(ns: Namespace, smallest: None) -> None:
    populate(ns)
    events = a_round(ns)
    assert not newcomers(events[1:]).whole  # its begin came before
    for before, after in pairwise(events[:-1]):
        rest = events[events.index(after) + 1 :]
        with pytest.raises(ReplayError, match="follows"):
            replay(newcomers(events[: events.index(before) + 1]), rest)
    end = events[-1]
    wrong = Event(end.id, {**end.fields, "entries": "3"})
    with pytest.raises(ReplayError, match="3 entries of round 1"):
        replay(newcomers(events[:-1]), [wrong])


def test_a_replay_goes_on_after_a_hole(ns: Namespace, smallest: None) -> None:
    populate(ns)
    events = ns.entries()
    known = replay(Tables(), events[:3])
    ns.register("b1", topics=("T1", "T8"), version=7, ha="h:9")
    ns.unregister("b2")
    after = replay(known.incomplete(), ns.entries()[8:])
    assert not after.whole
    assert set(after.brokers["b1"].topics) > {"T8"}  # what is events of what is known is taken
    assert_replays(ns.store, ns.keys, replay(after, a_round(ns)))
