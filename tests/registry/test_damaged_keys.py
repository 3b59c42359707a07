"""A key of another type, which is damage, leaves no operation half done: it is refused as a whole, or done."""

import json
from collections.abc import Callable

import pytest
import redis as redis_py

from registry.errors import RegistryError
from registry.events.entry import EventKind
from registry.growth.limits import DEFAULT_LIMITS
from registry.keys import Keys, member_key
from registry.kv import put, replace_table
from registry.repair.state import Repaired, state
from registry.topics import register_topic
from rocketmq_remoting.route import QueueData
from tests.registry.brokers import address, mapping_info, origin
from tests.registry.namespace import Namespace

KEYS = Keys()
MEMBER = member_key("c1", address("b1"))
DAMAGED = {
    key.removeprefix(KEYS.prefix): key
    for key in (
        *(KEYS.brokers, KEYS.clusters, KEYS.topics, KEYS.leases, KEYS.lapses, KEYS.deferred),
        *(KEYS.epoch, KEYS.events, KEYS.events_meta, KEYS.events_offsets, KEYS.drains, KEYS.drain_ends),
        KEYS.group_events,
        *(KEYS.broker("b1"), KEYS.member(MEMBER), KEYS.alive(MEMBER), KEYS.pending("b1"), KEYS.cluster("c1")),
        *(
            KEYS.topics_of("b1"),
            KEYS.mappings_of("b1"),
            KEYS.route("T1"),
            KEYS.route("new"),
            KEYS.mapping("static"),
        ),
    )
}
STATIC = mapping_info("static")
Operation = Callable[[Namespace], object]
OPERATIONS: dict[str, Operation] = {
    "new topics": lambda ns: ns.register("b1", topics=("T1", "T2", "new"), version=2),
    "other topics": lambda ns: ns.register("b1", topics=("T2", "new"), version=2, delete_missing=True),
    "another cluster": lambda ns: ns.register("b1", 1, cluster="c2", version=2),
    "a static topic": lambda ns: ns.register(
        "b1", topics=("T1", "T2", "static"), mappings=[STATIC], version=2
    ),
    "104": lambda ns: ns.unregister("b1"),
    "a lapse": lambda ns: ns.expire(),
    "217": lambda ns: ns.run(register_topic(ns.keys, "new", [QueueData("b1", 4, 4, 6, 0)], origin())),
    "the same": lambda ns: ns.register("b1"),
    "a KV pair": lambda ns: ns.run(put(ns.keys, "n", "k", "v", origin())),
}


REMOVALS = ("104", "a lapse")
READS: dict[str, Callable[[redis_py.Redis, str], object]] = {
    "string": lambda store, key: store.get(key),
    "set": lambda store, key: store.smembers(key),
    "zset": lambda store, key: store.zrange(key, 0, -1, withscores=True),
    "hash": lambda store, key: store.hgetall(key),
    "stream": lambda store, key: store.xlen(key),
}


def stored(store: redis_py.Redis) -> dict[str, object]:
    """Return what each key holds, of a stream its length."""
    return {key: READS[str(store.type(key))](store, key) for key in map(str, store.scan_iter())}


@pytest.mark.parametrize("operation", list(OPERATIONS))
@pytest.mark.parametrize("damaged", list(DAMAGED))
def test_no_operation_is_left_half_done(redis: redis_py.Redis, damaged: str, operation: str) -> None:
    ns = Namespace(redis)
    ns.register("b1")
    ns.register("b2", topics=("T1", "T2"))
    if operation == "a lapse":
        ns.lapse("b1")
    key = DAMAGED[damaged]
    redis.delete(key)
    if key in (KEYS.epoch, KEYS.alive(MEMBER), KEYS.pending("b1")):
        redis.sadd(key, "damaged")
    else:
        redis.set(key, "damaged")
    before = stored(redis)
    try:
        OPERATIONS[operation](ns)
    except (RegistryError, redis_py.ResponseError):
        left = operation in REMOVALS and not redis.exists(KEYS.broker("b1"))
        assert left or stored(redis) == before
        assert not left or redis.hexists(
            KEYS.deferred, "clean:b1"
        )  # which a job does once the key is repaired


@pytest.mark.parametrize(
    "key", [KEYS.broker("new"), KEYS.pending("new"), KEYS.member(member_key("c1", address("new")))]
)
def test_a_name_that_is_in_no_list_is_not_locked_out(
    redis: redis_py.Redis, key: str, caplog: pytest.LogCaptureFixture
) -> None:
    """No walk comes to such a key, and every registration met it."""
    ns = Namespace(redis)
    redis.hset(key, "a", "b") if key == KEYS.pending("new") else redis.set(key, "x")
    ns.register("new", topics=("T1", "T2"))
    assert [data.broker_name for data in ns.route("T1").broker_datas] == ["new"]
    [entry] = [event for event in ns.new_entries() if event.kind == EventKind.TABLES_REPAIRED]
    assert entry.cause == "keys"
    assert json.loads(entry.get("keys")) == [key]
    assert f"what they held is lost: {key!r}; find out" in caplog.text
    assert ns.run(state(KEYS)).repaired == Repaired(keys=1)


@pytest.mark.parametrize("whole", [False, True])
def test_values_of_a_namespace_of_another_type_can_be_put(redis: redis_py.Redis, whole: bool) -> None:
    ns = Namespace(redis)
    redis.set(KEYS.kv("n"), "x")
    if whole:
        ns.run(replace_table(KEYS, "n", {"k": "v"}, origin(), DEFAULT_LIMITS))
    else:
        ns.run(put(KEYS, "n", "k", "v", origin()))
    assert redis.hgetall(KEYS.kv("n")) == {"k": "v"}
