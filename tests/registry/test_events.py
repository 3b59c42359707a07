"""Each transition is one entry, whole and in order; what changes nothing is none."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from registry.events.entry import Event
from registry.growth.limits import DEFAULT_LIMITS
from registry.kv import delete, put
from registry.plans import Origin
from registry.queue_data.rewrite import wipe_write_perm
from registry.registration.register import register
from registry.settings import announce_start, update
from registry.topics import delete_topic
from tests.registry.brokers import address, mapping_info, origin, registration
from tests.registry.namespace import Namespace

A0, A1 = address("b1"), address("b1", 1)
ELSEWHERE = "127.77.0.1:10911"
COMMON = {"v", "kind", "cause", "inc", "seq", "part", "op", "actor", "peer"}


def own(event: Event) -> dict[str, str]:
    """The fields of an entry's kind."""
    return {name: value for name, value in event.fields.items() if name not in COMMON}


def last(ns: Namespace, count: int = 1) -> list[Event]:
    """The newest entries; there are no others since the last call."""
    events = ns.new_entries()
    assert len(events) == count
    return events


def test_a_first_registration_on_an_empty_store(ns: Namespace) -> None:
    asked = Origin(op="w1-1", actor="token:alice", peer="127.0.0.1:50112")
    ns.run(register(ns.keys, registration(ha="127.1.1.1:10912", zone="z", filters=("f:1",)), asked))
    started, registered, topics = last(ns, 3)
    inc = started.get("inc")
    for number, event in enumerate((started, registered, topics), start=1):
        assert {name: event.get(name) for name in COMMON - {"kind", "cause"}} == {
            "v": "1",
            "inc": inc,
            "seq": str(number),
            "part": f"{number}/3",
            "op": "w1-1",
            "actor": "token:alice",
            "peer": "127.0.0.1:50112",
        }
    assert abs(int(inc) - ns.now_ms()) < 5000
    assert (started.kind, started.cause, own(started)) == ("stream_started", "empty_store", {})
    assert (registered.kind, registered.cause) == ("broker_registered", "first")
    assert own(registered) == {
        "cluster": "c1",
        "broker": "b1",
        "id": "0",
        "addr": A0,
        "epoch": "1",
        "addrs": f'{{"0":"{A0}"}}',
        "ha": "127.1.1.1:10912",
        "timeout_ms": "120000",
        "filters": '["f:1"]',
        "zone": "z",
        "acting": "0",
        "dv": "0:1700000000000:1",
        "topics": "0",
    }
    assert (topics.kind, topics.cause) == ("topics_changed", "register")
    assert own(topics) == {
        "cluster": "c1",
        "broker": "b1",
        "epoch": "1",
        "dv": "0:1700000000000:1",
        "rows": '[["b1","","8,8,6,0",["T1","T2"]]]',
        "count": "2",
    }


VERSION_2 = {
    "cluster": "c1",
    "broker": "b1",
    "id": "0",
    "addr": A0,
    "epoch": "1",
    "dv": "0:1700000000000:2",
    "dv_before": "0:1700000000000:1",
}
"""What the entry says of a second registration that changes the version of the member."""


