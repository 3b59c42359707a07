"""What a registration makes of the tables, as RocketMQ 5.x RouteInfoManager.registerBroker does it."""

from typing import Any

import pytest

from registry.errors import BrokerBusy, RegistrationRefused
from registry.keys import ORDER_TOPIC_CONFIG, member_key
from registry.kv import delete, put
from registry.registration.register import register
from rocketmq_remoting.errors import BodyError
from tests.registry.brokers import PLAIN, address, mapping_info, origin, registration
from tests.registry.namespace import Namespace
from tests.registry.steps import Stepped

READ_ONLY = "8,8,4,0"
OTHER = "4,4,6,1"
A0, A1, A2 = (address("b1", number) for number in range(3))
ELSEWHERE = "127.77.0.1:10911"


class Says:
    """One registration of broker b1, as `tests.registry.brokers.registration` takes it."""

    def __init__(self, number: int = 0, topics: Any = ("T1", "T2"), **rest: Any) -> None:
        self.number, self.topics, self.rest = number, topics, rest

    def to(self, ns: Namespace) -> None:
        ns.register("b1", self.number, self.topics, **self.rest)


def plain(*topics: str) -> dict[str, str]:
    return dict.fromkeys(topics, PLAIN)


@pytest.mark.parametrize(
    ("steps", "addrs", "topics"),
    [
        pytest.param([Says()], {0: A0}, plain("T1", "T2"), id="first"),
        pytest.param([Says(topics=())], {0: A0}, {}, id="first, without topics"),
        pytest.param(
            [Says(), Says(topics={"T1": OTHER}, version=2)],
            {0: A0},
            {"T1": OTHER, "T2": PLAIN},
            id="new version: what it has is replaced, what it lacks stays",
        ),
        pytest.param(
            [Says(version=5), Says(topics={"T1": OTHER, "T2": OTHER}, version=4)],
            {0: A0},
            {"T1": OTHER, "T2": OTHER},
            id="an older version is a change too",
        ),
        pytest.param(
            [Says(state=1), Says(topics={"T1": OTHER, "T2": OTHER}, state=0)],
            {0: A0},
            {"T1": OTHER, "T2": OTHER},
            id="a version that differs by stateVersion only is a change",
        ),
        pytest.param(
            [Says(), Says(topics={"T1": OTHER, "T3": OTHER})],
            {0: A0},
            {"T1": PLAIN, "T2": PLAIN, "T3": OTHER},
            id="same version: missing topics are added, others kept",
        ),
        pytest.param(
            [Says(), Says(topics=("T3",), version=2)],
            {0: A0},
            plain("T1", "T2", "T3"),
            id="an increment of one topic",
        ),
        pytest.param(
            [Says(), Says(1, {"T1": OTHER, "S": OTHER})],
            {0: A0, 1: A1},
            plain("T1", "T2"),
            id="an old slave writes no topics",
        ),
        pytest.param(
            [Says(), Says(1, {"T1": OTHER, "S": OTHER}, acting=False)],
            {0: A0, 1: A1},
            plain("T1", "T2"),
            id="a 5.x slave under a master writes no topics",
        ),
        pytest.param(
            [Says(1, acting=False)], {1: A1}, plain("T1", "T2"), id="prime slave, not acting: writable"
        ),
        pytest.param(
            [Says(1, acting=True)],
            {1: A1},
            dict.fromkeys(("T1", "T2"), READ_ONLY),
            id="prime slave, acting: without write bit",
        ),
        pytest.param([Says(1)], {1: A1}, {}, id="an old slave alone"),
        pytest.param(
            [Says(1, acting=False), Says(2, {"T1": OTHER, "T9": OTHER}, acting=False)],
            {1: A1, 2: A2},
            plain("T1", "T2"),
            id="the greater of two slaves writes no topics",
        ),
        pytest.param(
            [Says(2, acting=False), Says(1, {"T1": OTHER, "T3": OTHER}, acting=False)],
            {1: A1, 2: A2},
            {"T1": OTHER, "T2": PLAIN, "T3": OTHER},
            id="a smaller slave becomes prime",
        ),
        pytest.param(
            [Says(1, acting=True), Says(0, acting=True)],
            {0: A0, 1: A1},
            plain("T1", "T2"),
            id="a master joins an acting slave: writable again",
        ),
        pytest.param(
            [Says(1, acting=True), Says(0, acting=True, at=A1)],
            {0: A1},
            plain("T1", "T2"),
            id="slave becomes master on the same address",
        ),
        pytest.param(
            [Says(0), Says(1, acting=True, at=A0)],
            {1: A0},
            dict.fromkeys(("T1", "T2"), READ_ONLY),
            id="master becomes slave on the same address",
        ),
        pytest.param(
            [Says(0), Says(0, {"T1": OTHER, "T3": OTHER}, at=ELSEWHERE)],
            {0: ELSEWHERE},
            {"T1": OTHER, "T2": PLAIN, "T3": OTHER},
            id="another address takes the id, with the same version",
        ),
        pytest.param(
            [Says(0, state=2), Says(0, {"T1": OTHER, "T3": OTHER}, at=ELSEWHERE, state=2)],
            {0: ELSEWHERE},
            {"T1": OTHER, "T2": PLAIN, "T3": OTHER},
            id="equal state versions: the newcomer takes the place",
        ),
        pytest.param(
            [Says(0, state=2), Says(0, {"T1": OTHER, "T3": OTHER}, at=ELSEWHERE, state=1)],
            {0: A0},
            plain("T1", "T2"),
            id="lower state version: the newcomer is refused",
        ),
        pytest.param(
            [Says(0), Says(0, {"T1": OTHER, "T3": OTHER}, cluster="c2")],
            {0: A0},
            {"T1": OTHER, "T2": PLAIN, "T3": OTHER},
            id="the same address from another cluster",
        ),
    ],
)
def test_tables_after_registrations(
    ns: Namespace, steps: list[Says], addrs: dict[int, str], topics: dict[str, str]
) -> None:
    for step in steps:
        step.to(ns)
    assert (ns.addrs(), ns.topics()) == (addrs, topics)


