"""How members leave: by 104, with their last connection, at the end of their lease; and what they leave behind."""

import pytest

from registry.registration import register
from registry.removal import Orphan, expire, let_go, lose, settle_owed, unregister
from registry.rewrite import add_write_perm
from registry.slices import TOPICS_MAX
from tests.registry.brokers import PLAIN, act, address, mapping_info, registration
from tests.registry.namespace import Namespace
from tests.registry.steps import Stepped

A0, A1 = address("b1"), address("b1", 1)
MARK = "w1/1"


def orphan(ns: Namespace, number: int = 0, mark: str = MARK) -> Orphan | None:
    return ns.run(let_go(ns.keys, "c1", address("b1", number), mark))


def test_the_last_member_takes_everything_with_it(ns: Namespace) -> None:
    ns.register(mappings=[mapping_info("T1")], filters=("f:1",))
    assert ns.unregister().brokers == ("b1",)
    left = {key.removeprefix(ns.keys.prefix) for key in ns.store.scan_iter("*")}
    assert left == {"epoch", "events", "events:meta"}


@pytest.mark.parametrize("topics", [1200, 3])
def test_the_lists_are_clean_when_104_is_answered(ns: Namespace, topics: int) -> None:
    ns.register(topics=[f"T{number}" for number in range(topics)])
    ns.register("b2")
    ns.unregister()
    assert ns.store.smembers(ns.keys.topics) == {"T1", "T2"}


@pytest.mark.parametrize(
    ("number", "at", "left"),
    [
        pytest.param(0, A0, {1: A1}, id="master"),
        pytest.param(1, A1, {0: A0}, id="slave"),
        pytest.param(7, A0, {1: A1}, id="another id than it has: by address"),
        pytest.param(0, "127.9.9.9:1", {0: A0, 1: A1}, id="an unknown address in the place of a member"),
    ],
)
def test_an_address_is_taken_out(ns: Namespace, number: int, at: str, left: dict[int, str]) -> None:
    ns.register()
    ns.register("b1", 1)
    ns.unregister(number=number, at=at)
    assert ns.addrs() == left


def test_an_id_is_not_needed(ns: Namespace) -> None:
    ns.register()
    ns.run(unregister(ns.keys, "c1", A0, "b1", None, act()))
    assert ns.addrs() == {}


def test_an_address_leaves_one_name_and_keeps_the_other(ns: Namespace) -> None:
    ns.register()
    ns.register("b2", at=A0)
    ns.unregister()
    assert (ns.addrs(), ns.addrs("b2")) == ({}, {0: A0})
    assert ns.store.smembers(ns.keys.cluster("c1")) == {"b2"}


def test_what_stays_keeps_its_countdown(ns: Namespace) -> None:
    ns.register()
    ns.register("b2", at=A0)
    member = f"c1:{A0}"
    end = ns.now_ms() + 50_000
    ns.store.zadd(ns.keys.leases, {member: end})
    ns.store.set(ns.keys.alive(member), end, pxat=end)
    ns.unregister("b2", at=A0)
    assert 45_000 < ns.store.pttl(ns.keys.alive(member)) <= 50_000


@pytest.mark.parametrize("times", [1, 2])
def test_repeated_104_of_nobody_says_nothing(ns: Namespace, times: int) -> None:
    ns.register("b2")
    ns.register()
    ns.unregister()
    ns.new_entries()
    for _ in range(times):
        assert ns.unregister().event_id == ""
    assert ns.told() == []


def test_a_late_104_never_takes_out_the_successor(ns: Namespace) -> None:
    ns.register()
    ns.register(at="127.9.9.9:1")
    ns.new_entries()
    ns.unregister()
    told = ns.new_entries()
    assert [f"{event.kind} {event.cause}" for event in told] == ["conflict_seen stale_unregister"]
    assert told[0].json("holder", dict[str, str]) == {"addr": "127.9.9.9:1", "cluster": "c1"}
    assert ns.addrs() == {0: "127.9.9.9:1"}


def test_an_orphan_is_lost(ns: Namespace) -> None:
    ns.register(owner=MARK)
    found = orphan(ns)
    assert found is not None
    ns.new_entries()
    assert ns.run(lose(ns.keys, found, "lost", act())).brokers == ("b1",)
    told = ns.new_entries()
    assert [f"{event.kind} {event.cause}" for event in told] == ["broker_removed lost"]
    assert told[0].number("closed_ms") == found.closed_ms


def test_an_owner_of_several_names_is_taken_out_of_all(ns: Namespace) -> None:
    ns.register(owner=MARK)
    ns.register("b2", at=A0, owner=MARK)
    found = orphan(ns)
    assert found is not None
    assert sorted(ns.run(lose(ns.keys, found, "closed", act())).brokers) == ["b1", "b2"]


@pytest.mark.parametrize("how", ["registers", "beats", "registers elsewhere", "has gone"])
def test_an_orphan_that_was_heard_of_again_stays(ns: Namespace, how: str) -> None:
    ns.register(owner=MARK)
    ns.store.zincrby(ns.keys.leases, -7, f"c1:{A0}")
    found = orphan(ns)
    assert found is not None
    if how == "registers":
        ns.register(owner="w1/2")
    elif how == "beats":
        ns.beat()
    elif how == "registers elsewhere":
        ns.register("b2", at=A0, owner="w1/2")
    else:
        ns.unregister()
        ns.register(owner="w1/2")
    ns.new_entries()
    ns.run(lose(ns.keys, found, "lost", act()))
    assert (ns.told(), ns.addrs()) == ([], {0: A0})


