"""Limits of growth: what is beyond is refused with nothing written, and registered brokers stay."""

from collections.abc import Callable
from math import inf
from typing import Any

import pytest
from msgspec.structs import replace

from registry.access_uses import CREDENTIALS_MOST, note_uses
from registry.clusters import cluster_info
from registry.drains import Drain, drain, drained_brokers, drained_names
from registry.dry_run import DryRun
from registry.errors import ConfigNotFound, LimitReached, NotOwner
from registry.growth.limits import DEFAULT_LIMITS, Limits
from registry.keys import ORDER_TOPIC_CONFIG, member_key
from registry.kv import delete, import_table, put, replace_table, table
from registry.members import brokers as members_of_brokers
from registry.options.catalogue import BY_KEY, GROWTH_LIMITS, Options
from registry.ownership import Claimant, ReportedRefusals
from registry.plans import Batch, Plan, ScriptCall, ScriptItem
from registry.queue_data.rewrite import wipe_write_perm
from registry.registration.heartbeat import log_heartbeat, renew_lease
from registry.registration.register import Registered, register
from registry.removal import release_owner
from registry.repair.state import Repaired
from registry.repair.walk import Walk
from registry.scripts import LUA
from registry.settings import announce_start
from registry.topics import delete_topic, register_topic
from rocketmq_remoting.route import QueueData
from tests.registry.brokers import address, mapping_info, origin, registration
from tests.registry.checkpoints import a_round
from tests.registry.namespace import Namespace

A0 = address("b1")
MANY = [f"T{number}" for number in range(1200)]
"""Topics of a first registration in several scripts."""


def tight(**limits: int) -> Limits:
    return replace(DEFAULT_LIMITS, **limits)


def sent(ns: Namespace, limits: Limits, *args: Any, owner: str | None = None, **kwargs: Any) -> Registered:
    return ns.run(register(ns.keys, registration(*args, **kwargs), origin(), owner=owner, limits=limits))


def names_of_a_member(ns: Namespace, limits: Limits, number: int) -> None:
    sent(ns, limits, f"b{number}", at=A0)


def clusters_of_a_broker(ns: Namespace, limits: Limits, number: int) -> None:
    sent(ns, limits, "b1", number, cluster=f"c{number}")


def members_of_a_broker(ns: Namespace, limits: Limits, number: int) -> None:
    sent(ns, limits, "b1", number)


def brokers(ns: Namespace, limits: Limits, number: int) -> None:
    sent(ns, limits, f"b{number}")


def brokers_of_many_topics(ns: Namespace, limits: Limits, number: int) -> None:
    sent(ns, limits, f"b{number}", topics=MANY)


def topics_of_a_broker(ns: Namespace, limits: Limits, number: int) -> None:
    sent(ns, limits, topics=[f"T{n}" for n in range(2 * number)], version=number)


def static_topics(ns: Namespace, limits: Limits, number: int) -> None:
    infos = [mapping_info(f"S{n}") for n in range(2 * number)]
    sent(ns, limits, mappings=infos, version=number)


def topics(ns: Namespace, limits: Limits, number: int) -> None:
    sent(ns, limits, f"b{number}", topics=[f"{number}A", f"{number}B"])


def topics_by_217(ns: Namespace, limits: Limits, number: int) -> None:
    if number == 1:
        sent(ns, DEFAULT_LIMITS, topics=("T1", "T2"))
        return
    for half in "AB":
        queues = [QueueData("b1", 8, 8, 6, 0)]
        ns.run(register_topic(ns.keys, f"T{number}{half}", queues, origin(), limits))


def drains(ns: Namespace, limits: Limits, number: int) -> None:
    if number == 1:
        for other in range(1, 5):
            sent(ns, DEFAULT_LIMITS, f"b{other}")
    ns.run(drain(ns.keys, f"b{number}", Drain("me", "repair"), origin(), limits))


