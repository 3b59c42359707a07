"""More brokers than one script may work through: what is read and written of them all is whole."""

from collections.abc import Iterator
from typing import Any

import pytest
import redis as redis_py
from msgspec.structs import replace

from registry.clusters import cluster_info
from registry.errors import LimitReached, TopicNotFound
from registry.growth.limits import DEFAULT_LIMITS
from registry.keys import ORDER_TOPIC_CONFIG
from registry.kv import put
from registry.members import brokers
from registry.plans import Plan, ScriptCall
from registry.routes import RouteView, routes_call
from registry.topics import delete_topic, register_topic
from rocketmq_remoting.route import QueueData
from tests.registry.brokers import mapping_info, origin
from tests.registry.namespace import Namespace

NAMES = tuple(f"b{number:03}" for number in range(420))

MEMBERS = DEFAULT_LIMITS.max_members_of_broker


@pytest.fixture
def many(redis: redis_py.Redis) -> Iterator[Namespace]:
    """Brokers that all have T1 and T2; those with an even number are in c1, others in c2."""
    namespace = Namespace(redis)
    for number, name in enumerate(NAMES):
        namespace.register(name, cluster=f"c{1 + number % 2}")
    yield namespace
    namespace.clean_up()
    namespace.check()


def test_all_are_read(many: Namespace) -> None:
    info = many.run(cluster_info(many.keys))
    assert (tuple(info.broker_addr_table), info.cluster_addr_table["c2"]) == (NAMES, NAMES[1::2])
    assert sorted(data.broker_name for data in many.route("T1").broker_datas) == [*NAMES]


def crowded(ns: Namespace, names: list[str], count: int = MEMBERS) -> None:
    """Have brokers with as many members as may be, each with as many owners."""
    pipe, end = ns.store.pipeline(transaction=False), ns.now_ms() + 60_000
    marks = {f"owner:w1/{number}": "127.0.0.1" for number in range(DEFAULT_LIMITS.max_owners_of_member)}
    for name in names:
        pipe.sadd(ns.keys.brokers, name)
        members = {f"addr:{i}": f"c1:{name}:{i}" for i in range(count)}
        pipe.hset(
            ns.keys.broker(name),
            mapping={"epoch": 1, "gen": 1, "cluster": "c1", "acting": 0, "in:c1": 1} | members,
        )
        for member in members.values():
            pipe.hset(ns.keys.member(member), mapping={"timeout": 120_000, "since": 1} | marks)
        pipe.zadd(ns.keys.leases, dict.fromkeys(members.values(), end))
    pipe.execute()


def test_brokers_of_many_members_are_read_by_several_scripts(redis: redis_py.Redis) -> None:
    ns, names = Namespace(redis), [f"b{number:02}" for number in range(30)]
    crowded(ns, names)
    redis.config_resetstat()
    info = ns.run(cluster_info(ns.keys))
    assert {name: len(data.broker_addrs) for name, data in info.broker_addr_table.items()} == dict.fromkeys(
        names, MEMBERS
    )
    assert calls(redis) > 2
    redis.config_resetstat()
    found = ns.run(brokers(ns.keys, [*names, "none"]))
    assert [(broker.name, len(broker.members)) for broker in found] == [(name, MEMBERS) for name in names]
    assert calls(redis) >= len(names)
    assert ns.run(brokers(ns.keys, ["none", "none"])) == ()


def test_members_with_long_entries_are_read_in_parts(redis: redis_py.Redis) -> None:
    ns, filters = Namespace(redis), f'["{"f" * 2000}"]'
    ids = [*range(2 * MEMBERS)]  # where the limit was raised
    crowded(ns, ["b1", "b2"], len(ids))
    for number in ids:
        redis.hset(ns.keys.member(f"c1:b1:{number}"), "filters", filters)
    redis.config_resetstat()
    found = ns.run(brokers(ns.keys, ["b1", "none", "b2"]))
    assert [(broker.name, [one.id for one in broker.members]) for broker in found] == [
        ("b1", ids),
        ("b2", ids),
    ]
    assert {len(one.filters) for one in found[0].members} == {1}
    assert calls(redis) > 3


