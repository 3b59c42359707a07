"""Topic lists (206, 224, 311-313), and queue data set or deleted on the side (217, 216, 205, 327)."""

from typing import Any

import pytest

from registry import topics
from registry.errors import BrokerBusy
from registry.long_work.scan import scan_pages
from registry.plans import Plan
from registry.queue_data.rewrite import Rewrite, Rewrites, add_write_perm, wipe_write_perm
from registry.topics import (
    FEW,
    UnitKind,
    all_topics,
    delete_topic,
    register_topic,
    topic_names_of,
    topics_of_cluster,
    unit_topics,
)
from rocketmq_remoting.route import QueueData
from tests.registry.brokers import PLAIN, origin
from tests.registry.namespace import Namespace
from tests.registry.steps import Stepped


def queues(*names: str, perm: int = 6) -> list[QueueData]:
    return [QueueData(name, 3, 3, perm, 0) for name in names]


def set_queues(ns: Namespace, topic: str, given: list[QueueData]) -> str:
    return ns.run(register_topic(ns.keys, topic, given, origin()))


def rows(ns: Namespace) -> list[str]:
    """The rows of the last entry of topics; more than one entry is an error."""
    (event,) = [event for event in ns.new_entries() if event.kind == "topics_changed"]
    return [event.cause, event.get("rows")]


@pytest.mark.parametrize(
    ("topic", "given", "stored"),
    [
        pytest.param("N", ["b1"], {"b1": "3,3,6,0"}, id="a new topic"),
        pytest.param("N", ["b1", "b2"], {"b1": "3,3,6,0", "b2": "3,3,6,0"}, id="of two brokers"),
        pytest.param("T1", ["b1"], {"b1": "3,3,6,0", "b2": PLAIN}, id="a known topic"),
        pytest.param("N", ["b1", "none", "b2"], {}, id="a new topic up to an unknown broker: nothing"),
        pytest.param(
            "T1",
            ["b1", "none", "b2"],
            {"b1": "3,3,6,0", "b2": PLAIN},
            id="a known topic up to an unknown broker: what stands before it",
        ),
        pytest.param("N", ["none"], {}, id="of an unknown broker"),
        pytest.param("N", [], {}, id="no queue data"),
    ],
)
def test_queue_data_is_set(ns: Namespace, topic: str, given: list[str], stored: dict[str, str]) -> None:
    ns.register("b1")
    ns.register("b2")
    set_queues(ns, topic, queues(*given))
    found = {name: ns.topics(name).get(topic) for name in ("b1", "b2")}
    assert {name: text for name, text in found.items() if text} == stored


def test_the_last_queue_data_of_a_broker_wins(ns: Namespace) -> None:
    ns.register()
    set_queues(ns, "N", [*queues("b1", perm=4), *queues("b1")])
    assert ns.topics()["N"] == "3,3,6,0"


def test_setting_the_same_again_says_nothing(ns: Namespace) -> None:
    ns.register()
    set_queues(ns, "N", queues("b1"))
    ns.new_entries()
    assert (set_queues(ns, "N", queues("b1")), ns.new_causes()) == ("", [])


def test_a_topic_of_a_broker_that_is_being_cleaned_up_is_new(ns: Namespace) -> None:
    ns.register()
    ns.register("b2", topics=())
    ns.store.hset(ns.keys.route("N"), "gone", "99,1,1,6,0")
    set_queues(ns, "N", queues("b2", "none"))
    assert ns.topics("b2") == {}
    ns.store.delete(ns.keys.route("N"))


@pytest.mark.parametrize(
    ("cluster", "left"),
    [
        pytest.param("", set(), id="everywhere"),
        pytest.param("c1", {"b2"}, id="in one cluster"),
        pytest.param("c2", {"b1"}, id="in the other"),
        pytest.param("none", {"b1", "b2"}, id="in an unknown cluster"),
    ],
)
def test_a_topic_is_deleted(ns: Namespace, cluster: str, left: set[str]) -> None:
    ns.register("b1")
    ns.register("b2", cluster="c2")
    event_id = ns.run(delete_topic(ns.keys, "T1", cluster, origin()))
    assert {name for name in ("b1", "b2") if "T1" in ns.topics(name)} == left
    assert bool(event_id) == (len(left) < 2)
    assert ("T1" in ns.run(all_topics(ns.keys))) == bool(left)


def test_deleting_it_again_says_nothing(ns: Namespace) -> None:
    ns.register()
    ns.run(delete_topic(ns.keys, "T1", "", origin()))
    ns.new_entries()
    assert (ns.run(delete_topic(ns.keys, "T1", "", origin())), ns.new_causes()) == ("", [])


def test_a_deleted_topic_returns_with_the_next_registration(ns: Namespace) -> None:
    ns.register()
    ns.run(delete_topic(ns.keys, "T1", "", origin()))
    ns.register()
    assert set(ns.topics()) == {"T1", "T2"}


MIXED = {"RW": "8,8,6,0", "R": "8,8,4,0", "W": "8,8,2,0", "ALL": "8,8,15,3", "NONE": "8,8,0,0"}


def test_the_write_bit_is_wiped(ns: Namespace) -> None:
    ns.register(topics=MIXED)
    ns.register("b2")
    ns.new_entries()
    done = ns.run(wipe_write_perm(ns.keys, "b1", origin()))
    assert done.count == len(MIXED)
    assert ns.topics() == {**MIXED, "RW": "8,8,4,0", "W": "8,8,0,0", "ALL": "8,8,13,3"}
    assert ns.topics("b2")["T1"] == PLAIN
    assert rows(ns)[0] == "wipe"


