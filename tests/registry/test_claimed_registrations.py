"""First registrations too large for one script, interrupted and disturbed at every step."""

import pytest

from registry.errors import BrokerBusy, TopicNotFound
from registry.plans import Call, Pause
from registry.queue_data.slices import TOPICS_MAX
from registry.registration.register import register
from registry.removal import expire, unregister
from tests.registry.brokers import address, mapping_info, origin, registration
from tests.registry.namespace import Namespace
from tests.registry.steps import Stepped

MANY = tuple(f"T{number}" for number in range(TOPICS_MAX * 2 + 1))
STEPS = 3 + 4 + 4 + 1  # renew, dry, claim, the pieces of three slices; the next is the commit


def begin(ns: Namespace, version: int = 7) -> Stepped[object]:
    return Stepped(register(ns.keys, registration(topics=MANY, version=version), origin()), ns.store)


def end_claim(ns: Namespace) -> None:
    """Its time is over, and the job has cleaned up."""
    ns.store.delete(ns.keys.pending("b1"))
    ns.clean_up()


def test_nothing_is_seen_before_the_commit_and_all_is_after(ns: Namespace) -> None:
    plan = begin(ns)
    for _ in range(STEPS):
        plan.step()
        assert (ns.topics(), ns.new_entries(), ns.addrs()) == ({}, [], {})
    plan.step()
    assert (len(ns.topics()), ns.addrs()) == (len(MANY), {0: address("b1")})
    events = ns.new_entries()
    assert [event.kind for event in events] == [
        "stream_started",
        "broker_registered",
        *["topics_changed"] * 3,
    ]
    assert [event.get("part") for event in events] == [f"{number}/5" for number in range(1, 6)]
    assert len({event.get("op") for event in events}) == 1


def test_a_first_table_leaves_nothing_to_do(ns: Namespace) -> None:
    """Nothing of another epoch was there, so the new table need not be read again."""
    plan = begin(ns)
    while plan.request is not None:
        assert not (isinstance(plan.request, Call) and plan.request.args[0] == "HSCAN")
        plan.step()
    assert not ns.store.exists(ns.keys.deferred)


def test_what_an_earlier_claim_left_is_cleaned_up_by_the_next(ns: Namespace) -> None:
    dead = begin(ns)
    for _ in range(STEPS):
        dead.step()
    ns.store.delete(ns.keys.pending("b1"))
    ns.register(topics=tuple(f"U{topic}" for topic in MANY))
    assert len(ns.topics()) == ns.store.hlen(ns.keys.topics_of("b1")) == len(MANY)
    assert not ns.store.exists(ns.keys.deferred)


@pytest.mark.parametrize("steps", range(STEPS + 1))
def test_what_a_dead_worker_leaves_is_cleaned_up(ns: Namespace, steps: int) -> None:
    plan = begin(ns)
    for _ in range(steps):
        plan.step()
    end_claim(ns)
    assert not ns.store.exists(ns.keys.topics, ns.keys.topics_of("b1"), ns.keys.deferred)
    assert ns.new_entries() == []


@pytest.mark.parametrize("steps", range(STEPS + 1))
def test_a_claim_that_was_lost_is_never_committed(ns: Namespace, steps: int) -> None:
    plan = begin(ns)
    for _ in range(steps):
        plan.step()
    end_claim(ns)
    plan.finish()
    assert set(ns.topics()) == set(MANY)
    assert ns.new_causes().count("broker_registered first") == 1


@pytest.mark.parametrize("steps", range(STEPS + 1))
def test_another_registration_of_the_name_at_any_step(ns: Namespace, steps: int) -> None:
    plan = begin(ns)
    for _ in range(steps):
        plan.step()
    other = Stepped(register(ns.keys, registration(number=1, acting=False), origin()), ns.store)
    while other.request is not None and not isinstance(other.request, Pause):
        other.step()
    if ns.addrs():
        assert set(ns.topics()) >= {"T1", "T2"}
    plan.finish()
    other.finish()
    assert set(ns.topics()) == set(MANY)
    assert ns.addrs() == {0: address("b1"), 1: address("b1", 1)}


@pytest.mark.parametrize("steps", range(STEPS + 1))
def test_two_workers_are_asked_to_register_the_same_table(ns: Namespace, steps: int) -> None:
    plan, twin = begin(ns), begin(ns)
    for _ in range(steps):
        plan.step()
    while twin.request is not None and not isinstance(twin.request, Pause):
        twin.step()
    plan.finish()
    twin.finish()
    assert ns.new_causes() == [
        "stream_started empty_store",
        "broker_registered first",
        *["topics_changed register"] * 3,
    ]