def kv_namespaces(ns: Namespace, limits: Limits, number: int) -> None:
    ns.run(put(ns.keys, f"n{number}", "k", "v", origin(), limits=limits))


def kv_keys(ns: Namespace, limits: Limits, number: int) -> None:
    ns.run(put(ns.keys, "n", f"k{number}", "v", origin(), limits=limits))


def kv_bytes(ns: Namespace, limits: Limits, number: int) -> None:
    ns.run(put(ns.keys, "n", f"k{number}", "v" * 8, origin(), limits=limits))


def kv_bytes_of_a_key(ns: Namespace, limits: Limits, number: int) -> None:
    ns.run(put(ns.keys, "n", "k", "v" * 8 * number, origin(), limits=limits))


@pytest.mark.parametrize(
    ("grow", "option", "most"),
    [
        (names_of_a_member, "maxNamesOfMember", 3),
        (clusters_of_a_broker, "maxClustersOfBroker", 3),
        (members_of_a_broker, "maxMembersOfBroker", 3),
        (brokers, "maxBrokers", 3),
        (brokers_of_many_topics, "maxBrokers", 3),
        (topics_of_a_broker, "maxTopicsOfBroker", 6),
        (static_topics, "maxTopicsOfBroker", 6),
        (topics, "maxTopics", 6),
        (topics_by_217, "maxTopics", 6),
        (topics_by_217, "maxTopicsOfBroker", 6),
        (drains, "maxBrokers", 3),
        (members_of_a_broker, "maxEntryBytes", 80),
        (kv_namespaces, "maxKvNamespaces", 3),
        (kv_keys, "maxKvKeys", 3),
        (kv_bytes, "maxKvNamespaceBytes", 30),
        (kv_bytes_of_a_key, "maxKvNamespaceBytes", 30),
    ],
)
def test_what_grows_beyond_a_limit_is_refused(
    ns: Namespace, grow: Callable[[Namespace, Limits, int], None], option: str, most: int
) -> None:
    """Three times all is well; the fourth time nothing is written, and the third may be sent again."""
    limits = tight(**{BY_KEY[option].name: most})
    for number in range(1, 4):
        grow(ns, limits, number)
    ns.clean_up()
    ns.new_entries()
    with pytest.raises(LimitReached, match=rf"{option}={most}\b") as refused:
        grow(ns, limits, 4)
    assert refused.value.option == option
    assert ns.new_causes() == []
    grow(ns, limits, 3)


@pytest.mark.parametrize(
    ("option", "number", "change"),
    [
        ("maxNameBytes", 6, {"name": "a-name"}),
        ("maxNameBytes", 6, {"name": "é" * 3}),
        ("maxNameBytes", 6, {"cluster": "a-name"}),
        ("maxNameBytes", 6, {"zone": "a-name"}),
        ("maxNameBytes", 6, {"topics": ("T1", "a-name")}),
        ("maxNameBytes", 6, {"mappings": [mapping_info("a-name")]}),
        ("maxAddressBytes", 15, {"at": "127.77.0.1:1091"}),
        ("maxAddressBytes", 15, {"ha": "127.77.0.1:1091", "at": "h:1"}),
        ("maxFilterServersBytes", 13, {"filters": ("f:1", "f:2")}),
        ("maxMappingBytes", 107, {"mappings": [mapping_info("T")]}),
    ],
)
def test_bytes_of_a_registration(ns: Namespace, option: str, number: int, change: dict[str, Any]) -> None:
    asked: dict[str, Any] = {"topics": ("T1", "T2"), "at": "h:1"} | change
    with pytest.raises(LimitReached, match=rf" of {number} bytes: more than {option}={number - 1}\b"):
        sent(ns, tight(**{BY_KEY[option].name: number - 1}), **asked)
    assert ns.entries() == []
    sent(ns, tight(**{BY_KEY[option].name: number}), **asked)