@pytest.mark.parametrize(
    ("before", "newcomer"),
    [
        pytest.param([], Says(0, ("T1",)), id="the first of a name"),
        pytest.param([], Says(0, ("S",), mappings=[mapping_info("S")]), id="with a static topic"),
        pytest.param([Says()], Says(1, ("T1",)), id="an old slave"),
        pytest.param([Says()], Says(1, ("T1",), acting=True), id="a 5.x slave"),
        pytest.param([Says(1)], Says(0, ("T1",), at=A1), id="a slave that becomes master"),
    ],
)
def test_a_newcomer_with_one_topic_is_refused_and_leaves_no_trace(
    ns: Namespace, before: list[Says], newcomer: Says
) -> None:
    for step in before:
        step.to(ns)
    ns.new_entries()
    before_addrs, keys_before = ns.addrs(), set(ns.store.scan_iter("*"))
    with pytest.raises(RegistrationRefused):
        newcomer.to(ns)
    assert (ns.addrs(), set(ns.store.scan_iter("*")), ns.new_causes()) == (before_addrs, keys_before, [])


def test_one_topic_of_another_address_takes_an_id_that_is_held(ns: Namespace) -> None:
    ns.register()
    ns.register(topics=("T3",), at=ELSEWHERE)
    assert (ns.addrs(), ns.topics()) == ({0: ELSEWHERE}, plain("T1", "T2", "T3"))


@pytest.mark.parametrize("number", [0, 1])
def test_a_body_that_cannot_be_read_changes_nothing(ns: Namespace, number: int) -> None:
    ns.register()
    ns.new_entries()
    with pytest.raises(BodyError):
        ns.register("b1", number, ("T1", "T2", "T3"), version=2, cut=3)
    assert (ns.addrs(), ns.new_causes()) == ({0: A0}, [])