def test_every_permission_is_restored_to_read_and_write(ns: Namespace) -> None:
    ns.register(topics=MIXED)
    ns.new_entries()
    done = ns.run(add_write_perm(ns.keys, "b1", origin()))
    assert done.count == len(MIXED)
    assert ns.topics() == {**dict.fromkeys(MIXED, "8,8,6,0"), "ALL": "8,8,6,3"}
    assert rows(ns)[0] == "restore"


def test_repeated_and_vain_rewrites_count_and_say_nothing(ns: Namespace) -> None:
    ns.register()
    ns.run(wipe_write_perm(ns.keys, "b1", origin()))
    ns.new_entries()
    done = ns.run(wipe_write_perm(ns.keys, "b1", origin()))
    unknown = ns.run(wipe_write_perm(ns.keys, "none", origin()))
    assert (done.count, done.event_id, unknown.count, ns.new_causes()) == (2, "", 0, [])


def test_a_rewrite_of_a_large_table_is_slices_of_one_origin(ns: Namespace) -> None:
    ns.register(topics=[f"T{number}" for number in range(1200)])
    ns.new_entries()
    assert ns.run(wipe_write_perm(ns.keys, "b1", origin())).count == 1200
    events = ns.new_entries()
    assert [event.get("count") for event in events] == ["500", "500", "200"]
    assert len({event.get("op") for event in events}) == 1
    assert {event.get("part") for event in events} == {""}


@pytest.mark.parametrize("after", range(7))
def test_a_registration_between_two_slices_decides(ns: Namespace, after: int) -> None:
    many = [f"T{number}" for number in range(1200)]
    ns.register(topics=many)
    plan = Stepped(wipe_write_perm(ns.keys, "b1", origin()), ns.store)
    for _ in range(after):
        plan.step()
    ns.register(topics=many, version=2)
    plan.finish()
    expected = "8,8,6,0" if after == 6 else "8,8,4,0"
    assert set(ns.topics().values()) == {expected}


def test_a_broker_that_keeps_changing_is_given_up(ns: Namespace) -> None:
    ns.register()
    plan = Stepped(wipe_write_perm(ns.keys, "b1", origin()), ns.store)
    while plan.until("write_slice"):
        ns.store.hincrby(ns.keys.broker("b1"), "gen", 1)
        plan.step()
    with pytest.raises(BrokerBusy):
        plan.finish()


def in_line(ns: Namespace, asked: str) -> list[Rewrite]:
    """Have rewrites asked for at once: w to wipe, r to restore."""
    rewrites = Rewrites()
    perms = {"w": rewrites.wipe_write_perm, "r": rewrites.add_write_perm}
    plans = [perms[one](ns.keys, "b1", origin()) for one in asked]
    for plan in plans:
        next(plan)  # each is in line
    return [run_rest(plan, ns) for plan in plans]


def run_rest(plan: Plan[Rewrite], ns: Namespace) -> Rewrite:
    """Run a plan that has the place for which it waited."""

    def rest() -> Plan[Rewrite]:
        request, reply = None, None
        try:
            while True:
                request = plan.send(reply)
                reply = yield request
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]

    return ns.run(rest())


@pytest.mark.parametrize("asked", ["w", "r", "ww", "rr", "wr", "rw", "wrw", "rwr", "wwrrww"])
def test_rewrites_in_line_do_at_once_what_they_would_do_one_by_one(ns: Namespace, asked: str) -> None:
    ns.register(topics=MIXED)
    for one in asked:
        ns.run((wipe_write_perm if one == "w" else add_write_perm)(ns.keys, "b1", origin()))
    expected = ns.topics()
    ns.register(topics=MIXED, version=2)
    ns.new_entries()
    done = in_line(ns, asked)
    assert ns.topics() == expected
    assert [each.count for each in done] == [len(MIXED)] * len(asked)
    assert len({each.event_id for each in done}) == 1
    assert ns.new_causes() == [f"topics_changed {'restore' if asked[-1] == 'r' else 'wipe'}"]


@pytest.mark.parametrize("few", [0, FEW])
def test_lists(ns: Namespace, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics, "FEW", few)
    ns.register("b1", topics=("T1", "T2"))
    ns.register("b2", topics=("T2", "T3"), cluster="c2")
    ns.register("b2", 1, cluster="c3")
    assert ns.run(all_topics(ns.keys)) == ("T1", "T2", "T3")
    found = [ns.run(topics_of_cluster(ns.keys, name)) for name in ("c1", "c2", "c3", "none")]
    assert found == [("T1", "T2"), ("T2", "T3"), ("T2", "T3"), ()]


@pytest.mark.parametrize(("of_the_last", "read"), [((), 1), (("Last",), FEW + 1)])
def test_of_many_brokers_it_reads_no_further_than_it_has_to(
    ns: Namespace, of_the_last: tuple[str, ...], read: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"b{number}" for number in range(FEW + 1)]
    for name in names:
        ns.register(name, topics=("T1", "T2", *(of_the_last if name == names[-1] else ())))
    scanned: list[str] = []

    def noted(key: str, *rest: Any) -> Plan[None]:
        scanned.append(key)
        return scan_pages(key, *rest)

    monkeypatch.setattr(topics, "scan_pages", noted)
    assert ns.run(topic_names_of(ns.keys, names)) == {"T1", "T2", *of_the_last}
    assert len(scanned) == read


def test_unit_topics_by_the_flag_of_the_first_queue_data(ns: Namespace) -> None:
    ns.register("b2", topics={f"F{flag}": f"8,8,6,{flag}" for flag in range(4)} | {"X": "8,8,6,3"})
    ns.register("b1", topics={"X": "8,8,6,0", "Y": PLAIN})
    found = [ns.run(unit_topics(ns.keys, kind)) for kind in UnitKind]
    assert found == [("F1", "F3"), ("F2", "F3"), ("F2",)]