def test_bytes_of_the_names_of_a_member(ns: Namespace) -> None:
    limits = tight(max_entry_bytes=60)
    for letter in "ab":
        sent(ns, limits, letter * 25, at="h:1")
    with pytest.raises(LimitReached, match="maxEntryBytes=60"):
        sent(ns, limits, "c" * 25, at="h:1")
    sent(ns, limits, "c" * 10, at="h:1")


def test_order_topics_have_a_place_and_an_empty_namespace_gives_its_own(ns: Namespace) -> None:
    limits = tight(max_kv_namespaces=2)
    for name in ("n1", "n2", ORDER_TOPIC_CONFIG):
        ns.run(put(ns.keys, name, "k", "v", origin(), limits=limits))
    ns.run(delete(ns.keys, "n1", "k", origin()))
    assert ns.run(table(ns.keys, "n1")) == {}
    ns.run(put(ns.keys, "n3", "k", "v", origin(), limits=limits))
    with pytest.raises(ConfigNotFound):
        ns.run(table(ns.keys, "n1"))
    with pytest.raises(LimitReached, match="maxKvNamespaces=2"):
        ns.run(put(ns.keys, "n4", "k", "v", origin(), limits=limits))
    ns.run(delete(ns.keys, ORDER_TOPIC_CONFIG, "k", origin()))
    with pytest.raises(LimitReached, match="maxKvNamespaces=2"):  # brokers are sent it, empty as it is
        ns.run(put(ns.keys, "n4", "k", "v", origin(), limits=limits))


@pytest.mark.parametrize("field", ["namespace", "key", "value"])
def test_bytes_of_a_kv_entry(ns: Namespace, field: str) -> None:
    given: dict[str, Any] = {"namespace": "n", "key": "k", "value": "v"} | {field: "éé"}
    option = "maxKvValueBytes" if field == "value" else "maxNameBytes"
    with pytest.raises(LimitReached, match=f"{option}=3"):
        ns.run(put(ns.keys, **given, origin=origin(), limits=tight(**{BY_KEY[option].name: 3})))
    assert ns.entries() == []
    ns.run(put(ns.keys, **given, origin=origin(), limits=tight(**{BY_KEY[option].name: 4})))


@pytest.mark.parametrize(
    ("option", "most", "wanted"),
    [
        ("maxKvKeys", 3, {"a": "new", "b": "2", "c": "3", "d": "4"}),
        ("maxKvNamespaceBytes", 12, {"a": "new", "b": "2", "c": "3456789"}),
        ("maxKvValueBytes", 5, {"a": "new", "b": "234567"}),
        ("maxNameBytes", 5, {"a": "new", "bcdefg": "2"}),
    ],
)
def test_a_whole_kv_table_that_is_refused_changes_nothing(
    ns: Namespace, option: str, most: int, wanted: dict[str, str]
) -> None:
    stored = {"a": "old", "z": "26"}
    ns.run(replace_table(ns.keys, "n", stored, origin(), DEFAULT_LIMITS))
    ns.new_entries()
    limits = tight(**{BY_KEY[option].name: most})
    with pytest.raises(LimitReached, match=rf"{option}={most}\b"):
        ns.run(replace_table(ns.keys, "n", wanted, origin(), limits))
    assert (ns.new_causes(), ns.run(table(ns.keys, "n"))) == ([], stored)
    with pytest.raises(LimitReached):
        ns.run(replace_table(ns.keys, "new", wanted, origin(), limits))
    assert not ns.store.sismember(ns.keys.kv_namespaces, "new")


def test_a_whole_kv_table_at_its_limits_takes_the_place_of_another(ns: Namespace) -> None:
    """What shrinks is written first, and what goes before it: no step has more than the end."""
    limits = tight(max_kv_keys=3, max_kv_namespace_bytes=15)
    ns.run(replace_table(ns.keys, "n", {"a": "1", "b": "12345678", "c": "123"}, origin(), limits))
    wanted = {"a": "12345678", "b": "1", "d": "äb"}
    ns.run(replace_table(ns.keys, "n", wanted, origin(), limits))
    assert ns.run(table(ns.keys, "n")) == wanted
    lowered = tight(max_kv_keys=1, max_kv_namespace_bytes=1)
    ns.run(replace_table(ns.keys, "n", {"a": "123", "b": "1"}, origin(), lowered))


