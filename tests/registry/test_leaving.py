"""How members leave: by 104, with their last connection, at the end of their lease; and what they leave behind."""

import pytest

from registry.queue_data.rewrite import add_write_perm
from registry.queue_data.slices import TOPICS_MAX
from registry.registration.register import register
from registry.removal import (
    Disconnected,
    expire,
    release_owner,
    remove_disconnected,
    run_deferred,
    unregister,
)
from tests.registry.brokers import PLAIN, address, mapping_info, origin, registration
from tests.registry.namespace import MORE_MEMBERS, Namespace
from tests.registry.steps import Stepped

A0, A1 = address("b1"), address("b1", 1)
OWNER = "w1/1"


def disconnect(ns: Namespace, number: int = 0, owner: str = OWNER) -> Disconnected | None:
    return ns.run(release_owner(ns.keys, "c1", address("b1", number), owner))


def test_the_last_member_takes_everything_with_it(ns: Namespace) -> None:
    ns.register(mappings=[mapping_info("T1")], filters=("f:1",))
    assert ns.unregister().brokers == ("b1",)
    left = {key.removeprefix(ns.keys.prefix) for key in ns.store.scan_iter("*")}
    assert left == {"epoch", "events", "events:groups", "events:meta"}


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
    ns.run(unregister(ns.keys, "c1", A0, "b1", None, origin()))
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
def test_a_repeated_104_of_an_unknown_member_writes_nothing(ns: Namespace, times: int) -> None:
    ns.register("b2")
    ns.register()
    ns.unregister()
    ns.new_entries()
    for _ in range(times):
        assert ns.unregister().event_id == ""
    assert ns.new_causes() == []


def test_a_late_104_never_takes_out_the_successor(ns: Namespace) -> None:
    ns.register()
    ns.register(at="127.9.9.9:1")
    ns.new_entries()
    ns.unregister()
    events = ns.new_entries()
    assert [f"{event.kind} {event.cause}" for event in events] == ["conflict_seen stale_unregister"]
    assert events[0].json("holder", dict[str, str]) == {"addr": "127.9.9.9:1", "cluster": "c1"}
    assert ns.addrs() == {0: "127.9.9.9:1"}


def test_a_disconnected_member_is_removed(ns: Namespace) -> None:
    ns.register(owner=OWNER)
    member = disconnect(ns)
    assert member is not None
    ns.new_entries()
    assert ns.run(remove_disconnected(ns.keys, member, "lost", origin())).brokers == ("b1",)
    events = ns.new_entries()
    assert [f"{event.kind} {event.cause}" for event in events] == ["broker_removed lost"]
    assert events[0].number("closed_ms") == member.closed_ms


def test_an_owner_of_several_names_is_taken_out_of_all(ns: Namespace) -> None:
    ns.register(owner=OWNER)
    ns.register("b2", at=A0, owner=OWNER)
    member = disconnect(ns)
    assert member is not None
    assert sorted(ns.run(remove_disconnected(ns.keys, member, "closed", origin())).brokers) == ["b1", "b2"]


@pytest.mark.parametrize("how", ["registers", "heartbeat", "registers elsewhere", "has gone"])
def test_a_disconnected_member_that_came_back_stays(ns: Namespace, how: str) -> None:
    ns.register(owner=OWNER)
    ns.store.zincrby(ns.keys.leases, -7, f"c1:{A0}")
    member = disconnect(ns)
    assert member is not None
    if how == "registers":
        ns.register(owner="w1/2")
    elif how == "heartbeat":
        ns.heartbeat()
    elif how == "registers elsewhere":
        ns.register("b2", at=A0, owner="w1/2")
    else:
        ns.unregister()
        ns.register(owner="w1/2")
    ns.new_entries()
    ns.run(remove_disconnected(ns.keys, member, "lost", origin()))
    assert (ns.new_causes(), ns.addrs()) == ([], {0: A0})


def test_only_the_last_of_several_connections_disconnects_a_member(ns: Namespace) -> None:
    ns.tick("w1")
    ns.tick("w2")
    ns.register(owner="w1/1")
    ns.register(owner="w2/1")
    assert disconnect(ns, owner="w1/1") is None
    assert disconnect(ns, owner="w1/1") is None
    assert disconnect(ns, owner="w2/1") is not None
    assert disconnect(ns, owner="w2/1") is None


def test_connections_of_dead_workers_do_not_count(ns: Namespace) -> None:
    ns.tick("w1")
    ns.register(owner="w1/1")
    ns.store.hset(ns.keys.member(f"c1:{A0}"), "owner:dead/1", "1")
    assert disconnect(ns) is not None


