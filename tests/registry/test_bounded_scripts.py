"""No script works through a whole table: none takes Redis longer than 5 ms, at a µs or two a command.

Commands are counted, not timed, so that the test tells the same on a busy machine; bench/ measures the time.
"""

import re
from collections.abc import Callable, Iterator
from math import inf
from typing import Any

import pytest

from registry.clusters import cluster_info
from registry.drains import drained_brokers, drained_names
from registry.kv import put
from registry.members import brokers
from registry.plans import Plan, ScriptCall
from registry.queue_data.rewrite import add_write_perm, wipe_write_perm
from registry.repair.walk import Walk
from registry.routes import read_route, routes_call
from registry.scripts import LUA, script
from registry.topics import delete_topic
from tests.registry.brokers import mapping_info, origin
from tests.registry.checkpoints import a_round
from tests.registry.namespace import MORE_MEMBERS, Namespace

COMMANDS_MAX = 2500
MANY = tuple(f"topic-with-a-usual-name-{number:05}" for number in range(10_000))
CHANGED = dict.fromkeys(MANY, "4,4,6,0")
HEADER = re.compile(r"lua/(\w+)\.lua")
END = "no-such-key: the scene is over"


@pytest.fixture
def counted(ns: Namespace) -> Iterator[Callable[[], dict[str, int]]]:
    """Script -> the most commands that one run of it gave Redis since the test began."""
    names = {script(path.stem).sha: path.stem for path in LUA.glob("*.lua")}
    with ns.store.monitor() as monitor:

        def most() -> dict[str, int]:
            ns.store.get(END)
            counts: dict[str, int] = {}
            name, count = "", 0
            for seen in monitor.listen():
                words = seen["command"].split(" ", 2)
                if seen["client_type"] == "lua":
                    count += 1
                    counts[name] = max(count, counts.get(name, 0))
                elif END in seen["command"]:
                    return counts
                elif words[0] == "EVALSHA":
                    name, count = names[words[1]], 0
                elif words[0] == "EVAL":  # the first time: its header names it
                    name, count = HEADER.findall(words[1] + words[2])[0], 0
            raise AssertionError("the monitor ended")

        yield most


def tables_of_ten_thousand_topics(ns: Namespace, number: int) -> None:
    ns.register("b1", 0, MANY, version=number)
    ns.register("b1", 0, CHANGED, version=number + 1)
    ns.register("b1", 1, MANY, acting=True)
    ns.run(wipe_write_perm(ns.keys, "b1", origin()))
    ns.run(add_write_perm(ns.keys, "b1", origin()))
    ns.run(delete_topic(ns.keys, MANY[7], "", origin()))
    ns.heartbeat("b1")
    ns.lapse("b1")
    ns.heartbeat("b1")
    ns.unregister("b1")
    ns.unregister("b1", 1)


def three_hundred_brokers(ns: Namespace, number: int) -> None:
    names = [f"broker-{one:03}" for one in range(300)]
    for name in names:
        ns.register(name, 0, ("T1", "T2"), version=number)
    ns.tick()
    ns.run(read_route(ns.keys, "T1"))
    ns.run(cluster_info(ns.keys))
    ns.run(brokers(ns.keys, names))
    ns.run(delete_topic(ns.keys, "T1", "", origin()))
    for name in names:
        ns.lapse(name)
    ns.expire()


def topics_that_have_no_broker_in_common(ns: Namespace, number: int) -> None:
    topics = [f"T{i}" for i in range(30)]
    for topic in topics:
        for i in range(30):
            ns.register(f"broker-{topic}-{i}", 0, (topic, f"{topic}-too"), version=number)
    ns.run(_asked(routes_call(ns.keys, tuple(topics))))


def _asked(call: ScriptCall) -> Plan[Any]:
    return (yield call)


def a_name_of_many_members(ns: Namespace, number: int) -> None:
    ns.limits = MORE_MEMBERS
    for broker_id in range(120):
        ns.register("b1", broker_id, (), version=number)
    for broker_id in range(60):
        ns.lapse("b1", broker_id)
    ns.register("b1", 90, (), version=number + 1)
    for broker_id in range(90, 120):
        ns.unregister("b1", broker_id)
    for broker_id in range(60, 90):
        ns.lapse("b1", broker_id)
    ns.expire()


def a_round_of_everything(ns: Namespace, number: int) -> None:
    ns.limits = MORE_MEMBERS
    ns.register("b1", 0, MANY[:2000], mappings=[mapping_info(topic) for topic in MANY[:500]])
    for i in range(200):
        ns.register("b2", i, (), version=number)
        ns.register(f"broker-{i:03}", 0, ("T1", "T2"), version=number)
    for i in range(200):
        ns.run(put(ns.keys, "n", f"k{i}", "v", origin()))
    a_round(ns)


def all_routes_lost(ns: Namespace, number: int) -> None:
    for name in ("b1", "b2", "b3", "b4"):
        ns.register(name, 0, MANY[:2000], version=number)
    ns.store.delete(*(ns.keys.route(topic) for topic in MANY[:2000]), ns.keys.topics_of("b4"))
    ns.run(Walk(ns.keys, origin(), "w", timeout_ms=120_000, rows_per_s=inf).run())
    for name in ("b1", "b2", "b3", "b4"):
        ns.register(name, 0, MANY[:2000], version=number)
    ns.rewritten = True


def the_list_of_topics_lost(ns: Namespace, number: int) -> None:
    for i in range(2):
        ns.register(f"broker-{i}", 0, MANY[:2000], version=number)
    ns.store.delete(ns.keys.topics)
    ns.run(Walk(ns.keys, origin(), "w", timeout_ms=120_000, rows_per_s=inf).run())
    ns.rewritten = True


def drains_of_many_brokers(ns: Namespace, number: int) -> None:
    ns.store.hset(ns.keys.drains, mapping=dict.fromkeys(MANY[:1000], "{}"))
    ns.run(drained_brokers(ns.keys, ns.run(drained_names(ns.keys))))
    ns.rewritten = True


@pytest.mark.parametrize(
    ("scene", "script_name"),
    [
        (tables_of_ten_thousand_topics, "write_slice"),
        (three_hundred_brokers, "read_clusters"),
        (topics_that_have_no_broker_in_common, "read_routes"),
        (a_name_of_many_members, "expire_members"),
        (a_round_of_everything, "checkpoint"),
        (all_routes_lost, "repair_routes"),
        (the_list_of_topics_lost, "repair_table"),
        (drains_of_many_brokers, "read_drains"),
    ],
)
def test_no_script_gives_redis_much_to_do(
    ns: Namespace,
    counted: Callable[[], dict[str, int]],
    scene: Callable[[Namespace, int], Any],
    script_name: str,
) -> None:
    scene(ns, 1)
    counts = counted()
    assert counts[script_name] > 100
    assert {name: count for name, count in counts.items() if count > COMMANDS_MAX} == {}