LOWERED = Limits(*(1 for _ in GROWTH_LIMITS))


@pytest.mark.parametrize(
    ("limits", "topics"),
    [
        ({"max_topics": 2}, ("T1", "T2", "T3")),
        ({"max_topics_of_broker": 2}, ("T1", "T2", "T3")),
        ({"max_name_bytes": 30}, ("T1", "T" * 31)),
    ],
    ids=["topics", "topics of a broker", "a name"],
)
def test_a_broker_that_is_refused_what_is_new_stays_with_what_it_had(
    ns: Namespace, limits: dict[str, int], topics: tuple[str, ...]
) -> None:
    """A stranger may have reached the limit."""
    sent(ns, DEFAULT_LIMITS, topics=("T1", "T2"), at="h:1")
    member = member_key("c1", "h:1")
    ns.store.zincrby(ns.keys.leases, -10_000, member)
    before = ns.store.zscore(ns.keys.leases, member)
    with pytest.raises(LimitReached):
        sent(ns, tight(**limits), version=2, topics=topics, at="h:1")
    assert ns.store.zscore(ns.keys.leases, member) > before
    assert set(ns.store.hkeys(ns.keys.topics_of("b1"))) == {"T1", "T2"}
    with pytest.raises(LimitReached):
        sent(ns, tight(**limits), "b2", version=2, topics=topics, at="h:2")
    assert ns.store.zscore(ns.keys.leases, member_key("c1", "h:2")) is None


def test_lowered_limits_lock_out_no_broker_that_is_there(ns: Namespace) -> None:
    """It may be sent again, shrink, be reinstated and leave; it may not grow."""
    texts = {"max_name_bytes": 99, "max_address_bytes": 99, "max_filter_servers_bytes": 99}
    lowered = replace(LOWERED, max_mapping_bytes=999, **texts)
    for name in ("b1", "b2"):
        for number, cluster in ((0, "c1"), (1, "c2")):
            at = address("any", number)
            asked: dict[str, Any] = {"cluster": cluster, "at": at, "topics": ("T1", "T2", "T3")}
            sent(ns, DEFAULT_LIMITS, name, number, mappings=[mapping_info("T1", name)], **asked)
    for name in ("b1", "b2"):
        for number, cluster in ((0, "c1"), (1, "c2")):
            asked = {"cluster": cluster, "at": address("any", number), "topics": ("T1", "T2")}
            sent(ns, lowered, name, number, version=2, owner="w1/1", **asked)
            sent(ns, lowered, name, number, version=2, owner="w1/2", **asked)
    with pytest.raises(LimitReached, match="maxTopicsOfBroker=1"):
        sent(ns, lowered, "b1", at=address("any"), topics=("T4", "T5"), version=3)
    ns.store.zadd(ns.keys.leases, {f"c1:{address('any')}": ns.now_ms() - 1})
    sent(ns, lowered, "b1", at=address("any"), version=4)
    assert {name for name in ("b1", "b2") if ns.addrs(name)} == {"b1", "b2"}
    for name in ("b1", "b2"):
        for number, cluster in ((0, "c1"), (1, "c2")):
            ns.unregister(name, number, cluster=cluster, at=address("any", number))
    assert ns.store.scard(ns.keys.brokers) == 0


def test_a_broker_below_its_limits_goes_on_while_another_is_at_them(ns: Namespace) -> None:
    limits = tight(max_topics_of_broker=3, max_names_of_member=1)
    sent(ns, limits, topics=("T1", "T2", "T3"))
    with pytest.raises(LimitReached):
        sent(ns, limits, topics=("T1", "T2", "T4"), version=2)
    sent(ns, limits, "b2", topics=("T1", "T2", "T4"))
    sent(ns, limits, topics=("T1", "T2"), version=3)
    assert ns.heartbeat().version is not None


