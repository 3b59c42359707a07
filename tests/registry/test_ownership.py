"""Owners of brokers: which requests are for the registrant of a living member (docs/access.md), with ownershipGuard."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import pytest
from msgspec.structs import replace

from registry.errors import LimitReached, NotOwner
from registry.growth.limits import DEFAULT_LIMITS
from registry.ownership import Claimant, ReportedRefusals, registrant_at, registrant_of
from registry.plans import ScriptItem, ask, joined, replies_to
from registry.queue_data.rewrite import add_write_perm
from registry.queue_data.slices import TOPICS_MAX
from registry.registration.heartbeat import renew_lease
from registry.registration.register import register
from registry.removal import Disconnected, remove_disconnected
from registry.topics import BROKERS_MAX, register_topic
from rocketmq_remoting.route import QueueData
from tests.registry.brokers import PLAIN, address, origin, registration
from tests.registry.namespace import Namespace
from tests.registry.steps import Stepped

A0, ELSEWHERE = address("b1"), "127.9.9.9:10911"
HERE, THERE = Claimant("host:127.1.1.1", guard=True), Claimant("host:127.2.2.2", guard=True)
HOME = Claimant(registrant_at(A0.rpartition(":")[0]), guard=True)
"""The host whose own address A0 is."""
P1, P2 = Claimant("principal:p1", guard=True), Claimant("principal:p2", guard=True)
UNNAMED = replace(P2, claims=False)
"""A principal whose limits do not name the broker."""
MANY = [f"T{number}" for number in range(TOPICS_MAX + 1)]


def registrant(ns: Namespace, name: str = "b1", number: int = 0) -> str | None:
    stored: str | None = ns.store.hget(ns.keys.member(f"c1:{address(name, number)}"), "registrant")
    return stored


def timeout_ms(ns: Namespace) -> int:
    return int(ns.store.hget(ns.keys.member(f"c1:{A0}"), "timeout"))


def dump(ns: Namespace) -> dict[str, bytes]:
    return {key: ns.store.dump(key) for key in ns.store.scan_iter(f"{ns.keys.prefix}*")}


@contextmanager
def refusal(ns: Namespace) -> Iterator[pytest.ExceptionInfo[NotOwner]]:
    """Expect one that changes nothing in the store."""
    before = dump(ns)
    with pytest.raises(NotOwner) as error:
        yield error
    assert dump(ns) == before


def test_the_registrant_of_a_member_is_stored_with_and_without_the_guard(ns: Namespace) -> None:
    ns.register(by=replace(HERE, guard=False))
    assert registrant(ns) == "host:127.1.1.1"
    ns.register(version=2, by=replace(THERE, guard=False))
    assert registrant(ns) == "host:127.2.2.2"
    ns.register(version=3, by=replace(P1, guard=False))
    assert registrant(ns) == "principal:p1"


def test_registrants_have_a_text() -> None:
    assert registrant_at("10.0.0.1") == "host:10.0.0.1"
    assert registrant_at("fd00::1") == registrant_at("[fd00::1]") == "host:[fd00::1]"
    assert registrant_at("::ffff:10.0.0.1") == registrant_at("[::ffff:a00:1]") == "host:10.0.0.1"
    assert {registrant_at(""), registrant_at(None)} == {"host:unix"}
    assert registrant_of("p1") == "principal:p1"


@pytest.mark.parametrize("topics", [("T1", "T2"), MANY], ids=["small", "large"])
def test_a_living_members_id_is_taken_by_its_registrant_only(ns: Namespace, topics: list[str]) -> None:
    ns.register(by=HERE)
    with refusal(ns) as error:
        ns.register(at=ELSEWHERE, topics=topics, by=THERE)
    assert error.value.holder is not None
    assert (error.value.holder.address, error.value.holder.connected) == (A0, False)
    assert ns.addrs() == {0: A0}
    ns.register(at=ELSEWHERE, topics=topics, by=HERE)
    assert ns.addrs() == {0: ELSEWHERE}


def test_a_living_members_address_gets_another_name_of_its_registrant_only(ns: Namespace) -> None:
    ns.register(by=HERE)
    with refusal(ns):
        ns.register("b2", at=A0, by=THERE)
    ns.register("b2", at=A0, by=HERE)
    assert ns.addrs("b2") == {0: A0}
    ns.register("b2", at=A0, version=2, by=THERE)  # which it has now


@pytest.mark.parametrize("cluster", ["c1", "c2"])
def test_a_living_members_address_gets_another_id_of_its_registrant_only(ns: Namespace, cluster: str) -> None:
    """Otherwise any host could take the master away from its group."""
    ns.register(by=HERE)
    with refusal(ns):
        ns.register("b1", 1, at=A0, cluster=cluster, by=THERE)
    ns.register("b1", 1, at=A0, cluster=cluster, by=HERE)
    assert ns.addrs() == {1: A0}


def test_master_and_slave_of_one_host_change_places(ns: Namespace) -> None:
    ns.register(by=HERE)
    ns.register("b1", 1, by=HERE)
    ns.register("b1", 0, at=address("b1", 1), version=2, by=HERE)
    ns.register("b1", 1, at=A0, version=2, by=HERE)
    assert ns.addrs() == {0: address("b1", 1), 1: A0}


@pytest.mark.parametrize("claimant", [THERE, P2], ids=str)
def test_what_has_lapsed_is_for_all(ns: Namespace, claimant: Claimant) -> None:
    ns.register(by=P1)
    ns.lapse()
    ns.register(at=ELSEWHERE, by=claimant)
    assert ns.addrs() == {0: ELSEWHERE}


def test_a_member_that_comes_back_after_its_lapse_is_of_its_new_registrant(ns: Namespace) -> None:
    ns.tick("w1")
    ns.register(by=HERE, owner="w1/1", host="127.1.1.1")
    ns.lapse()
    ns.register(version=2, by=THERE)
    assert registrant(ns) == "host:127.2.2.2"


def test_while_a_hold_keeps_a_member_it_has_its_owner(ns: Namespace) -> None:
    ns.register(by=HERE)
    ns.lapse()
    ns.silent_for(20_000)
    assert ns.addrs() == {0: A0}
    with pytest.raises(NotOwner):
        ns.register(at=ELSEWHERE, by=THERE)
    with pytest.raises(NotOwner):
        ns.unregister(by=THERE)


def test_a_hosts_member_is_renewed_by_any_caller_and_has_its_last_registrant(ns: Namespace) -> None:
    ns.register(by=HERE)
    assert ns.heartbeat(by=THERE).version
    ns.register(by=THERE)
    assert registrant(ns) == "host:127.2.2.2"


def test_a_hosts_member_stays_its_own_while_it_has_a_connection(ns: Namespace) -> None:
    """Otherwise two requests took what one may not."""
    ns.tick("w1")
    ns.register(by=HERE, owner="w1/1", host="127.1.1.1")
    ns.register(version=2, by=THERE, owner="w1/2", host="127.2.2.2")
    assert registrant(ns) == "host:127.1.1.1"
    with refusal(ns) as error:
        ns.register(at=ELSEWHERE, by=THERE)
    assert error.value.holder is not None
    assert error.value.holder.connected
    ns.store.hdel(ns.keys.member(f"c1:{A0}"), "owner:w1/1")
    ns.register(version=3, by=THERE, owner="w1/2", host="127.2.2.2")
    assert registrant(ns) == "host:127.2.2.2"


@pytest.mark.parametrize("at", [A0, "[fd00::1]:10911"])
def test_a_hosts_own_address_stays_its_own_without_a_connection(ns: Namespace, at: str) -> None:
    """Otherwise a peer that renews it waits for the end of a connection, as of a worker that restarts, and then takes
    the broker while it lives."""
    own = Claimant(registrant_at(at.rpartition(":")[0]), guard=True)
    ns.register(at=at, by=own)
    ns.register(at=at, version=2, by=THERE)
    with refusal(ns):
        ns.register(at=ELSEWHERE, by=THERE)
    with refusal(ns):
        ns.unregister(at=at, by=THERE)
    ns.unregister(at=at, by=own)


@pytest.mark.parametrize("observes", [False, True], ids=["enforced", "observed"])
def test_a_stranger_brings_the_end_of_a_hosts_member_no_nearer(ns: Namespace, *, observes: bool) -> None:
    """Otherwise it renews it for a millisecond, and takes its id then."""
    ns.register(by=HOME, timeout_ms=60_000)
    ns.register(version=2, timeout_ms=1_000, by=replace(THERE, observes=observes))
    assert timeout_ms(ns) == (1_000 if observes else 60_000)
    ns.register(version=3, timeout_ms=70_000, by=THERE)
    assert timeout_ms(ns) == 70_000
    ns.register(version=4, timeout_ms=2_000, by=HOME)
    assert timeout_ms(ns) == 2_000


def test_a_host_that_renews_has_its_own_timeout_once_the_member_is_its_own(ns: Namespace) -> None:
    """Also if it sends the same again."""
    ns.register(by=HERE, timeout_ms=60_000)
    for expected in (60_000, 1_000):
        ns.register(version=2, timeout_ms=1_000, by=THERE)
        assert (registrant(ns), timeout_ms(ns)) == (THERE.registrant, expected)


def connections(ns: Namespace) -> set[str]:
    fields = ns.store.hkeys(ns.keys.member(f"c1:{A0}"))
    return {field.partition("/")[2] for field in fields if field.startswith("owner:")}


def test_strangers_connections_are_none_of_a_hosts_own_address(ns: Namespace) -> None:
    """With the last one that is noted the member goes, unprobed if it is none of its host."""
    ns.tick("w1")
    ns.register(by=HOME, owner="w1/1", host="127.1.1.1")
    ns.register(version=2, by=THERE, owner="w1/2", host="127.2.2.2")
    assert connections(ns) == {"1"}
    ns.register(version=3, by=replace(THERE, observes=True), owner="w1/3", host="127.2.2.2")
    assert connections(ns) == {"1", "3"}


@pytest.mark.parametrize(
    "by", [HOME, replace(UNNAMED, home=HOME.registrant)], ids=["a host", "a principal of it"]
)
@pytest.mark.parametrize(
    ("name", "number", "cluster"),
    [("b1", 0, "c1"), ("b1", 1, "c1"), ("b1", 0, "c2"), ("b2", 0, "c1")],
    ids=str,
)
def test_a_host_has_its_own_address_though_a_stranger_was_there_first(
    ns: Namespace, by: Claimant, name: str, number: int, cluster: str
) -> None:
    """As in the seconds of a restart. It has nothing of what the stranger registered there, which owned it else."""
    ns.tick("w1")
    squat = partial(ns.register, name, number, ["T1", "X"], cluster=cluster, at=A0, timeout_ms=600_000)
    squat(owner="w1/1", host="127.2.2.2", by=THERE)
    ns.register(owner="w1/2", host="127.1.1.1", by=by)
    assert (ns.addrs(), registrant(ns), timeout_ms(ns)) == ({0: A0}, by.registrant, 120_000)
    assert (set(ns.topics()), connections(ns)) == ({"T1", "T2"}, {"2"})
    assert name == "b1" or ns.addrs(name) == {}
    with refusal(ns):
        ns.register("b2", 0, at=A0, by=THERE)
    with refusal(ns):
        ns.unregister(by=THERE)


def test_a_host_unregisters_its_own_address_though_a_stranger_was_there_first(ns: Namespace) -> None:
    ns.register(by=THERE)
    ns.unregister(by=HOME)
    assert ns.addrs() == {}


def test_no_host_has_its_own_address_where_a_principal_registered_it(ns: Namespace) -> None:
    ns.register(by=P1)
    for by in (HOME, replace(UNNAMED, home=HOME.registrant)):
        with refusal(ns):
            ns.register(version=2, by=by)


def test_while_it_observes_what_a_stranger_registered_at_a_hosts_address_stays(ns: Namespace) -> None:
    ns.register("b2", at=A0, by=THERE)
    ns.register(by=replace(HOME, observes=True))
    assert ns.addrs() == ns.addrs("b2") == {0: A0}


def test_strangers_connections_displace_none_of_the_registrants(ns: Namespace) -> None:
    ns.tick("w1")
    ns.register(by=HERE, owner="w1/1", host="127.1.1.1")
    for number in range(2, 3 + ns.limits.max_owners_of_member):
        ns.register(version=number, by=THERE, owner=f"w1/{number}", host="127.2.2.2")
    assert len(connections(ns)) == ns.limits.max_owners_of_member
    assert "1" in connections(ns)


def test_a_stranger_takes_a_living_broker_into_no_other_cluster(ns: Namespace) -> None:
    """Otherwise whoever may delete the topics of that cluster deletes those of the broker."""
    ns.register(by=HERE)
    with refusal(ns) as error:
        ns.register("b1", 1, cluster="c2", by=THERE)
    assert error.value.holder is not None
    ns.register("b1", 1, by=THERE)
    ns.register("b1", 2, cluster="c2", by=HERE)


@pytest.mark.parametrize(
    ("by", "written"), [(THERE, False), (HERE, True), (replace(THERE, observes=True), True)], ids=str
)
def test_a_member_beside_anothers_master_changes_nothing_of_its_group(
    ns: Namespace, by: Claimant, *, written: bool
) -> None:
    """The smallest id of a group writes its topics, and a number below 0 is smaller than a master's; zone and
    enableActingMaster are those of the last registration."""
    ns.register(topics=["T1", "T2"], by=HERE)
    before = ns.topics()
    for version in (1, 2):
        ns.register(
            "b1",
            -1,
            at=ELSEWHERE,
            topics={"T1": "1,1,2,0", "X": PLAIN},
            acting=True,
            zone="z",
            version=version,
            by=by,
        )
        assert (ns.topics() != before) is written
        stored = ns.store.hmget(ns.keys.broker("b1"), "acting", "zone")
        assert stored == (["1", "z"] if written else ["0", None])


@pytest.mark.parametrize("claimant", [THERE, P2], ids=str)
@pytest.mark.parametrize(
    "act",
    [
        pytest.param(lambda ns, by: ns.register(by=by), id="the same registration"),
        pytest.param(lambda ns, by: ns.register(version=2, by=by), id="another"),
        pytest.param(lambda ns, by: ns.register(at=ELSEWHERE, by=by), id="elsewhere"),
        pytest.param(lambda ns, by: ns.register("b2", at=A0, by=by), id="another name"),
        pytest.param(lambda ns, by: ns.heartbeat(by=by), id="heartbeat"),
        pytest.param(lambda ns, by: ns.unregister(by=by), id="unregistration"),
        pytest.param(lambda ns, by: ns.unregister(cluster="c2", by=by), id="of another cluster"),
        pytest.param(lambda ns, by: set_topic(ns, by), id="217"),
    ],
)
def test_a_principals_member_is_for_that_principal(
    ns: Namespace, claimant: Claimant, act: Callable[[Namespace, Claimant], object]
) -> None:
    ns.register(by=P1)
    with refusal(ns):
        act(ns, claimant)
    act(ns, P1)


def set_topic(ns: Namespace, by: Claimant, *names: str) -> None:
    queues = [QueueData(name, 1, 1, 6, 0) for name in names or ("b1",)]
    ns.run(register_topic(ns.keys, "T9", queues, origin(), claimant=by))


def test_a_topic_of_several_brokers_is_registered_for_all_or_none(ns: Namespace) -> None:
    ns.register("b0", by=HERE)
    ns.register(by=P1)
    with refusal(ns):
        set_topic(ns, THERE, "b0", "b1")
    with refusal(ns):
        set_topic(ns, THERE, *["b0"] * BROKERS_MAX, "b1")
    set_topic(ns, replace(THERE, operates=True), "b0", "b1")


@pytest.mark.parametrize("beside", [THERE, P2], ids=str)
def test_a_topic_of_a_principals_master_is_not_for_a_caller_that_has_registered_beside_it(
    ns: Namespace, beside: Claimant
) -> None:
    ns.register(by=P1)
    for number in (-1, 1):
        ns.register("b1", number, by=beside)
    with refusal(ns):
        set_topic(ns, beside)
    set_topic(ns, P1)


def test_a_principal_with_one_member_of_a_group_without_master_registers_its_topics(ns: Namespace) -> None:
    ns.register("b1", 1, by=P1)
    ns.register("b1", 2, by=P2)
    with refusal(ns):
        set_topic(ns, THERE)
    set_topic(ns, P2)
    ns.register(by=HERE)
    set_topic(ns, P2)


def test_a_lapsed_member_of_a_principal_is_reinstated_by_that_principal_only(ns: Namespace) -> None:
    ns.register(by=P1)
    ns.lapse()
    with refusal(ns):
        ns.heartbeat(by=THERE)
    assert ns.heartbeat(by=P1).version


def test_a_principal_claims_what_a_host_registered_if_its_limits_name_it(ns: Namespace) -> None:
    ns.register(by=HERE)
    with refusal(ns):
        ns.register(at=ELSEWHERE, by=UNNAMED)
    ns.register(by=UNNAMED)
    assert registrant(ns) == "host:127.1.1.1"
    ns.register(by=P1)
    assert registrant(ns) == "principal:p1"
    with refusal(ns):
        ns.register(by=HERE)
    ns.register("b2", by=HERE)
    ns.register("b2", at=ELSEWHERE, by=P1)
    assert ns.addrs("b2") == {0: ELSEWHERE}


def test_a_principal_claims_no_members_address_by_another_name(ns: Namespace) -> None:
    """Its limits name that one, and maybe not the one that the member has."""
    ns.register(by=HERE)
    with refusal(ns):
        ns.register("b2", at=A0, by=P1)
    ns.register("b2", at=A0, by=HERE)
    ns.register("b2", at=A0, version=2, by=P1)
    assert registrant(ns) == "host:127.1.1.1"
    with refusal(ns):
        ns.register("b2", 1, at=A0, by=P1)


def test_an_unregistration_is_for_the_registrant(ns: Namespace) -> None:
    ns.register(by=HERE)
    with refusal(ns) as error:
        ns.unregister(by=THERE)
    assert error.value.holder is not None
    ns.unregister(by=HERE)
    assert ns.addrs() == {}


@pytest.mark.parametrize(("by", "perm"), [(THERE, "6"), (P1, "4")], ids=["a stranger", "its principal"])
def test_a_group_without_master_loses_its_write_bits_to_no_stranger(
    ns: Namespace, by: Claimant, perm: str
) -> None:
    """By an address that it does not have; an operator has given them back."""
    for number in (0, 1):
        ns.register("b1", number, acting=True, by=P1)
    ns.unregister("b1", 0, by=P1)
    assert set(ns.topics().values()) == {"8,8,4,0"}
    ns.run(add_write_perm(ns.keys, "b1", origin()))
    ns.unregister(at="127.9.9.9:1", by=by)
    assert set(ns.topics().values()) == {f"8,8,{perm},0"}


def test_what_an_older_release_registered_is_for_all(ns: Namespace) -> None:
    ns.register(by=HERE)
    ns.store.hdel(ns.keys.member(f"c1:{A0}"), "registrant")
    ns.register(by=THERE)
    assert registrant(ns) == "host:127.2.2.2"


@pytest.mark.parametrize("damage", [b"nothing", b"host:\xff", b""])
def test_a_damaged_registrant_is_replaced_by_the_next_registration(ns: Namespace, damage: bytes) -> None:
    ns.register(by=HERE)
    ns.store.hset(ns.keys.member(f"c1:{A0}"), "registrant", damage)
    with pytest.raises(NotOwner):
        ns.register(at=ELSEWHERE, by=THERE)
    ns.register(version=2, by=THERE)
    assert registrant(ns) == "host:127.2.2.2"


def test_a_lower_state_version_is_what_refuses_first(ns: Namespace) -> None:
    ns.register(state=2, by=HERE)
    assert ns.register(at=ELSEWHERE, state=1, by=THERE).refused


FEW = replace(DEFAULT_LIMITS, max_members_of_broker=3, max_clusters_of_broker=3)


@pytest.mark.parametrize("has_slave", [False, True], ids=["alone", "with a slave"])
@pytest.mark.parametrize("clusters", [("c2",), ("c1", "c2", "c3")], ids=["members", "clusters"])
def test_hosts_that_fill_a_broker_keep_no_principal_away(
    ns: Namespace, clusters: tuple[str, ...], *, has_slave: bool
) -> None:
    """As in the seconds of its restart; what else they have stays."""
    ns.limits = FEW
    if has_slave:
        ns.register("b1", 1, by=P1)
    for number in range(2, 4 + (not has_slave)):
        ns.register(
            "b1", number, at=f"127.9.9.{number}:1", cluster=clusters[number % len(clusters)], by=THERE
        )
    ns.register("b2", 7, at="127.9.9.2:1", cluster=clusters[2 % len(clusters)], by=THERE)
    for by in (HERE, UNNAMED):
        with pytest.raises(LimitReached):
            ns.register(cluster="c9", by=by)
    ns.register(cluster="c1", by=P1)
    assert ns.addrs() == {0: A0} | ({1: address("b1", 1)} if has_slave else {})
    assert ns.addrs("b2") == {7: "127.9.9.2:1"}


@pytest.mark.parametrize(("by", "takes"), [(P1, True), (UNNAMED, False), (HERE, False)], ids=str)
def test_a_strangers_state_version_keeps_no_principal_away(
    ns: Namespace, by: Claimant, *, takes: bool
) -> None:
    """Otherwise a stranger with the highest one has the name of a principal's broker for as long as it likes."""
    ns.register(at=ELSEWHERE, state=1 << 62, by=THERE)
    assert ns.register(by=by).refused is not takes
    assert ns.addrs() == {0: A0 if takes else ELSEWHERE}
    ns.register(at=ELSEWHERE, version=2, state=1 << 62, by=by)
    assert ns.register(version=3, by=by).refused  # as ever among its own


