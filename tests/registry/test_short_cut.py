"""An unchanged registration costs one short script; anything that may have changed the tables costs more."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace
from zlib_ng.zlib_ng import crc32

from registry.errors import RegistryError
from registry.kv import put
from registry.queue_data.rewrite import add_write_perm, wipe_write_perm
from registry.registration.register import Registered, register
from registry.registration.request import signature
from registry.topics import delete_topic, register_topic
from rocketmq_remoting.route import QueueData
from tests.registry.brokers import address, mapping_info, origin, registration
from tests.registry.namespace import Namespace
from tests.registry.steps import Stepped

Said = dict[str, Any]


def requests(ns: Namespace, said: Said, owner: str | None = None, delete_missing: bool = False) -> int:
    """How many requests a registration needs of Redis."""
    asked = registration(**said)
    plan: Stepped[Registered] = Stepped(
        register(ns.keys, asked, origin(), owner=owner, delete_missing=delete_missing), ns.store
    )
    count = 0
    while plan.request is not None:
        plan.step()
        count += 1
    return count


@pytest.mark.parametrize(
    "said",
    [
        pytest.param({}, id="5.x"),
        pytest.param({"header": 373}, id="4.x"),
        pytest.param({"header": 36}, id="before 3.0.11"),
        pytest.param({"compressed": True}, id="compressed"),
        pytest.param({"topics": ()}, id="without topics"),
        pytest.param({"number": 1}, id="old slave"),
        pytest.param({"number": 1, "acting": True}, id="acting slave"),
        pytest.param({"mappings": [mapping_info("T1")]}, id="static topics"),
        pytest.param({"filters": ("f:1",)}, id="filter servers"),
        pytest.param({"cluster": "a:b%c"}, id="a cluster that is percent-encoded"),
    ],
)
def test_an_unchanged_registration_is_one_script_and_no_entry(ns: Namespace, said: Said) -> None:
    for stamp in range(3):
        count = requests(ns, {**said, "stamp": stamp})
        causes = ns.new_causes()
    assert (count, causes) == (1, [])


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"topics": ("T1", "T3")}, id="topics"),
        pytest.param({"version": 2}, id="data version"),
        pytest.param({"state": 1}, id="state version"),
        pytest.param({"ha": "127.1.1.1:1"}, id="HA address"),
        pytest.param({"zone": "z"}, id="zone"),
        pytest.param({"acting": False}, id="acting master"),
        pytest.param({"timeout_ms": 60_000}, id="timeout"),
        pytest.param({"filters": ("f:1",)}, id="filter servers"),
        pytest.param({"mappings": [mapping_info("T1")]}, id="static topics"),
        pytest.param({"header": 373}, id="header version"),
        pytest.param({"number": 1}, id="broker id"),
        pytest.param({"name": "b2"}, id="broker name"),
        pytest.param({"cluster": "c2"}, id="cluster"),
    ],
)
def test_whatever_differs_is_seen(ns: Namespace, change: Said) -> None:
    base: Said = {"at": address("b1")}
    requests(ns, base)
    assert requests(ns, {**base, **change}) > 1
    assert requests(ns, {**base, **change}) == 1


def delete_everywhere(ns: Namespace) -> None:
    ns.run(delete_topic(ns.keys, "T1", "", origin()))


def delete_in_cluster(ns: Namespace) -> None:
    ns.run(delete_topic(ns.keys, "T1", "c1", origin()))


def set_topic(ns: Namespace) -> None:
    ns.run(register_topic(ns.keys, "T1", [QueueData("b1", 1, 1, 6, 0)], origin()))


def wipe(ns: Namespace) -> None:
    ns.run(wipe_write_perm(ns.keys, "b1", origin()))


def restore(ns: Namespace) -> None:
    ns.store.hset(ns.keys.member(f"c1:{address('b1')}"), "untouched", "1")
    ns.run(add_write_perm(ns.keys, "b1", origin()))


def new_slave(ns: Namespace) -> None:
    ns.register("b1", 1)


@pytest.mark.parametrize(
    ("on_the_side", "topics"),
    [
        pytest.param(delete_everywhere, {"T1": "8,8,7,0", "T2": "8,8,7,0"}, id="216 everywhere"),
        pytest.param(delete_in_cluster, {"T1": "8,8,7,0", "T2": "8,8,7,0"}, id="216 in a cluster"),
        pytest.param(set_topic, {"T1": "1,1,6,0", "T2": "8,8,7,0"}, id="217"),
        pytest.param(wipe, {"T1": "8,8,5,0", "T2": "8,8,5,0"}, id="205"),
        pytest.param(restore, {"T1": "8,8,6,0", "T2": "8,8,6,0"}, id="327"),
        pytest.param(new_slave, {"T1": "8,8,7,0", "T2": "8,8,7,0"}, id="another member"),
    ],
)
def test_after_a_change_on_the_side_it_is_looked_at_once(
    ns: Namespace, on_the_side: Callable[[Namespace], None], topics: dict[str, str]
) -> None:
    said: Said = {"topics": dict.fromkeys(("T1", "T2"), "8,8,7,0")}
    requests(ns, said)
    on_the_side(ns)
    assert requests(ns, said) > 1
    assert requests(ns, said) == 1
    assert ns.topics() == topics


def test_a_new_version_gives_back_what_205_took(ns: Namespace) -> None:
    ns.register()
    wipe(ns)
    ns.register(version=2)
    assert ns.topics() == {"T1": "8,8,6,0", "T2": "8,8,6,0"}


def test_a_repeated_wipe_is_no_change(ns: Namespace) -> None:
    ns.register()
    wipe(ns)
    requests(ns, {})
    wipe(ns)
    assert requests(ns, {}) == 1


def test_every_connection_becomes_an_owner(ns: Namespace) -> None:
    ns.tick("w1")
    ns.tick("w2")
    counts = [requests(ns, {}, owner) for owner in ("w1/1", "w1/1", "w2/1", "w1/1", "w2/1")]
    assert [count == 1 for count in counts] == [False, True, False, True, True]


@pytest.mark.parametrize(
    ("said", "known"),
    [
        pytest.param({}, True, id="5.x"),
        pytest.param({"header": 373}, True, id="4.x"),
        pytest.param({"header": 36}, False, id="before 3.0.11"),
        pytest.param({"compressed": True}, False, id="compressed"),
    ],
)
def test_it_can_be_repeated_where_the_stamp_is_no_part_of_its_signature(
    ns: Namespace, said: Said, known: bool
) -> None:
    first = ns.register(**said).renewal
    again = [ns.register(**{**said, "stamp": stamp}).renewal for stamp in (1, 2)]
    assert [first, first] == again
    assert (first is not None) == known


def test_the_option_to_delete_topics_is_part_of_the_signature(ns: Namespace) -> None:
    ns.register(topics=("T1", "T2", "T3"))
    ns.run(register_topic(ns.keys, "T4", [QueueData("b1", 1, 1, 6, 0)], origin()))
    requests(ns, {"topics": ("T1", "T2", "T3")})
    assert requests(ns, {"topics": ("T1", "T2", "T3")}, delete_missing=True) > 1
    assert set(ns.topics()) == {"T1", "T2", "T3"}


def test_the_short_cut_answers_like_the_long_way(ns: Namespace) -> None:
    ns.run(put(ns.keys, "ORDER_TOPIC_CONFIG", "T1", "b1:4", origin()))
    ns.register(ha="127.1.1.1:10912")
    long, short = ns.register("b1", 1), ns.register("b1", 1)
    assert (long.order_table, long.master_address) == ({"T1": "b1:4"}, address("b1"))
    assert (short.order_table, short.master_address, short.ha_address, short.event_id) == (
        long.order_table,
        long.master_address,
        long.ha_address,
        "",
    )


def test_infos_that_wait_for_a_new_version_are_written_with_it(ns: Namespace) -> None:
    for version, epoch in ((1, 1), (1, 2), (2, 2)):
        ns.register(mappings=[mapping_info("T1", epoch=epoch)], version=version)
    assert ns.route("T1").topic_queue_mapping_by_broker == {"b1": mapping_info("T1", epoch=2)}


def test_a_slave_that_has_become_prime_adds_what_the_master_lacked(ns: Namespace) -> None:
    ns.register(acting=False)
    for _ in range(2):
        ns.register("b1", 1, ("T1", "T2", "T3"), acting=False)
    ns.lapse()
    ns.register("b1", 1, ("T1", "T2", "T3"), acting=False)
    assert set(ns.topics()) == {"T1", "T2", "T3"}


@pytest.mark.parametrize("interrupted_at", range(3))
def test_a_table_broken_off_half_way_is_written_the_next_time(ns: Namespace, interrupted_at: int) -> None:
    many = [f"T{number}" for number in range(1100)]
    ns.register("b1", 1, many, acting=True)
    becomes_master = registration("b1", 0, many, acting=True, at=address("b1", 1))
    plan = Stepped(register(ns.keys, becomes_master, origin()), ns.store)
    plan.until("write_slice")
    for _ in range(interrupted_at):
        plan.step()
    ns.run(register(ns.keys, becomes_master, origin()))
    assert set(ns.topics().values()) == {"8,8,6,0"}


def test_a_version_counts_as_unknown_until_all_of_it_is_written(ns: Namespace) -> None:
    many = [f"T{number}" for number in range(1100)]
    ns.register(topics=many)
    plan = Stepped(
        register(ns.keys, registration(topics=dict.fromkeys(many, "4,4,6,0"), version=2), origin()), ns.store
    )
    seen = []
    while plan.request is not None:
        plan.step()
        version = ns.heartbeat().version
        seen.append(version.counter if version else None)
    assert (seen[0], seen[-2:]) == (1, [1, 2])
    versions = [f"{event.kind} {event.get('dv')[-1:]}" for event in ns.new_entries()][-3:]
    assert versions == ["topics_changed ", "topics_changed ", "topics_changed 2"]


def test_tables_that_change_all_the_time_are_given_up(ns: Namespace) -> None:
    many = [f"T{number}" for number in range(600)]
    ns.register(topics=many)
    said = registration(topics=dict.fromkeys(many, "4,4,6,0"), version=2)
    plan = Stepped(register(ns.keys, said, origin()), ns.store)
    while plan.until("register"):
        ns.store.hincrby(ns.keys.broker("b1"), "gen", 1)
        plan.step()
    with pytest.raises(RegistryError):
        plan.finish()


@pytest.mark.parametrize("of_java", [True, False], ids=["as Java writes it", "otherwise"])
def test_a_checksum_that_was_compared_leads_to_the_same_signature(of_java: bool) -> None:
    first = registration(topics=[f"T{number}" for number in range(300)])
    if not of_java:
        first = replace(first, body=b" " + first.body)
    given = signature(first, delete_missing=False)
    assert signature(replace(first, crc=crc32(first.body)), delete_missing=False) == given
    assert (given.version is not None) == of_java