@pytest.mark.parametrize("count", [2, 1200])
def test_topics_that_others_have_need_no_place(ns: Namespace, count: int) -> None:
    """The namespace is full: a broker of its topics may come, one with another topic may not."""
    names = MANY[:count]
    limits = tight(max_topics=count)
    sent(ns, limits, topics=names)
    sent(ns, limits, "b2", topics=names)
    with pytest.raises(LimitReached, match=f"maxTopics={count}"):
        sent(ns, limits, "b3", topics=[*names, "another"])
    assert ns.store.smembers(ns.keys.brokers) == {"b1", "b2"}
    assert ns.store.scard(ns.keys.topics) == count


def test_topics_of_the_epoch_before_take_no_place(ns: Namespace) -> None:
    """They lie in the same hash until they are cleaned up."""
    limits = tight(max_topics_of_broker=3)
    sent(ns, limits, topics=("T1", "T2", "T3"))
    ns.store.hset(ns.keys.deferred, "clean:b1", "x")
    ns.store.hset(ns.keys.topics_of("b1"), mapping={f"O{number}": "0,8,8,6,0" for number in range(3)})
    ns.store.hdel(ns.keys.topics_of("b1"), "T3")
    ns.store.hdel(ns.keys.route("T3"), "b1")
    ns.store.srem(ns.keys.topics, "T3")
    ns.rewritten = True
    sent(ns, limits, topics=("T1", "T2", "T4"), version=2)
    ns.store.hdel(ns.keys.topics_of("b1"), "O0", "O1", "O2")


def test_connections_beyond_the_limit_take_the_place_of_others(ns: Namespace) -> None:
    ns.tick("w1")
    limits = tight(max_owners_of_member=3)
    for number in range(6):
        sent(ns, limits, owner=f"w1/{number}")
        fields = ns.store.hkeys(ns.keys.member(f"c1:{A0}"))
        owners = [field for field in fields if field.startswith("owner:")]
        assert len(owners) <= 3
        assert f"owner:w1/{number}" in owners


def test_kv_may_shrink_and_be_deleted_beyond_the_limits(ns: Namespace) -> None:
    assert ns.run(import_table(ns.keys, {"n": {"k": "v" * 20, "l": "v" * 20}}, origin()))
    limits = replace(LOWERED, max_name_bytes=10, max_kv_value_bytes=100)
    with pytest.raises(LimitReached, match="maxKvNamespaceBytes=1"):
        ns.run(put(ns.keys, "n", "k", "v" * 21, origin(), limits=limits))
    ns.run(put(ns.keys, "n", "k", "v" * 19, origin(), limits=limits))
    ns.run(delete(ns.keys, "n", "l", origin()))
    assert ns.run(table(ns.keys, "n")) == {"k": "v" * 19}


def whole_reads(ns: Namespace) -> int:
    """How often a hash was read as a whole since the store started."""
    stats: dict[str, dict[str, int]] = ns.store.info("commandstats")
    return stats.get("cmdstat_hgetall", {"calls": 0})["calls"]


def test_puts_that_change_a_full_kv_namespace_read_it_once(ns: Namespace) -> None:
    limits = tight(max_kv_namespace_bytes=100_000)
    before = whole_reads(ns)
    for number in range(1, 10):
        ns.run(put(ns.keys, "n", f"k{number}", "v" * 9_998, origin(), limits=limits))
    for number in range(40):
        ns.run(put(ns.keys, "n", "k1", "v" * (19_997 + number % 2), origin(), limits=limits))
        with pytest.raises(LimitReached, match="maxKvNamespaceBytes=100000"):
            ns.run(put(ns.keys, "n", "k2", "v" * 10_000, origin(), limits=limits))
    assert whole_reads(ns) == before + 1
    ns.run(delete(ns.keys, "n", "k1", origin()))
    ns.run(put(ns.keys, "n", "k2", "v" * 29_998, origin(), limits=limits))
    with pytest.raises(LimitReached, match="maxKvNamespaceBytes=100000"):
        ns.run(put(ns.keys, "n", "k2", "v" * 29_999, origin(), limits=limits))
    assert whole_reads(ns) == before + 1