def test_without_the_guard_all_is_as_with_java(ns: Namespace) -> None:
    ns.register(by=P1)
    for act in (ns.heartbeat, ns.register):
        act(by=replace(THERE, guard=False))
    ns.register(at=ELSEWHERE, by=replace(THERE, guard=False))
    ns.unregister(at=ELSEWHERE, by=replace(HERE, guard=False))
    assert ns.addrs() == {}


def test_a_claim_between_decision_and_writing_is_judged_again(ns: Namespace) -> None:
    ns.register(by=HERE)
    taking = Stepped(register(ns.keys, registration(version=2), origin(), claimant=THERE), ns.store)
    assert taking.until("register", lambda call: '"token"' in str(call.args[0]))
    ns.register(by=P1)
    with pytest.raises(NotOwner):
        taking.finish()
    assert registrant(ns) == "principal:p1"


def test_a_large_table_that_is_claimed_meanwhile_leaves_nothing(ns: Namespace) -> None:
    large = registration("b1", 0, MANY, at=ELSEWHERE)
    taking = Stepped(register(ns.keys, large, origin(), claimant=THERE), ns.store)
    assert taking.until("register", lambda call: '"claim"' in str(call.args[0]))
    ns.store.delete(ns.keys.pending("b1"))
    ns.register("b1", by=HERE)
    with pytest.raises(NotOwner):
        taking.finish()
    assert ns.addrs() == {0: A0}
    ns.clean_up()


