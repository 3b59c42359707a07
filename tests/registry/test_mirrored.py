"""Mirrored members: they take nothing of a broker that registered itself, and give way to it without a gap."""

from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

import pytest
from msgspec.structs import replace

from registry.errors import OwnRegistration
from registry.events.replay import UNKNOWN, replay
from registry.keys import member_key
from registry.members import brokers
from registry.mirrored import NO_VERSION, MirroredMember, MirrorState, renew_mirrored
from registry.ownership import UNGUARDED, Claimant
from registry.plans import Plan, ask
from registry.registration.register import Registered, register
from registry.removal import Removal, remove_mirrored
from rocketmq_remoting.data_version import DataVersion
from rocketmq_remoting.registration import RegisterBrokerBody, encode_register_broker_body
from tests.registry.brokers import V5, Topics, address, origin, registration, topic_configs
from tests.registry.checkpoints import a_round
from tests.registry.namespace import Namespace

JAVA = "10.0.0.1:9876;10.0.0.2:9876"
ELSEWHERE = "127.200.0.9:10911"
A, B = "host:127.0.0.1", "host:127.0.0.2"


def mirror(
    ns: Namespace,
    name: str = "b1",
    number: int = 0,
    topics: Topics = ("T1", "T2"),
    *,
    source: str = JAVA,
    by: Claimant | None = None,
    **more: Any,
) -> Registered:
    """Register a member as a mirror does."""
    return ns.run(mirroring(ns, name, number, topics, source=source, by=by, **more))


def mirroring(
    ns: Namespace,
    name: str,
    number: int = 0,
    topics: Topics = (),
    *,
    source: str = JAVA,
    by: Claimant | None = None,
    **more: Any,
) -> Plan[Registered]:
    configs = topic_configs(topics)
    body = encode_register_broker_body(
        RegisterBrokerBody(NO_VERSION, configs, frozenset(configs), ()), version=V5, compressed=False
    )
    asked = registration(name, number, (), acting=more.pop("acting", False), **more)
    asked = replace(asked, body=body, mirrored=source, single_topic=True)
    claimant = by or UNGUARDED
    return register(ns.keys, asked, origin(), delete_missing=True, limits=ns.limits, claimant=claimant)


def renew(ns: Namespace, name: str = "b1", number: int = 0, *, at: str | None = None) -> MirrorState:
    member = MirroredMember("c1", name, number, at or address(name, number))
    (state,) = ns.run(renew_mirrored(ns.keys, [member]))
    return state


def remove(ns: Namespace, name: str = "b1", number: int = 0, *, source: str = JAVA) -> Removal:
    return ns.run(remove_mirrored(ns.keys, "c1", address(name, number), source, origin()))


def marks(ns: Namespace, name: str = "b1") -> dict[int, str | None]:
    """Return from where each member of a broker is mirrored, by id."""
    return {
        member.id: member.mirrored for broker in ns.run(brokers(ns.keys, [name])) for member in broker.members
    }


def test_a_mirrored_broker_is_routed_to_and_marked(ns: Namespace) -> None:
    mirror(ns)
    assert ns.route("T1").broker_datas[0].broker_addrs == {0: address("b1", 0)}
    assert marks(ns) == {0: JAVA}
    assert ns.new_causes() == [
        "stream_started empty_store",
        "broker_registered mirror",
        "topics_changed mirror",
    ]
    assert ns.entries()[1].get("mirrored") == JAVA
    ns.check()


def test_the_same_registration_of_a_mirror_writes_no_entry(ns: Namespace) -> None:
    mirror(ns)
    ns.new_entries()
    mirror(ns)
    assert ns.new_causes() == []


def test_topics_follow_what_the_mirror_read_whatever_the_version(ns: Namespace) -> None:
    mirror(ns)
    mirror(ns, topics={"T1": "8,8,4,0", "T3": "4,4,6,0"})
    assert ns.topics() == {"T1": "8,8,4,0", "T3": "4,4,6,0"}
    ns.check()