FULL_OF_BYTES = {"k": "v" * 9_999, "l": "v" * 9_999}


def deleted_by_hand(ns: Namespace, note: str) -> None:
    ns.store.hdel(ns.keys.kv("n"), "l")


def deleted_and_the_minute_over(ns: Namespace, note: str) -> None:
    ns.store.hset(ns.keys.kv("n"), "l", "v")
    bytes_and_keys, at = ns.store.get(note).rsplit(" ", 1)
    ns.store.set(note, f"{bytes_and_keys} {int(at) - 60_000}")


def of_a_time_to_come(ns: Namespace, note: str) -> None:
    ns.store.hset(ns.keys.kv("n"), "l", "v")
    ns.store.set(note, "20000 2 99999999999999")


def no_count(ns: Namespace, note: str) -> None:
    ns.store.hset(ns.keys.kv("n"), "l", "v")
    ns.store.set(note, "-3 2 x")


def of_another_type(ns: Namespace, note: str) -> None:
    ns.store.hset(ns.keys.kv("n"), "l", "v")
    ns.store.delete(note)
    ns.store.sadd(note, "x")


@pytest.mark.parametrize(
    "damage",
    [deleted_by_hand, deleted_and_the_minute_over, of_a_time_to_come, no_count, of_another_type],
)
def test_kv_bytes_are_counted_again_where_their_count_is_not_true(
    ns: Namespace, damage: Callable[[Namespace, str], None]
) -> None:
    limits = tight(max_kv_namespace_bytes=20_000)
    for key, value in FULL_OF_BYTES.items():
        ns.run(put(ns.keys, "n", key, value, origin(), limits=limits))
    with pytest.raises(LimitReached, match="maxKvNamespaceBytes=20000"):
        ns.run(put(ns.keys, "n", "k", "v" * 10_000, origin(), limits=limits))
    ns.rewritten = True
    count = f"{ns.keys.prefix}kv_bytes:n"
    assert ns.store.exists(count)
    damage(ns, count)
    ns.run(put(ns.keys, "n", "k", "v" * 17_000, origin(), limits=limits))
    with pytest.raises(LimitReached, match="maxKvNamespaceBytes=20000"):
        ns.run(put(ns.keys, "n", "k", "v" * 20_000, origin(), limits=limits))


BEYOND_UNPACK = 5000
"""Fields of a hash; Lua's unpack() fails with some 4,000 of them."""


@pytest.mark.parametrize("table", ["broker", "member"])
def test_no_script_fails_after_its_first_write(ns: Namespace, table: str) -> None:
    """A hash that was filled without limits is written whole, and its owner goes on."""
    ns.rewritten = True
    ns.register()
    if table == "broker":
        clusters = [f"x{number}" for number in range(BEYOND_UNPACK)]
        ns.store.hset(ns.keys.broker("b1"), mapping={f"in:{cluster}": "1" for cluster in clusters})
        with ns.store.pipeline() as pipe:
            for cluster in clusters:
                pipe.sadd(ns.keys.cluster(cluster), "b1")
            pipe.sadd(ns.keys.clusters, *clusters)
            pipe.execute()
    else:
        marks = {f"owner:w1/{number}": "1" for number in range(BEYOND_UNPACK)}
        ns.store.hset(ns.keys.member(f"c1:{A0}"), mapping=marks)
    ns.register(zone="z", version=2)
    ns.register("b1", 1)
    assert (ns.addrs()[0], ns.store.hget(ns.keys.broker("b1"), "zone")) == (A0, None)
    fields = ns.store.hlen(ns.keys.broker("b1") if table == "broker" else ns.keys.member(f"c1:{A0}"))
    assert fields > BEYOND_UNPACK
    ns.unregister()
    ns.unregister("b1", 1)
    assert ns.store.scard(ns.keys.clusters) == 0