def test_mapping_info_of_many_brokers_is_not_read_by_the_script(redis: redis_py.Redis) -> None:
    """A topic that is static on them all, with long texts, one of which is of an earlier epoch."""
    ns, names = Namespace(redis), NAMES[:100]
    infos = {name: replace(mapping_info("static", name), scope="s" * 8000) for name in names}
    for name, info in infos.items():
        ns.register(name, topics=("static", "other"), mappings=[info])
    redis.hset(ns.keys.mapping("static"), "b007", "1,{}")
    ns.run(put(ns.keys, ORDER_TOPIC_CONFIG, "static", "b001:8", origin()))
    del infos["b007"]
    route = ns.route("static", RouteView(order=True))
    assert (route.topic_queue_mapping_by_broker, route.order_topic_conf) == (infos, "b001:8")
    assert len(str(ns.run(alone(routes_call(ns.keys, ("static", "none")))))) < 20_000


@pytest.mark.parametrize("static", [0, 20, 40])
def test_a_route_of_long_names_is_not_read_by_the_script(redis: redis_py.Redis, static: int) -> None:
    """Nor are its brokers; mapping info is, as far as there is time."""
    ns, names = Namespace(redis), [f"b{number:03}".ljust(500, "x") for number in range(380)]
    infos = {name: mapping_info("T1", name) for name in names[:static]}
    for name in names:
        ns.register(name, mappings=[infos[name]] if name in infos else ())
    ns.unregister(names[-1])
    route = ns.route("T1")
    assert [
        data.broker_name for data in sorted(route.broker_datas, key=lambda data: data.broker_name)
    ] == names[:-1]
    assert (route.topic_queue_mapping_by_broker or {}) == infos
    assert len(str(ns.run(alone(routes_call(ns.keys, ("T1", "T2")))))) < 50_000
    assert ns.route("T2").queue_datas == route.queue_datas


def alone(script: ScriptCall) -> Plan[Any]:
    """Return what a script replies."""
    return (yield script)


def calls(redis: redis_py.Redis) -> int:
    """Return how many scripts were called."""
    stats = redis.info("commandstats")
    return sum(int(stats[name]["calls"]) for name in ("cmdstat_eval", "cmdstat_evalsha") if name in stats)


def test_a_topic_is_set_and_deleted_on_all(many: Namespace) -> None:
    many.new_entries()
    queues = [QueueData(name, 4, 4, 6, 0) for name in NAMES]
    last = many.run(register_topic(many.keys, "T1", queues, origin()))
    events = many.new_entries()
    assert (str(events[-1].id), sum(int(event.get("count")) for event in events)) == (last, len(NAMES))
    assert {data.read_queue_nums for data in many.route("T1").queue_datas} == {4}
    many.run(delete_topic(many.keys, "T1", "c2", origin()))
    assert sorted(data.broker_name for data in many.route("T1").queue_datas) == [*NAMES[::2]]
    many.run(delete_topic(many.keys, "T1", "", origin()))
    with pytest.raises(TopicNotFound):
        many.route("T1")
    assert many.run(delete_topic(many.keys, "T1", "", origin())) == ""


def test_a_limit_of_any_broker_refuses_them_all(many: Namespace) -> None:
    """The last one has a topic more than the others."""
    many.register(NAMES[-1], cluster="c2", topics=("T1", "T2", "T3"), version=2)
    limits = replace(DEFAULT_LIMITS, max_topics_of_broker=3)
    queues = [QueueData(name, 4, 4, 6, 0) for name in NAMES]
    many.new_entries()
    with pytest.raises(LimitReached, match="maxTopicsOfBroker=3"):
        many.run(register_topic(many.keys, "new", queues, origin(), limits))
    assert many.new_entries() == []
    with pytest.raises(TopicNotFound):
        many.route("new")
    many.run(register_topic(many.keys, "new", queues[:-1], origin(), limits))
    assert len(many.route("new").queue_datas) == len(NAMES) - 1


def test_an_unknown_broker_ends_a_long_list(many: Namespace) -> None:
    """What stands before it is set if the topic is there already, as of a short list."""
    queues = [QueueData(name, 4, 4, 6, 0) for name in (*NAMES[:400], "unknown", *NAMES[400:])]
    assert many.run(register_topic(many.keys, "new", queues, origin())) == ""
    many.run(register_topic(many.keys, "T1", queues, origin()))
    numbers = [data.read_queue_nums for data in many.route("T1").queue_datas]
    assert (numbers.count(4), numbers.count(8)) == (400, 20)