def test_what_registered_itself_is_not_mirrored(ns: Namespace) -> None:
    ns.register()
    ns.new_entries()
    before = ns.store.hgetall(ns.keys.member(member_key("c1", address("b1", 0))))
    for more in ({}, {"at": ELSEWHERE}, {"number": 1, "at": address("b1", 0)}):
        with pytest.raises(OwnRegistration, match="registered itself"):
            mirror(ns, topics=("T9",), **more)
    assert renew(ns) == "ownRegistration"
    assert remove(ns).event_id == ""
    assert ns.store.hgetall(ns.keys.member(member_key("c1", address("b1", 0)))) == before
    assert ns.new_causes() == []
    ns.check()


MANY = [f"T{number}" for number in range(1200)]  # staged under a claim
OWN_TOPICS = {"T1": "4,4,6,0", "T2": "8,8,6,0"}


def stepped(ns: Namespace, plan: Plan[Registered], steps: int, meanwhile: Callable[[], object]) -> bool:
    """Run a plan, and something else after so many of its requests; return whether it has so many."""
    call = next(plan)
    while True:
        if steps == 0:
            meanwhile()
        try:
            call = plan.send(ns.run(ask(call)))
        except StopIteration:
            return steps <= 0
        steps -= 1


def unless(ns: Namespace, claim: str, meanwhile: Callable[[], object]) -> None:
    """Do something unless a claim stands, which a broker waits for."""
    if not ns.store.exists(claim):
        meanwhile()


@pytest.mark.parametrize("topics", [("T1", "T9"), MANY], ids=["few", "many"])
@pytest.mark.parametrize("known", [False, True], ids=["new", "mirrored"])
def test_a_broker_that_registers_while_its_mirror_does_wins(
    ns: Namespace, topics: Topics, known: bool
) -> None:
    for steps in count():
        name = f"b{steps}"
        if known:
            mirror(ns, name, topics=("T1", "T8"))
        register_itself = partial(ns.register, name, topics=OWN_TOPICS)
        unless_claimed = partial(unless, ns, ns.keys.pending(name), register_itself)
        try:
            met = stepped(ns, mirroring(ns, name, topics=topics), steps, unless_claimed)
        except OwnRegistration:
            met = True
        if not met:
            break
        register_itself()
        assert marks(ns, name) == {0: None}
        assert OWN_TOPICS.items() <= ns.topics(name).items()
    assert steps > 2
    ns.clean_up()
    ns.check()


@pytest.mark.parametrize("known", [False, True], ids=["new", "mirrored"])
def test_a_mirror_that_comes_while_the_broker_registers_changes_nothing(ns: Namespace, known: bool) -> None:
    for steps in count():
        name = f"b{steps}"
        if known:
            mirror(ns, name, topics=("T1", "T8"))
        plan = register(ns.keys, registration(name, topics=OWN_TOPICS), origin())
        if not stepped(ns, plan, steps, partial(mirror, ns, name, topics=("T1", "T9"))):
            break
        assert marks(ns, name) == {0: None}
        assert OWN_TOPICS.items() <= ns.topics(name).items()
    assert steps > 1
    ns.check()


def test_the_brokers_own_registration_takes_the_mark_away_without_a_gap(ns: Namespace) -> None:
    mirror(ns, topics={"T1": "8,8,4,0", "Gone": "8,8,6,0"})
    epoch = ns.store.hget(ns.keys.broker("b1"), "epoch")
    ns.new_entries()
    ns.register(topics=("T1", "T2"), owner="w1/1", host="127.0.0.1")
    assert marks(ns) == {0: None}
    assert ns.store.hget(ns.keys.broker("b1"), "epoch") == epoch
    assert ns.topics() == {"T1": "8,8,6,0", "T2": "8,8,6,0", "Gone": "8,8,6,0"}
    assert ns.new_causes() == ["broker_updated register", "topics_changed register"]
    updated = ns.entries()[-2]
    assert (updated.get("mirrored"), updated.get("mirrored_before")) == ("", JAVA)
    assert renew(ns) == "ownRegistration"
    ns.check()