def test_hashes_filled_to_their_limits(ns: Namespace) -> None:
    """The last one of each: a member, a name, a cluster and a connection. All can leave again."""
    most = DEFAULT_LIMITS
    ns.store.zadd(ns.keys.workers, {"w1": ns.now_ms() + 600_000})
    for number in range(1, most.max_members_of_broker):
        ns.register("b1", number, (), cluster=f"c{number % most.max_clusters_of_broker}")
    for number in range(1, most.max_names_of_member + 1):
        ns.register(f"b{number}", at=A0)
    for number in range(most.max_owners_of_member):
        ns.register(at=A0, owner=f"w1/{number}")
    assert len(ns.addrs()) == most.max_members_of_broker
    owned = ns.store.hgetall(ns.keys.member(f"c1:{A0}"))
    assert sum(field.startswith("owner:") for field in owned) == most.max_owners_of_member
    assert sum(field.startswith("slot:") for field in owned) == most.max_names_of_member
    ns.lapse()
    ns.heartbeat()
    for key in ns.store.zrange(ns.keys.leases, 0, -1):
        ns.store.zadd(ns.keys.leases, {key: ns.now_ms() - 1})
    assert ns.expire() == most.max_members_of_broker
    assert ns.store.scard(ns.keys.brokers) == 0


class Recording(Namespace):
    """Notes which scripts its plans call."""

    def __init__(self, ns: Namespace) -> None:
        super().__init__(ns.store, ns.keys)
        self.ran: set[str] = set()

    def run(self, plan: Plan[Any]) -> Any:
        return super().run(self._noted(plan))

    def _noted(self, plan: Plan[Any]) -> Plan[Any]:
        try:
            request = next(plan)
            while True:
                for one in request.requests if isinstance(request, Batch) else (request,):
                    if isinstance(one, ScriptCall | ScriptItem):
                        self.ran.add(one.name)
                request = plan.send((yield request))
        except StopIteration as end:
            return end.value


def filled(ns: Namespace) -> None:
    """A broker with as many members and clusters as may be, the first with as many names and connections."""
    most = DEFAULT_LIMITS
    ns.store.zadd(ns.keys.workers, {"w1": ns.now_ms() + 600_000})
    for number in range(most.max_members_of_broker):
        filters = (f"f{number}:{'1' * 2000}",)
        ns.register("b1", number, cluster=f"c{number % most.max_clusters_of_broker}", filters=filters)
    for number in range(2, most.max_names_of_member + 1):
        ns.register(f"b{number}", at=A0, cluster="c0")
    for number in range(most.max_owners_of_member):
        ns.register(at=A0, cluster="c0", owner=f"w1/{number}")