def test_a_refused_registration_beyond_a_limit_renews_no_lease_of_another(ns: Namespace) -> None:
    ns.register(by=P1)
    lease = ns.store.zscore(ns.keys.leases, f"c1:{A0}")
    ns.next_ms()
    with pytest.raises(LimitReached):
        ns.register(zone="z" * 100_000, by=THERE)
    assert ns.store.zscore(ns.keys.leases, f"c1:{A0}") == lease


def test_only_a_proved_heartbeat_of_a_principals_member_may_be_repeated_by_its_bytes(ns: Namespace) -> None:
    def renewal(by: Claimant) -> bool:
        return ns.heartbeat(by=by).renewal is not None

    ns.register(by=HERE)
    assert renewal(HERE)
    ns.register(by=P1)
    assert not renewal(P1)
    assert renewal(replace(P1, proved=True))


def test_many_heartbeats_of_one_call_are_judged_each(ns: Namespace) -> None:
    ns.register("b1", by=P1)
    ns.register("b2", by=HERE)
    asked = [(name, by) for name in ("b1", "b2") for by in (P1, THERE)]
    asks = [next(renew_lease(ns.keys, "c1", address(name), origin(), claimant=by)) for name, by in asked]
    items = [item for item in asks if isinstance(item, ScriptItem)]
    replies = replies_to(items, ns.run(ask(joined(items))))
    assert [reply[0] for reply in replies] == ["renewed", "owned", "renewed", "renewed"]