@pytest.mark.parametrize("version", [NO_VERSION, DataVersion(0, 1_700_000_000_000, 1)])
def test_a_version_that_equals_the_mirrors_counts_as_changed(ns: Namespace, version: DataVersion) -> None:
    mirror(ns, topics={"T1": "8,8,4,0"})
    configs = topic_configs(("T1", "T2"))
    body = RegisterBrokerBody(version, configs, frozenset(configs), ())
    sent = encode_register_broker_body(body, version=V5, compressed=False)
    ns.run(register(ns.keys, replace(registration(), body=sent), origin()))
    assert ns.topics()["T1"] == "8,8,6,0"
    assert marks(ns) == {0: None}
    ns.check()


def test_another_address_that_registers_takes_the_mirrored_ones_id(ns: Namespace) -> None:
    mirror(ns)
    ns.register(at=ELSEWHERE)
    assert ns.addrs() == {0: ELSEWHERE}
    assert marks(ns) == {0: None}
    with pytest.raises(OwnRegistration):
        mirror(ns)
    ns.check()


@pytest.mark.parametrize("guard", [False, True])
def test_no_guard_and_no_refusal_of_conflicts_keep_a_broker_from_its_own_place(
    ns: Namespace, guard: bool
) -> None:
    operator = Claimant("principal:ops", guard=guard, exclusive=True)
    mirror(ns, by=operator)
    ns.register(at=ELSEWHERE, by=Claimant(B, guard=guard, exclusive=True), host="127.0.0.2")
    assert ns.addrs() == {0: ELSEWHERE}
    mirror(ns, "b2", by=operator)
    ns.register("b2", by=Claimant(B, guard=guard, exclusive=True), host="127.0.0.2")
    member = ns.keys.member(member_key("c1", address("b2", 0)))
    assert ns.store.hget(member, "registrant") == B
    mirror(ns, "b3", by=operator)
    ns.register("b3", cluster="c2", by=Claimant(B, guard=guard, exclusive=True), host="127.0.0.2")
    assert marks(ns, "b3") == {0: None}


def test_a_registration_that_says_the_very_same_takes_the_mark_away(ns: Namespace) -> None:
    mirror(ns)
    configs = topic_configs(("T1", "T2"))
    body = RegisterBrokerBody(NO_VERSION, configs, frozenset(configs), ())
    sent = encode_register_broker_body(body, version=V5, compressed=False)
    asked = replace(registration(acting=False), body=sent)
    ns.run(register(ns.keys, asked, origin(), delete_missing=True))
    assert marks(ns) == {0: None}


def test_the_owner_is_the_broker_that_registers_and_not_the_host_of_the_mirror(ns: Namespace) -> None:
    mirror(ns, by=Claimant(f"host:{address('b1', 0).partition(':')[0]}"))
    ns.register(by=Claimant(B), host="127.0.0.2")
    assert ns.store.hget(ns.keys.member(member_key("c1", address("b1", 0))), "registrant") == B


def test_with_the_guard_a_host_comes_home_without_a_gap(ns: Namespace) -> None:
    home = f"host:{address('b1', 0).partition(':')[0]}"
    mirror(ns, by=Claimant(A, guard=True))
    ns.new_entries()
    ns.register(by=Claimant(home, guard=True))
    assert "broker_removed" not in {event.kind for event in ns.new_entries()}
    assert marks(ns) == {0: None}


def test_a_heartbeat_of_a_broker_that_did_not_register_says_that_it_is_unknown(ns: Namespace) -> None:
    mirror(ns)
    for by in (Claimant(A), Claimant(A, guard=True)):
        assert ns.heartbeat(by=by).version is None
    ns.lapse()
    assert ns.heartbeat().version is None
    assert ns.new_causes()[-1] == "topics_changed mirror"