def test_rows_group_topics_by_what_they_become(ns: Namespace) -> None:
    ns.register(topics={"T1": "8,8,6,0", "T2": "8,8,6,0", "T3": "4,4,6,0"})
    ns.new_entries()
    ns.register(topics={"T1": "1,1,6,0", "T2": "1,1,6,0", "T3": "4,4,6,0", "T4": "4,4,6,0"}, version=2)
    (changed,) = ns.new_entries()
    rows = [["b1", "8,8,6,0", "1,1,6,0", ["T1", "T2"]], ["b1", "", "4,4,6,0", ["T4"]]]
    assert own(changed) == {**VERSION_2, "rows": json.dumps(rows, separators=(",", ":")), "count": "3"}


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({}, id="a version alone"),
        pytest.param({"topics": {"T1": "1,1,6,0", "T2": "8,8,6,0"}}, id="with topics"),
        pytest.param({"mappings": [mapping_info("T1")]}, id="with static topics"),
        pytest.param(
            {"topics": {"T1": "1,1,6,0", "T2": "8,8,6,0"}, "mappings": [mapping_info("T1")]}, id="both"
        ),
        pytest.param({"topics": {f"T{number}": "4,4,6,0" for number in range(1, 1200)}}, id="in slices"),
        pytest.param({"ha": "h:1", "topics": {"T1": "1,1,6,0", "T2": "8,8,6,0"}}, id="with an attribute"),
    ],
)
def test_one_entry_has_the_version_before(ns: Namespace, more: dict[str, Any]) -> None:
    ns.register()
    ns.new_entries()
    ns.register(version=2, **more)
    events = ns.new_entries()
    (versioned,) = (event for event in events if "dv_before" in event.fields)
    assert own(versioned).items() >= VERSION_2.items()
    assert (versioned.kind == "broker_updated") is (not more or "ha" in more)
    ns.check()


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param({}, {"ha": "h:1"}, {"ha": "h:1", "ha_before": ""}, id="HA address"),
        pytest.param({"ha": "h:1"}, {}, {"ha": "", "ha_before": "h:1"}, id="HA address gone"),
        pytest.param({"zone": "a"}, {"zone": "b"}, {"zone": "b", "zone_before": "a"}, id="zone"),
        pytest.param({"zone": "a"}, {}, {"zone": "", "zone_before": "a"}, id="zone gone"),
        pytest.param({}, {"acting": True}, {"acting": "1", "acting_before": "0"}, id="acting"),
        pytest.param({"acting": None}, {"acting": False}, {}, id="acting, not known before"),
        pytest.param(
            {}, {"timeout_ms": 5000}, {"timeout_ms": "5000", "timeout_ms_before": "120000"}, id="timeout"
        ),
        pytest.param(
            {"filters": ("f:1",)},
            {"filters": ()},
            {"filters": "[]", "filters_before": '["f:1"]'},
            id="filter servers gone",
        ),
        pytest.param({"filters": ("f:1",)}, {"filters": None}, {}, id="filter servers left alone"),
    ],
)
def test_what_a_member_changes_of_itself(
    ns: Namespace, before: dict[str, Any], after: dict[str, Any], expected: dict[str, str]
) -> None:
    ns.register(**before)
    ns.new_entries()
    ns.register(**after)
    subject = {"cluster": "c1", "broker": "b1", "id": "0", "addr": A0, "epoch": "1"}
    events = ns.new_entries()
    assert [own(event) for event in events] == ([subject | expected] if expected else [])
    assert {event.kind for event in events} <= {"broker_updated"}


def test_a_removal_has_the_time_of_the_last_heartbeat(ns: Namespace) -> None:
    ns.register(timeout_ms=60_000)
    lease = int(ns.store.zscore(ns.keys.leases, f"c1:{A0}"))
    ns.new_entries()
    ns.unregister()
    (removed,) = last(ns)
    assert own(removed) == {
        "cluster": "c1",
        "broker": "b1",
        "id": "0",
        "addr": A0,
        "epoch": "1",
        "addrs": "{}",
        "since_ms": str(lease - 60_000),
        "last_seen_ms": str(lease - 60_000),
        "lease_ms": str(lease),
        "topics": "2",
        "dv": "0:1700000000000:1",
        "drained": "0",
    }


def test_a_member_of_another_cluster_names_that_of_its_group(ns: Namespace) -> None:
    ns.register()
    ns.new_entries()
    ns.register("b1", 1, cluster="a:b%")
    conflict, joined = last(ns, 2)
    assert (conflict.kind, conflict.cause, conflict.get("action")) == (
        "conflict_seen",
        "two_clusters",
        "accepted",
    )
    assert conflict.json("holder", dict[str, str]) == {"cluster": "c1"}
    assert (joined.get("cluster"), joined.get("group_cluster"), joined.cause) == ("a:b%", "c1", "join")


def causes(ns: Namespace) -> list[str]:
    return [f"{event.kind.removeprefix('broker_')} {event.cause}" for event in ns.new_entries()]


def second_name(ns: Namespace) -> None:
    ns.register("b2", at=A0)


def takes_over(ns: Namespace) -> None:
    ns.register(at=ELSEWHERE)


def switches(ns: Namespace) -> None:
    ns.register("b1", 1, at=A0, acting=False)


def lower_state(ns: Namespace) -> None:
    ns.register(version=1, state=3)
    ns.new_entries()
    ns.register(at=ELSEWHERE, state=2)


def joins_and_takes_over_lapsed(ns: Namespace) -> None:
    ns.register("b1", 1)
    ns.lapse("b1", 1)
    ns.new_entries()
    ns.register("b1", 2, at=A1)


def static_topics(ns: Namespace) -> None:
    ns.register(version=2, mappings=[mapping_info("T1")])