def test_a_member_registered_by_http_cannot_disconnect(ns: Namespace) -> None:
    ns.register()
    assert disconnect(ns) is None


def test_lapsed_members_of_the_broker_are_recorded_with_the_loss(ns: Namespace) -> None:
    ns.register()
    ns.register("b1", 1, owner=OWNER)
    member = disconnect(ns, 1)
    assert member is not None
    ns.lapse()
    ns.new_entries()
    ns.run(remove_disconnected(ns.keys, member, "lost", origin()))
    assert ns.new_causes() == ["broker_removed expired", "broker_removed lost"]


@pytest.mark.parametrize("count", [49, 50, 51, 130])
def test_any_number_of_lapses_is_recorded(ns: Namespace, count: int) -> None:
    for number in range(count):
        ns.register(f"b{number}", topics=())
        ns.lapse(f"b{number}")
    ns.new_entries()
    assert ns.expire() == count
    assert ns.new_causes() == ["broker_removed expired"] * count
    assert ns.store.zcard(ns.keys.leases) == 0


def test_no_member_expires_before_the_end_of_its_lease(ns: Namespace) -> None:
    ns.register()
    assert ns.expire() == 0


def test_a_job_and_a_heartbeat_record_a_lapse_once(ns: Namespace) -> None:
    ns.register()
    ns.lapse()
    job = Stepped(expire(ns.keys, origin()), ns.store)
    ns.heartbeat()
    assert job.finish() == 0
    assert ns.new_causes().count("broker_removed expired") == 1


def test_the_job_finishes_the_clean_up_of_a_dead_process(ns: Namespace) -> None:
    ns.register(topics=[f"T{number}" for number in range(600)], mappings=[mapping_info("T1")])
    plan = Stepped(unregister(ns.keys, "c1", A0, "b1", "0", origin()), ns.store)
    plan.step()
    assert ns.store.hkeys(ns.keys.deferred) == ["clean:b1"]
    ns.check(clean=False)
    ns.clean_up()
    assert not ns.store.exists(ns.keys.deferred, ns.keys.topics)


@pytest.mark.parametrize("steps", range(1, 8))
def test_a_clean_up_that_is_noted_again_is_not_deleted(ns: Namespace, steps: int) -> None:
    names = [f"T{number}" for number in range(TOPICS_MAX)]
    ns.register(topics=names)
    removal = Stepped(unregister(ns.keys, "c1", A0, "b1", "0", origin()), ns.store)
    for _ in range(steps):
        if removal.request is not None:
            removal.step()
    ns.register(topics=[f"N{number}" for number in range(10)])
    again = Stepped(unregister(ns.keys, "c1", A0, "b1", "0", origin()), ns.store)
    again.step()
    removal.finish()
    again.finish()
    assert not ns.store.exists(ns.keys.deferred, ns.keys.topics, ns.keys.topics_of("b1"))


@pytest.mark.parametrize("steps", range(1, 8))
def test_a_broker_that_returns_is_not_cleaned_away(ns: Namespace, steps: int) -> None:
    ns.register(mappings=[mapping_info("T1")])
    removal = Stepped(unregister(ns.keys, "c1", A0, "b1", "0", origin()), ns.store)
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
    ns.limits = MORE_MEMBERS
    for number in range(120):
        ns.register("b1", number)
    for number in range(120):
        ns.lapse("b1", number)
    ns.new_entries()
    ns.register("b1", 200)
    assert ns.new_causes() == [*["broker_removed expired"] * 120, "broker_registered first"]


def test_a_lease_without_member_is_dropped(ns: Namespace) -> None:
    ns.store.zadd(ns.keys.leases, {"c1:127.9.9.9:1": 1})
    assert (ns.expire(), ns.new_causes()) == (1, [])


def test_slices_of_an_unfinished_registration_are_left_alone_by_the_clean_up(ns: Namespace) -> None:
    many = [f"T{number}" for number in range(1200)]
    plan = Stepped(register(ns.keys, registration(topics=many), origin()), ns.store)
    for _ in range(6):
        plan.step()
    ns.run(run_deferred(ns.keys, origin()))
    assert ns.store.hkeys(ns.keys.deferred) == ["clean:b1"]
    plan.finish()
    assert set(ns.topics()) == set(many)


@pytest.mark.parametrize(("acting", "perm"), [(True, 4), (False, 6)])
def test_a_stranger_leaves_a_group_without_master(ns: Namespace, acting: bool, perm: int) -> None:
    ns.register("b1", 1, acting=acting)
    ns.run(add_write_perm(ns.keys, "b1", origin()))
    ns.unregister(at="127.9.9.9:1")
    assert (ns.addrs(), ns.topics()["T1"]) == ({1: A1}, f"8,8,{perm},0")