def test_a_mirror_renews_only_what_it_sees(ns: Namespace) -> None:
    mirror(ns)
    member = member_key("c1", address("b1", 0))
    before = ns.store.zscore(ns.keys.leases, member)
    ns.next_ms()
    assert renew(ns) == "renewed"
    assert ns.store.zscore(ns.keys.leases, member) > before
    assert renew(ns, number=1, at=address("b1", 0)) == "unknown"
    assert renew(ns, "b2") == "unknown"
    ns.lapse()
    assert renew(ns) == "unknown"
    assert ns.expire() == 1
    assert ns.addrs() == {}


def test_a_mirror_takes_over_once_the_brokers_own_lease_has_ended(ns: Namespace) -> None:
    ns.register()
    ns.lapse()
    mirror(ns, topics=("T1",))
    assert marks(ns) == {0: JAVA}
    assert ns.topics() == {"T1": "8,8,6,0"}
    assert "broker_registered mirror" in ns.new_causes()
    ns.check()
    ns.lapse()
    ns.register()
    assert marks(ns) == {0: None}
    ns.check()


def test_a_mirror_removes_what_it_mirrored_and_nothing_else(ns: Namespace) -> None:
    mirror(ns)
    assert remove(ns, source="10.0.0.9:9876").event_id == ""
    ns.new_entries()
    remove(ns)
    assert ns.new_causes() == ["broker_removed mirror"]
    assert ns.addrs() == {}
    ns.check()


def test_a_mirrored_slave_changes_nothing_of_a_group_that_registered_itself(ns: Namespace) -> None:
    ns.register("b1", 1, acting=True, zone="z1")
    mirror(ns, "b1", 2, ("T9",))
    mirror(ns, "b1", 0, ("T1",))
    fields = ns.store.hgetall(ns.keys.broker("b1"))
    assert (fields["acting"], fields["zone"]) == ("1", "z1")
    assert marks(ns) == {0: JAVA, 1: None, 2: JAVA}
    ns.check()


def test_the_smallest_slave_has_the_topics_of_a_group_without_master(ns: Namespace) -> None:
    mirror(ns, "b1", 1, {"T1": "8,8,6,0"})
    assert ns.topics() == {"T1": "8,8,6,0"}
    mirror(ns, "b1", 2, ())
    assert ns.topics() == {"T1": "8,8,6,0"}


def test_a_slave_that_registers_beside_a_mirrored_master_gets_its_address_alone(ns: Namespace) -> None:
    mirror(ns)
    answer = ns.register("b1", 1)
    assert (answer.master_address, answer.ha_address) == (address("b1", 0), None)


def test_two_mirrors_of_the_same_name_servers_agree_and_of_others_do_not_take_turns(ns: Namespace) -> None:
    mirror(ns)
    with pytest.raises(OwnRegistration, match=f"is mirrored from {JAVA}"):
        mirror(ns, at=ELSEWHERE, source="10.0.0.9:9876")
    mirror(ns, at=ELSEWHERE)  # it moved there
    assert ns.addrs() == {0: ELSEWHERE}
    ns.check()


def test_mirrored_members_push_nothing_to_brokers(ns: Namespace) -> None:
    mirror(ns, "b1", 0, acting=True)
    mirror(ns, "b1", 1, (), acting=True)
    remove(ns)
    ns.lapse("b1", 1)
    ns.expire()
    assert ns.store.xlen(ns.keys.group_events) == 0
    ns.register()
    assert ns.store.xlen(ns.keys.group_events) == 1


def test_a_checkpoint_round_repeats_the_mark(ns: Namespace) -> None:
    mirror(ns)
    ns.register("b2")
    tables = replay(UNKNOWN, a_round(ns))
    assert {key: member.mirrored for key, member in tables.members.items()} == {
        member_key("c1", address("b1", 0)): JAVA,
        member_key("c1", address("b2", 0)): "",
    }