def test_a_registration_that_waits_too_long_fails_as_busy(ns: Namespace) -> None:
    plan = begin(ns)
    assert plan.until("stage_slice")
    waiting = Stepped(register(ns.keys, registration(number=1), origin()), ns.store)
    with pytest.raises(BrokerBusy):
        waiting.finish()
    plan.finish()


def test_staged_slices_overwrite_nothing_of_members_that_a_heartbeat_may_bring_back(ns: Namespace) -> None:
    ns.register("b1", 1, acting=False)
    ns.lapse("b1", 1)
    plan = begin(ns)
    assert plan.until("stage_slice")
    accepted = ns.heartbeat("b1", 1)
    assert (accepted.version, ns.topics()) == (None, {})
    end_claim(ns)


def test_a_lapse_is_recorded_before_the_name_is_claimed(ns: Namespace) -> None:
    ns.register("b1", 1, acting=False)
    ns.lapse("b1", 1)
    ns.new_entries()
    begin(ns).finish()
    assert ns.new_causes() == [
        "broker_removed expired",
        "broker_registered first",
        *["topics_changed register"] * 3,
    ]


def test_a_job_that_expires_in_between_does_not_disturb(ns: Namespace) -> None:
    ns.register("b1", 1, acting=False)
    ns.lapse("b1", 1)
    plan = begin(ns)
    assert plan.until("claim_epoch")
    Stepped(expire(ns.keys, origin()), ns.store).finish()
    plan.finish()
    assert set(ns.topics()) == set(MANY)


def test_a_clean_up_from_before_deletes_nothing_of_a_claim(ns: Namespace) -> None:
    """It reads the tables when the next registration has written to them, whose epoch it does not know."""
    ns.register()
    going = Stepped(unregister(ns.keys, "c1", address("b1"), "b1", "0", origin()), ns.store)
    while not (isinstance(going.request, Call) and going.request.args[0] == "HSCAN"):
        going.step()
    plan = begin(ns)
    for _ in range(STEPS):
        plan.step()
    going.finish()
    plan.finish()
    assert set(ns.topics()) == set(MANY)


@pytest.mark.parametrize("topics", [("T1", "T2"), MANY], ids=["one script", "in slices"])
def test_static_topics_that_a_dead_worker_has_left_are_cleaned_up_by_the_next(
    ns: Namespace, topics: tuple[str, ...]
) -> None:
    ns.register(topics=("S1", "S2"), mappings=[mapping_info("S1")])
    dead = Stepped(unregister(ns.keys, "c1", address("b1"), "b1", "0", origin()), ns.store)
    assert dead.until("sweep_topics", lambda script: script.args[1] == "mappings")
    assert not ns.store.exists(ns.keys.topics_of("b1"))
    ns.register(topics=topics)
    assert not ns.store.exists(ns.keys.mappings_of("b1"), ns.keys.mapping("S1"), ns.keys.deferred)


def test_static_topics_come_into_sight_together_with_their_infos(ns: Namespace) -> None:
    body = registration(topics=("S1", "S2"), mappings=[mapping_info("S1")])
    plan = Stepped(register(ns.keys, body, origin()), ns.store)
    while plan.request is not None:
        try:
            assert ns.route("S1").topic_queue_mapping_by_broker
        except TopicNotFound:
            assert ns.topics() == {}
        plan.step()
    assert ns.route("S1").topic_queue_mapping_by_broker == {"b1": mapping_info("S1")}


def test_a_table_beyond_one_commit_follows_in_slices(ns: Namespace) -> None:
    names = [f"{number:04}{'x' * 115}" for number in range(5600)]
    ns.register(topics=names)
    events = ns.new_entries()
    assert len(ns.topics()) == len(names)
    versions = [event.get("dv") for event in events if event.kind == "topics_changed"]
    assert versions == [*[""] * (len(versions) - 1), "0:1700000000000:1"]
    assert events[1].get("dv") == ""
    assert max(len(event.get("rows")) for event in events[2:]) < 65_536


def test_lapses_that_a_claim_records_of_another_broker_are_cleaned_up_too(ns: Namespace) -> None:
    """One address under two names: its lapse, found by the claim of one, empties the other as well."""
    shared = address("b2", 0)
    ns.register("b2", 0, (), cluster="c2")
    ns.register("b1", 0, ("T1", "T2"), cluster="c2", at=shared)
    ns.lapse("b2", 0, cluster="c2")
    ns.register("b2", 1, MANY, acting=False, at=shared)
    assert ns.store.hgetall(ns.keys.deferred) == {}
    assert ns.store.exists(ns.keys.topics_of("b1")) == 0