def test_a_refused_newcomer_changes_neither_zone_nor_acting_flag(ns: Namespace) -> None:
    ns.register(state=2, zone="z1", acting=True)
    answer = ns.register(at=ELSEWHERE, state=1, zone="z2", acting=False)
    data = ns.route("T1").broker_datas[0]
    assert (answer.refused, answer.master_address, data.zone_name, data.enable_acting_master) == (
        True,
        None,
        "z1",
        True,
    )


def test_acting_flag_and_zone_are_those_of_the_last_registration(ns: Namespace) -> None:
    ns.register(zone="z1", acting=True)
    ns.register("b1", 1)
    data = ns.route("T1").broker_datas[0]
    assert (data.zone_name, data.enable_acting_master) == (None, False)


def test_an_unchanged_registration_brings_its_flag_and_zone_back(ns: Namespace) -> None:
    for _ in range(2):
        ns.register()
        ns.register("b1", 1, acting=True, zone="z1")
    data = ns.route("T1").broker_datas[0]
    assert (data.zone_name, data.enable_acting_master) == ("z1", True)


def test_filter_servers_are_replaced_removed_and_left_alone(ns: Namespace) -> None:
    seen = []
    for version, filters in enumerate([("f:1",), None, ("f:2", "f:3"), ()], start=1):
        ns.register(filters=filters, version=version)
        seen.append(ns.route("T1").filter_server_table.get(A0))
    assert seen == [("f:1",), ("f:1",), ("f:2", "f:3"), None]


def test_filter_servers_of_an_old_slave_are_kept(ns: Namespace) -> None:
    ns.register()
    ns.register("b1", 1, filters=("f:1",))
    assert ns.route("T1").filter_server_table == {A1: ("f:1",)}


def test_no_order_topics_are_not_the_same_as_none_left(ns: Namespace) -> None:
    answers = [ns.register(), ns.register()]
    ns.run(put(ns.keys, ORDER_TOPIC_CONFIG, "T1", "b1:4", origin()))
    answers += [ns.register(), ns.register(version=2)]
    ns.run(delete(ns.keys, ORDER_TOPIC_CONFIG, "T1", origin()))
    answers += [ns.register(version=2), ns.register(version=3)]
    full = {"T1": "b1:4"}
    assert [answer.order_table for answer in answers] == [None, None, full, full, {}, {}]


def test_a_slave_learns_of_its_living_master(ns: Namespace) -> None:
    answers = [ns.register("b1", 1)]
    ns.register(ha="127.1.1.1:10912")
    answers += [ns.register("b1", 1), ns.register("b1", 1)]
    ns.lapse()
    answers += [ns.register("b1", 1)]
    masters = [(answer.master_address, answer.ha_address) for answer in answers]
    assert masters == [(None, None), (A0, "127.1.1.1:10912"), (A0, "127.1.1.1:10912"), (None, None)]


def test_the_reply_to_a_master_names_no_master(ns: Namespace) -> None:
    ns.register(ha="127.1.1.1:10912")
    assert ns.register(ha="127.1.1.1:10912").master_address is None


def test_a_name_of_two_clusters_keeps_the_first_and_is_listed_by_both(ns: Namespace) -> None:
    ns.register()
    ns.register("b1", 1, cluster="c2")
    assert ns.route("T1").broker_datas[0].cluster == "c1"
    assert ns.store.smembers(ns.keys.clusters) == {"c1", "c2"}
    ns.unregister()
    assert ns.store.smembers(ns.keys.cluster("c1")) == {"b1"}
    ns.unregister("b1", 1, cluster="c2")
    assert ns.store.smembers(ns.keys.clusters) == set()


def test_an_address_under_two_names_shares_its_lease(ns: Namespace) -> None:
    ns.register()
    ns.register("b2", at=A0)
    ns.lapse()
    assert ns.expire() == 1
    assert ns.store.smembers(ns.keys.brokers) == set()