def test_each_script_runs_on_hashes_at_their_limits(ns: Namespace) -> None:
    """KV, drains and order topics too; a thousand values are more than unpack() is given anywhere."""
    ns.rewritten = True
    most, keys, scene = DEFAULT_LIMITS, ns.keys, Recording(ns)
    filled(scene)
    values = {f"T{number}": "x" * 1000 for number in range(most.max_kv_keys - 1)}
    ns.store.sadd(keys.kv_namespaces, ORDER_TOPIC_CONFIG)
    ns.store.hset(keys.kv(ORDER_TOPIC_CONFIG), mapping=values)
    ns.store.hset(keys.drains, mapping={f"gone{n}": "{}" for n in range(most.max_brokers - 1)})
    scene.run(put(keys, ORDER_TOPIC_CONFIG, "last", "v", origin()))
    scene.run(drain(keys, "b1", Drain("me", "repair"), origin()))
    assert len(scene.run(drained_brokers(keys, scene.run(drained_names(keys))))) == most.max_brokers
    with pytest.raises(LimitReached):
        ns.run(put(keys, ORDER_TOPIC_CONFIG, "more", "v", origin()))
    dry_run = DryRun()
    scene.run(dry_run.of(put(keys, ORDER_TOPIC_CONFIG, "last", "w", origin())))
    assert scene.run(dry_run.of(table(keys, ORDER_TOPIC_CONFIG)))["last"] == "w"
    scene.run(announce_start(keys, {"a": "1"}, origin()))
    ns.store.hset(keys.access_used, mapping={f"acl:{n}": "1" for n in range(CREDENTIALS_MOST)})
    scene.run(note_uses(keys, {f"token:{n}": 0 for n in range(1_000)}, origin()))
    assert ns.store.hlen(keys.access_used) <= CREDENTIALS_MOST
    scene.tick()
    scene.register(at=A0, cluster="c0", owner="w1/1")
    scene.run(renew_lease(keys, "c0", A0, origin()))
    scene.run(log_heartbeat(keys, "c0", A0, 322))
    other = Claimant("host:10.0.0.1", guard=True, reported=ReportedRefusals())
    scene.run(renew_lease(keys, "c0", A0, origin(), claimant=other))
    with pytest.raises(NotOwner):
        scene.unregister("b1", at=A0, cluster="c0", by=other)
    assert (
        len(scene.run(cluster_info(keys)).broker_addr_table["b1"].broker_addrs) == most.max_members_of_broker
    )
    assert len(scene.run(members_of_brokers(keys, ["b1"]))[0].members) == most.max_members_of_broker
    assert len(scene.route("T1").broker_datas) == most.max_names_of_member
    scene.run(register_topic(keys, "T1", [QueueData("b1", 4, 4, 6, 0)], origin()))
    scene.run(delete_topic(keys, "T1", "c0", origin()))
    scene.run(wipe_write_perm(keys, "b1", origin()))
    scene.run(release_owner(keys, "c0", A0, "w1/2"))
    a_round(scene)
    assert scene.run(Walk(keys, origin(), "w", timeout_ms=120_000, rows_per_s=inf).run()) == Repaired()
    ns.store.zadd(keys.leases, {f"c0:{A0}": ns.now_ms() - 1})
    scene.run(renew_lease(keys, "c0", A0, origin()))
    scene.register("large", topics=MANY)
    scene.register("large", topics=dict.fromkeys(MANY, "4,4,6,0"), version=2)
    scene.unregister("large")
    for number in range(most.max_members_of_broker // 2):
        scene.unregister("b1", number, cluster=f"c{number % most.max_clusters_of_broker}")
    for key in ns.store.zrange(keys.leases, 0, -1):
        ns.store.zadd(keys.leases, {key: ns.now_ms() - 1})
    scene.expire()
    assert ns.store.scard(keys.brokers) == 0
    assert {path.stem for path in LUA.glob("*.lua")} - scene.ran == NEED_NO_FULL_HASH


NEED_NO_FULL_HASH = {
    *("read_brokers", "read_kv", "renew_mirrored", "release_hold", "repair_count", "repair_table"),
    *("acquire_write", "keep_position", "release_claim", "report_denial", "reregister_topics"),
    *("set_access", "set_drift", "write_summary"),
}
"""What is read_routes' when a route is long, reads a few fields, ends a hold, is repaired, needs what a worker has
cached, or is about one caller, position, claim, credential, comparison or entry."""


def test_limits_are_the_options() -> None:
    assert Limits.of(Options(max_kv_keys=7)) == replace(DEFAULT_LIMITS, max_kv_keys=7)
    assert {BY_KEY[key].name for key in GROWTH_LIMITS} == set(Limits.__struct_fields__)