def test_a_refusal_says_when_the_member_was_seen_and_whence(ns: Namespace) -> None:
    ns.tick("w1")
    ns.register(by=HERE, owner="w1/1", host="127.1.1.1")
    ns.store.hset(ns.keys.member(f"c1:{A0}"), "owner:dead/7", "127.3.3.3")
    with refusal(ns) as error:
        ns.register(at=ELSEWHERE, by=THERE)
    holder = error.value.holder
    assert holder is not None
    assert holder.connected
    assert set(holder.hosts) == {"127.1.1.1", "127.3.3.3"}
    assert holder.lease_ms == ns.store.zscore(ns.keys.leases, f"c1:{A0}")
    assert abs(holder.now_ms - ns.now_ms()) < 5000


def test_a_member_with_connections_of_dead_workers_only_is_removed(ns: Namespace) -> None:
    ns.tick("w1")
    ns.register(by=HERE, owner="w1/1", host="127.1.1.1")
    lease = int(ns.store.zscore(ns.keys.leases, f"c1:{A0}"))
    gone = Disconnected("c1", A0, ns.now_ms(), lease)
    ns.run(remove_disconnected(ns.keys, gone, "lost", origin()))
    assert ns.addrs() == {0: A0}
    ns.store.zrem(ns.keys.workers, "w1")
    ns.run(remove_disconnected(ns.keys, gone, "lost", origin()))
    assert ns.addrs() == {}