def test_topics_that_a_registration_lacks_go_with_the_option(ns: Namespace) -> None:
    ns.register(topics=("T1", "T2", "T3"))
    ns.register(topics=("T2", "T4"), delete_missing=True)
    assert ns.topics() == plain("T2", "T4")
    assert ns.store.smembers(ns.keys.topics) == {"T2", "T4"}


def test_the_option_spares_the_topics_of_others(ns: Namespace) -> None:
    ns.register(topics=("T1", "T2"))
    ns.register("b2", topics=("T1", "T2"))
    ns.register(topics=("T3", "T4"), version=2, delete_missing=True)
    assert (ns.topics(), ns.topics("b2")) == (plain("T3", "T4"), plain("T1", "T2"))


def test_the_option_deletes_nothing_beside_static_topics(ns: Namespace) -> None:
    ns.register()
    ns.register(topics=("S1", "S2"), mappings=[mapping_info("S1")], version=2, delete_missing=True)
    assert set(ns.topics()) == {"T1", "T2", "S1", "S2"}


def test_static_topics_come_with_a_new_version_and_go_with_the_broker(ns: Namespace) -> None:
    info, other = mapping_info("S1"), mapping_info("S1", epoch=2)
    seen = []
    for version, mappings in ((1, [info]), (1, [other]), (2, [other]), (3, [])):
        ns.register(topics=("S1", "S2"), mappings=mappings, version=version, stamp=version)
        seen.append(ns.route("S1").topic_queue_mapping_by_broker)
    assert seen == [{"b1": info}, {"b1": info}, {"b1": other}, {"b1": other}]
    ns.unregister()
    assert not ns.store.exists(ns.keys.mapping("S1"), ns.keys.mappings_of("b1"))


def test_infos_of_another_broker_are_not_stored(ns: Namespace) -> None:
    ns.register(topics=("S1", "S2"), mappings=[mapping_info("S1", "b2")])
    assert ns.route("S1").topic_queue_mapping_by_broker is None


def test_a_version_without_timestamp_is_of_this_very_moment(ns: Namespace) -> None:
    ns.register(without=b',"timestamp":1700000000000')
    ns.next_ms()
    ns.register(topics=dict.fromkeys(("T1", "T2"), OTHER), without=b',"timestamp":1700000000000')
    assert ns.topics() == dict.fromkeys(("T1", "T2"), OTHER)


@pytest.mark.parametrize(("header", "compressed"), [(373, False), (373, True), (479, True), (36, False)])
def test_every_layout_of_a_body(ns: Namespace, header: int, compressed: bool) -> None:
    for version in (1, 1, 2):
        ns.register(header=header, compressed=compressed, version=version)
    assert ns.topics() == plain("T1", "T2")


@pytest.mark.parametrize(("number", "at"), [(1, address("elsewhere")), (2, address("b1", 1))])
def test_a_place_that_a_registration_takes_is_no_loss_of_the_group(
    ns: Namespace, number: int, at: str
) -> None:
    """Java clears write bits for a removal (104, a lapse), not for an address or an id that is replaced."""
    ns.register("b1", 1, {"T1": "8,8,6,0", "T2": "8,8,6,0"}, acting=False)
    ns.register("b1", number, (), at=at, acting=True, version=2)
    ns.clean_up()
    assert [data.perm for data in ns.route("T1").queue_datas] == [6]


def test_a_broker_that_others_keep_changing_stays_with_what_it_had(ns: Namespace) -> None:
    """Any peer may set queue data of its name (217), as often as it likes."""
    ns.register()
    member = member_key("c1", A0)
    ns.store.zincrby(ns.keys.leases, -10_000, member)
    before = ns.store.zscore(ns.keys.leases, member)
    plan = Stepped(register(ns.keys, registration(topics=("T1", "T9"), version=2), origin()), ns.store)
    while plan.request is not None:
        ns.store.hincrby(ns.keys.broker("b1"), "gen", 1)
        plan.step()
    assert isinstance(plan.error, BrokerBusy)
    assert ns.store.zscore(ns.keys.leases, member) > before