def acting_master_gone(ns: Namespace) -> None:
    ns.register(acting=True)
    ns.register("b1", 1, acting=True)
    ns.new_entries()
    ns.unregister()


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        pytest.param(
            second_name,
            ["conflict_seen two_names", "registered first", "topics_changed register"],
            id="a second name of an address",
        ),
        pytest.param(takes_over, ["removed replaced", "registered takeover"], id="takeover"),
        pytest.param(switches, ["removed switched", "registered switch"], id="switch"),
        pytest.param(lower_state, ["conflict_seen state_version"], id="a lower state version"),
        pytest.param(
            joins_and_takes_over_lapsed, ["removed expired", "registered join"], id="own lapse, another id"
        ),
        pytest.param(static_topics, ["mappings_changed register"], id="static topics"),
        pytest.param(
            acting_master_gone,
            ["removed unregistered", "topics_changed acting"],
            id="a group left without master",
        ),
    ],
)
def test_entries_in_order(ns: Namespace, what: Callable[[Namespace], None], expected: list[str]) -> None:
    ns.register()
    ns.new_entries()
    what(ns)
    assert causes(ns) == expected


def test_the_entry_of_a_refused_newcomer_names_the_holder(ns: Namespace) -> None:
    ns.register(state=3)
    ns.new_entries()
    answer = ns.register(at=ELSEWHERE, state=2)
    (conflict,) = last(ns)
    assert answer.event_id == str(conflict.id)
    assert conflict.json("holder", dict[str, str]) == {"addr": A0, "cluster": "c1"}
    assert (conflict.get("addr"), conflict.get("action")) == (ELSEWHERE, "refused")


@pytest.mark.parametrize("names", [1, 2, 16])
def test_one_entry_tells_of_all_other_names_of_an_address(ns: Namespace, names: int) -> None:
    others = sorted(f"b{number}" for number in range(1, names + 1))
    limits = replace(DEFAULT_LIMITS, max_names_of_member=99)
    for name in others:
        ns.run(register(ns.keys, registration(name, at=A0), origin(), limits=limits))
    ns.new_entries()
    ns.run(register(ns.keys, registration("new", at=A0), origin(), limits=limits))
    (conflict,) = [event for event in ns.new_entries() if event.kind == "conflict_seen"]
    if names == 1:
        assert conflict.json("holder", dict[str, str]) == {"broker": "b1"}
        assert conflict.get("count") == ""
    else:
        assert conflict.json("holder", dict[str, Any]) == {"broker": others[0], "brokers": others}
        assert conflict.get("count") == str(names)


def test_an_entry_names_the_first_of_very_many_names(ns: Namespace) -> None:
    limits = replace(DEFAULT_LIMITS, max_names_of_member=99)
    for number in range(40):
        ns.run(register(ns.keys, registration(f"b{number:02}", at=A0), origin(), limits=limits))
    conflict = [event for event in ns.entries() if event.kind == "conflict_seen"][-1]
    assert len(conflict.json("holder", dict[str, Any])["brokers"]) == 16
    assert (conflict.get("count"), len(ns.entries())) == ("39", 1 + 2 * 40 + 39)


def test_entries_have_mapping_infos_unchanged(ns: Namespace) -> None:
    ns.register(mappings=[mapping_info("T1")])
    ns.new_entries()
    ns.register(mappings=[mapping_info("T1", epoch=2)], version=2)
    (changed,) = last(ns, 1)
    name, topic, before, after = changed.json("rows", list[Any])[0]
    assert (name, topic, before["epoch"], after["epoch"]) == ("b1", "T1", 1, 2)
    assert (changed.get("topic"), changed.get("count")) == ("T1", "1")


def test_a_deletion_of_several_brokers_is_one_entry(ns: Namespace) -> None:
    ns.register("b1")
    ns.register("b2")
    ns.new_entries()
    ns.run(delete_topic(ns.keys, "T1", "", origin()))
    (deleted,) = last(ns)
    assert sorted(deleted.json("rows", list[Any])) == [
        ["b1", "8,8,6,0", "", ["T1"]],
        ["b2", "8,8,6,0", "", ["T1"]],
    ]
    assert {name: deleted.get(name) for name in ("topic", "count", "broker", "epoch", "cause")} == {
        "topic": "T1",
        "count": "2",
        "broker": "",
        "epoch": "",
        "cause": "topic_delete",
    }