def test_a_refusal_is_an_event_once_a_minute_for_each_member_and_claimant(ns: Namespace) -> None:
    now = 0.0
    reported = ReportedRefusals(lambda: now)
    here, there = replace(HERE, reported=reported), replace(THERE, reported=reported)
    ns.register(by=P1)
    ns.new_entries()
    for _ in range(3):
        for by in (here, there):
            with pytest.raises(NotOwner):
                ns.register(at=ELSEWHERE, by=by)
    with pytest.raises(NotOwner):
        ns.heartbeat(by=here)
    entries = ns.new_entries()
    assert [f"{entry.kind} {entry.cause}" for entry in entries] == ["conflict_seen ownership"] * 2
    said = {field: entries[0].get(field) for field in ("cluster", "broker", "id", "addr", "action", "holder")}
    assert json.loads(said.pop("holder")) == {"addr": A0, "cluster": "c1"}
    assert said == {"cluster": "c1", "broker": "b1", "id": "0", "addr": ELSEWHERE, "action": "refused"}
    now = 61.0
    with pytest.raises(NotOwner):
        ns.heartbeat(by=here)
    with pytest.raises(NotOwner):
        ns.unregister(by=here)
    with pytest.raises(NotOwner):
        set_topic(ns, here)
    assert len(ns.new_entries()) == 1