def test_only_the_last_of_several_connections_leaves_an_orphan(ns: Namespace) -> None:
    ns.tick("w1")
    ns.tick("w2")
    ns.register(owner="w1/1")
    ns.register(owner="w2/1")
    assert orphan(ns, mark="w1/1") is None
    assert orphan(ns, mark="w1/1") is None
    assert orphan(ns, mark="w2/1") is not None
    assert orphan(ns, mark="w2/1") is None


def test_marks_of_dead_workers_do_not_count(ns: Namespace) -> None:
    ns.tick("w1")
    ns.register(owner="w1/1")
    ns.store.hset(ns.keys.member(f"c1:{A0}"), "owner:dead/1", "1")
    assert orphan(ns) is not None


def test_a_member_registered_by_http_has_no_orphans(ns: Namespace) -> None:
    ns.register()
    assert orphan(ns) is None


def test_lapsed_members_of_the_broker_are_recorded_with_the_loss(ns: Namespace) -> None:
    ns.register()
    ns.register("b1", 1, owner=MARK)
    found = orphan(ns, 1)
    assert found is not None
    ns.lapse()
    ns.new_entries()
    ns.run(lose(ns.keys, found, "lost", act()))
    assert ns.told() == ["broker_removed expired", "broker_removed lost"]


@pytest.mark.parametrize("count", [49, 50, 51, 130])
def test_any_number_of_lapses_is_recorded(ns: Namespace, count: int) -> None:
    for number in range(count):
        ns.register(f"b{number}", topics=())
        ns.lapse(f"b{number}")
    ns.new_entries()
    assert ns.expire() == count
    assert ns.told() == ["broker_removed expired"] * count
    assert ns.store.zcard(ns.keys.leases) == 0


def test_nobody_is_expired_before_the_end(ns: Namespace) -> None:
    ns.register()
    assert ns.expire() == 0


def test_a_job_and_a_beat_record_a_lapse_once(ns: Namespace) -> None:
    ns.register()
    ns.lapse()
    job = Stepped(expire(ns.keys, act()), ns.store)
    ns.beat()
    assert job.finish() == 0
    assert ns.told().count("broker_removed expired") == 1


def test_a_dead_process_owes_what_the_job_finishes(ns: Namespace) -> None:
    ns.register(topics=[f"T{number}" for number in range(600)], mappings=[mapping_info("T1")])
    plan = Stepped(unregister(ns.keys, "c1", A0, "b1", "0", act()), ns.store)
    plan.step()
    assert ns.store.hkeys(ns.keys.owed) == ["clean:b1"]
    ns.check(settled=False)
    ns.settle()
    assert not ns.store.exists(ns.keys.owed, ns.keys.topics)


@pytest.mark.parametrize("steps", range(1, 8))
def test_what_comes_to_be_owed_anew_is_not_crossed_off(ns: Namespace, steps: int) -> None:
    names = [f"T{number}" for number in range(TOPICS_MAX)]
    ns.register(topics=names)
    removal = Stepped(unregister(ns.keys, "c1", A0, "b1", "0", act()), ns.store)
    for _ in range(steps):
        if removal.request is not None:
            removal.step()
    ns.register(topics=[f"N{number}" for number in range(10)])
    again = Stepped(unregister(ns.keys, "c1", A0, "b1", "0", act()), ns.store)
    again.step()
    removal.finish()
    again.finish()
    assert not ns.store.exists(ns.keys.owed, ns.keys.topics, ns.keys.topics_of("b1"))


@pytest.mark.parametrize("steps", range(1, 8))
def test_a_broker_that_returns_is_not_cleaned_away(ns: Namespace, steps: int) -> None:
    ns.register(mappings=[mapping_info("T1")])
    removal = Stepped(unregister(ns.keys, "c1", A0, "b1", "0", act()), ns.store)
    for _ in range(steps):
        if removal.request is not None:
            removal.step()
    ns.register(topics=("T2", "T3"), mappings=[mapping_info("T2")])
    removal.finish()
    assert ns.topics() == dict.fromkeys(("T2", "T3"), PLAIN)


def test_a_registration_cleans_up_after_members_it_found_lapsed(ns: Namespace) -> None:
    ns.register()
    ns.register("b2", at=A0, topics=("X", "Y"))
    ns.lapse()
    ns.register()
    assert ns.store.smembers(ns.keys.topics) == {"T1", "T2"}


def test_many_lapsed_members_of_one_name_go_in_parts(ns: Namespace) -> None:
    for number in range(120):
        ns.register("b1", number)
    for number in range(120):
        ns.lapse("b1", number)
    ns.new_entries()
    ns.register("b1", 200)
    assert ns.told() == [*["broker_removed expired"] * 120, "broker_registered first"]


def test_a_lease_without_member_is_dropped(ns: Namespace) -> None:
    ns.store.zadd(ns.keys.leases, {"c1:127.9.9.9:1": 1})
    assert (ns.expire(), ns.told()) == (1, [])


def test_unfinished_chunks_are_left_alone_by_the_clean_up(ns: Namespace) -> None:
    many = [f"T{number}" for number in range(1200)]
    plan = Stepped(register(ns.keys, registration(topics=many), act()), ns.store)
    for _ in range(6):
        plan.step()
    ns.run(settle_owed(ns.keys, act()))
    assert ns.store.hkeys(ns.keys.owed) == ["clean:b1"]
    plan.finish()
    assert set(ns.topics()) == set(many)


@pytest.mark.parametrize(("acting", "perm"), [(True, 4), (False, 6)])
def test_a_stranger_leaves_a_group_without_master(ns: Namespace, acting: bool, perm: int) -> None:
    ns.register("b1", 1, acting=acting)
    ns.run(add_write_perm(ns.keys, "b1", act()))
    ns.unregister(at="127.9.9.9:1")
    assert (ns.addrs(), ns.topics()["T1"]) == ({1: A1}, f"8,8,{perm},0")