def test_a_deletion_of_one_broker_names_it(ns: Namespace) -> None:
    ns.register("b/1")
    ns.new_entries()
    ns.run(delete_topic(ns.keys, "T1", "", origin()))
    (deleted,) = last(ns)
    assert (deleted.get("broker"), deleted.get("epoch")) == ("b/1", "1")
    assert deleted.json("rows", list[Any]) == [["b/1", "8,8,6,0", "", ["T1"]]]


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        pytest.param(["a"], [("put", None, "a")], id="put"),
        pytest.param(["a", "a"], [("put", None, "a")], id="put again"),
        pytest.param(["a", ""], [("put", None, "a"), ("put", "a", "")], id="an empty value is one"),
        pytest.param(["a", None], [("put", None, "a"), ("delete", "a", None)], id="delete"),
        pytest.param([None, None], [], id="delete nothing"),
    ],
)
def test_kv_changes(
    ns: Namespace, steps: list[str | None], expected: list[tuple[str, str | None, str | None]]
) -> None:
    for value in steps:
        if value is None:
            ns.run(delete(ns.keys, "n", "k", origin()))
        else:
            ns.run(put(ns.keys, "n", "k", value, origin()))
    events = [event for event in ns.new_entries() if event.kind == "kv_changed"]
    assert [
        (event.cause, event.fields.get("before"), event.fields.get("after")) for event in events
    ] == expected
    assert all((event.get("kv_ns"), event.get("key")) == ("n", "k") for event in events)


def test_entries_have_large_values_by_their_size(ns: Namespace) -> None:
    ns.run(put(ns.keys, "n", "k", "x" * 65_537, origin()))
    entry = ns.new_entries()[-1]
    assert (entry.get("after_bytes"), "after" in entry.fields) == ("65537", False)
    ns.rewritten = True  # the entries tell of it, but not what it is


def test_settings_changes_hide_secrets(ns: Namespace) -> None:
    ns.run(update(ns.keys, {"a": "1", "redisPassword": "2"}, origin()))
    ns.run(update(ns.keys, {"a": "1", "redisPassword": "2"}, origin()))
    (entry,) = [event for event in ns.new_entries() if event.kind == "settings_changed"]
    assert entry.json("changes", dict[str, Any]) == {"a": [None, "1"], "redisPassword": [None, "***"]}
    ns.rewritten = True  # what is secret cannot be replayed


def test_a_restart_does_not_undo_what_was_set(ns: Namespace) -> None:
    assert ns.run(announce_start(ns.keys, {"a": "1"}, origin())) == {"a": "1"}
    ns.run(update(ns.keys, {"a": "2"}, origin()))
    assert ns.run(announce_start(ns.keys, {"a": "1"}, origin())) == {"a": "2"}
    assert ns.run(announce_start(ns.keys, {"a": "3"}, origin())) == {"a": "3"}
    causes_of_settings = [event.cause for event in ns.new_entries() if event.kind == "settings_changed"]
    assert causes_of_settings == ["start", "update", "start"]


def test_a_lost_stream_begins_again(ns: Namespace) -> None:
    ns.register()
    ns.store.delete(ns.keys.events)
    ns.register(version=2)
    started, updated = (event for event in ns.new_entries())
    assert (started.kind, started.cause, started.get("seq")) == ("stream_started", "stream_lost", "1")
    assert (updated.get("inc"), updated.get("seq")) == (started.get("inc"), "2")
    ns.rewritten = True


def test_every_answer_names_the_last_entry_it_wrote(ns: Namespace) -> None:
    ids = [ns.register().event_id]
    ids.append(ns.register("b1", 1, acting=True).event_id)
    ids.append(ns.run(wipe_write_perm(ns.keys, "b1", origin())).event_id)
    ns.lapse()
    ids.append(ns.heartbeat().event_id)
    ids.append(ns.unregister().event_id)
    ids.append(ns.run(put(ns.keys, "n", "k", "v", origin())))
    written = [str(event.id) for event in ns.new_entries()]
    assert all(event_id in written for event_id in ids)
    assert ids == sorted(ids, key=written.index)
    assert ids[-1] == written[-1]


def test_steady_state_writes_nothing(ns: Namespace) -> None:
    ns.register()
    ns.register("b1", 1)
    ns.tick()
    length = ns.store.xlen(ns.keys.events)
    for _ in range(3):
        ns.register()
        ns.register("b1", 1)
        ns.heartbeat()
        ns.tick()
        ns.expire()
    assert ns.store.xlen(ns.keys.events) == length


def test_entry_ids_are_of_the_redis_clock(ns: Namespace) -> None:
    ns.register()
    assert all(re.fullmatch(r"\d{13}-\d+", str(event.id)) for event in ns.new_entries())