def test_names_and_ids_that_a_claimant_makes_up_are_no_events_of_their_own(ns: Namespace) -> None:
    there = replace(THERE, reported=ReportedRefusals(lambda: 0.0))
    ns.register(by=P1)
    ns.new_entries()
    for number in range(1, 4):
        with pytest.raises(NotOwner):
            ns.register(f"made-up-{number}", at=A0, by=there)
        with pytest.raises(NotOwner):
            ns.register("b1", number, at=A0, by=there)
        with pytest.raises(NotOwner):
            ns.unregister("b1", number, at=A0, by=there)
    assert len(ns.new_entries()) == 1


@pytest.mark.parametrize(
    ("ask_for", "kinds"),
    [
        (lambda ns, by: ns.heartbeat(by=by), []),
        (lambda ns, by: set_topic(ns, by), ["topics_changed"]),
        (lambda ns, by: ns.unregister(by=by), ["broker_removed"]),
        (lambda ns, by: ns.register(at=ELSEWHERE, by=by), ["broker_removed", "broker_registered"]),
    ],
    ids=["heartbeat", "topic", "unregistration", "registration"],
)
def test_while_it_observes_what_is_refused_is_done_and_reported(
    ns: Namespace, ask_for: Callable[[Namespace, Claimant], object], kinds: list[str]
) -> None:
    ns.register(by=P1)
    with refusal(ns):
        ask_for(ns, THERE)
    ns.new_entries()
    ask_for(ns, replace(THERE, observes=True, reported=ReportedRefusals(lambda: 0.0)))
    reported, *done = ns.new_entries()
    assert (reported.kind, reported.cause, reported.get("action")) == (
        "conflict_seen",
        "ownership",
        "accepted",
    )
    assert [entry.kind for entry in done] == kinds


def test_what_a_process_notes_of_refusals_is_bounded() -> None:
    reported = ReportedRefusals(lambda: 0.0)
    for number in range(20_000):
        assert reported.is_new("c", f"a-{number}", "host:1")
    assert len(reported._until) < 10_000
    assert reported.is_new("c", "a-0", "host:1")
    assert not reported.is_new("c", "a-19999", "host:1")
