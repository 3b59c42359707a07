"""Dry runs: they return and raise what the plan does that follows, name the entries it appends, and write nothing."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from itertools import count
from typing import Any

import pytest
import redis as redis_py
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from registry import kv
from registry import settings as shared
from registry.drains import Drain, drain, undrain
from registry.drivers import run
from registry.dry_run import DryRun
from registry.errors import ConditionFailed, LimitReached, RegistryError
from registry.events.checkpoint import request_round
from registry.expiry.holds import release
from registry.growth.limits import DEFAULT_LIMITS
from registry.keys import ORDER_TOPIC_CONFIG, Keys
from registry.ownership import Claimant
from registry.plans import Plan
from registry.queue_data.rewrite import wipe_write_perm
from registry.registration.register import register
from registry.removal import unregister
from registry.routes import StoredBroker, StoredRoute, read_route
from registry.topics import delete_topic
from tests.registry.brokers import address, origin, registration
from tests.registry.namespace import MORE_MEMBERS, Namespace
from tests.registry.stored import Store, entries
from tests.registry.world import (
    NAMES,
    TOPICS,
    Asked,
    claims,
    deletions,
    expiring,
    guarded_heartbeats,
    guarded_removals,
    guarded_settings,
    registering,
    rewrites,
)
from tests.registry.world import said as said_by_brokers

OF_ONE_RUN = {"inc", "seq", "op", "since_ms", "last_seen_ms", "lease_ms", "effective_ms", "holds"}
"""Fields of entries that hold a time, or number what was appended."""
TIMES = re.compile(r'"(since|from|until)_ms":\d+')
READ = """
local commands = { string = { "GET" }, set = { "SMEMBERS" }, hash = { "HGETALL" }, stream = { "XRANGE", "-", "+" } }
commands.zset = { "ZRANGE", 0, -1, "WITHSCORES" }
local found = {}
for _, key in ipairs(redis.call("KEYS", "*")) do
  local of_type = redis.call("TYPE", key).ok
  local command = commands[of_type]
  found[#found + 1] = {
    key, of_type, redis.call("PEXPIRETIME", key), redis.call(command[1], key, unpack(command, 2)),
  }
end
return found
"""
"""Returns each key with its type, its end, and all that it holds."""
_namespaces = count(1)
Outcome = Any


def outcome_of(plan: Plan[Any], store: redis_py.Redis) -> Outcome:
    """Return what a plan returns, or the error that it raises, without the id of an entry."""
    try:
        returned = run(plan, store)
    except RegistryError as error:
        return type(error), str(error)
    return without_id(returned)


def without_id(returned: Any) -> Any:
    """Return a result with whether it names an entry, in place of which."""
    if isinstance(returned, str):
        return bool(returned)
    if hasattr(returned, "event_id"):
        rest = {
            name: getattr(returned, name)
            for name in returned.__struct_fields__
            if name not in ("event_id", "renewal")
        }
        return bool(returned.event_id), rest
    return returned


def said(entries: Iterable[Mapping[str, Any]]) -> tuple[list[Any], set[Any]]:
    """Return what entries say: each without its rows, and all their rows, since Redis returns topics in any order."""
    rows = set()
    for entry in entries:
        for broker, before, after, topics in json.loads(entry.get("rows", "[]")):
            rows |= {(entry["cause"], broker, before, after, topic) for topic in topics}
    left_out = OF_ONE_RUN | {"rows"}
    return [{name: TIMES.sub("", entry[name]) for name in entry.keys() - left_out} for entry in entries], rows


def contents(store: Store) -> dict[str, tuple[object, ...]]:
    """Return all that a store holds; that of sets and hashes in an order, which Redis may change when it is read."""
    found: dict[str, tuple[object, ...]] = {}
    for key, of_type, ends, held in store.eval(READ, 0):
        if of_type == "hash":
            held = sorted(zip(held[::2], held[1::2], strict=True))
        found[key] = (of_type, ends, sorted(held) if of_type == "set" else held)
    return found


def by_name(route: StoredRoute) -> tuple[str | None, dict[str, StoredBroker]]:
    return route.order_conf, {broker.data.broker_name: broker for broker in route.brokers}


def both_ways(store: Store, keys: Keys, plan: Callable[[], Plan[Any]]) -> Outcome:
    """Run a plan dry and then as it is; return its outcome. Both end alike, the first
    shows the routes that the other makes, and has changed nothing."""
    stored, newest = contents(store), store.xrevrange(keys.events, count=1)
    topics = {*TOPICS, "T5", *sorted(store.smembers(keys.topics))[:20]}
    dry_run = DryRun()
    expected = outcome_of(dry_run.of(plan()), store)
    routes = {topic: by_name(run(dry_run.of(read_route(keys, topic)), store)) for topic in topics}
    assert contents(store) == stored
    outcome = outcome_of(plan(), store)
    assert expected == outcome
    assert routes == {topic: by_name(run(read_route(keys, topic), store)) for topic in topics}
    appended = entries(store, keys, newest[0][0] if newest else "-")
    assert said(dry_run.entries) == said([entry.fields for entry in appended])
    return outcome


texts = st.sampled_from(("", "v", "w" * 20))


def putting(namespace: str, key: str, value: str | None, tags: kv.Conditions) -> Asked:
    limits = DEFAULT_LIMITS

    def plan(keys: Keys) -> Plan[Any]:
        return kv.put(keys, namespace, key, value, origin(), limits=limits, conditions=tags)

    return Asked(f"put {namespace} {key}", plan, lambda _: None)


def plain(text: str, plan: Callable[[Keys], Plan[Any]]) -> Asked:
    return Asked(text, plan, lambda _: None)


kv_names = st.sampled_from(("n1", ORDER_TOPIC_CONFIG))
conditions = st.sampled_from(
    (kv.NO_CONDITIONS, kv.Conditions(if_match=(kv.ANY,)), kv.Conditions(if_none_match=(kv.ANY,)))
)
puts = st.builds(putting, kv_names, st.sampled_from(TOPICS), st.none() | texts, conditions)
deletes = st.builds(
    lambda namespace, key, tags: plain(
        f"delete {key}", lambda keys: kv.delete(keys, namespace, key, origin(), tags)
    ),
    kv_names,
    st.sampled_from(TOPICS),
    conditions,
)
tables = st.builds(
    lambda namespace, wanted: plain(
        "table", lambda keys: kv.replace_table(keys, namespace, wanted, origin(), DEFAULT_LIMITS)
    ),
    kv_names,
    st.dictionaries(st.sampled_from(TOPICS), texts, max_size=4),
)
drains = st.builds(
    lambda name, reason, until: plain(
        "drain", lambda keys: drain(keys, name, Drain("o", reason, until), origin())
    ),
    st.sampled_from((*NAMES, "none")),
    texts,
    st.sampled_from((None, 1, 2**42)),
)
undrains = st.builds(
    lambda name: plain("undrain", lambda keys: undrain(keys, name, origin())), st.sampled_from(NAMES)
)
shared_settings = st.builds(
    lambda value: plain(
        "settings", lambda keys: shared.update(keys, {"orderMessageEnable": value}, origin())
    ),
    st.sampled_from(("true", "false")),
)
others = st.sampled_from(
    (
        plain("release hold", lambda keys: release(keys, origin())),
        plain("checkpoint", lambda keys: request_round(keys, "request", origin())),
        expiring(),
    )
)
exclusive = st.builds(registering, *said_by_brokers, st.just(Claimant("host:127.1.0.1", exclusive=True)))
everything = st.one_of(
    *(claims, claims, exclusive, guarded_heartbeats, guarded_removals, rewrites, deletions, guarded_settings),
    *(puts, deletes, tables, drains, undrains, shared_settings, others),
)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    asked=st.lists(
        st.tuples(everything, st.sampled_from((None, None, None, *NAMES))), min_size=5, max_size=20
    )
)
def test_a_dry_run_ends_as_the_run_that_follows_and_writes_nothing(
    redis: redis_py.Redis, asked: list[tuple[Asked, str | None]]
) -> None:
    keys = Keys(f"dry-{next(_namespaces)}")
    redis.flushall()
    redis.zadd(keys.workers, {"w1": 9e15, "w2": 9e15})
    for one, lapsing in asked:
        note(f"{one.text}, with the leases of {lapsing} over")
        if lapsing is not None:
            lapse(redis, keys, lapsing)
        both_ways(redis, keys, lambda one=one: one.plan(keys))  # type: ignore[misc]


def lapse(store: Store, keys: Keys, name: str) -> None:
    """Have the leases of a broker's members end, which nothing has recorded yet."""
    for field, member in store.hgetall(keys.broker(name)).items():
        if field.startswith("addr:"):
            store.zadd(keys.leases, {member: 1}, xx=True)


def test_a_large_first_registration_goes_in_slices_that_see_one_another(ns: Namespace) -> None:
    topics = [f"T{number}" for number in range(3_000)]

    def registered() -> Plan[Any]:
        return register(ns.keys, registration("b1", 0, topics), origin())

    both_ways(ns.store, ns.keys, registered)
    assert len(ns.topics("b1")) == 3_000


def test_a_rewrite_of_many_slices_counts_as_the_one_that_follows(ns: Namespace) -> None:
    ns.register("b1", 0, [f"T{number}" for number in range(1_200)])
    done = both_ways(ns.store, ns.keys, lambda: wipe_write_perm(ns.keys, "b1", origin()))
    assert done == (True, {"count": 1_200})


def test_a_member_of_more_names_than_a_script_takes_leaves_all_of_them(ns: Namespace) -> None:
    ns.limits = replace(MORE_MEMBERS, max_names_of_member=200)
    for number in range(120):
        ns.register(f"b{number}", 0, (), at=address("b", 0))
    both_ways(ns.store, ns.keys, lambda: unregister(ns.keys, "c1", address("b", 0), "b1", "0", origin()))


def test_a_topic_of_many_brokers_is_deleted_by_several_scripts(ns: Namespace) -> None:
    for number in range(160):
        ns.register(f"b{number}", 0, ("T", "T2"))
    assert both_ways(ns.store, ns.keys, lambda: delete_topic(ns.keys, "T", "", origin())) is True


def test_lapses_of_more_members_than_a_script_records_come_before_a_registration(ns: Namespace) -> None:
    ns.limits = MORE_MEMBERS
    for number in range(120):
        ns.register("b1", number, ())
    lapse(ns.store, ns.keys, "b1")

    def registered() -> Plan[Any]:
        return register(ns.keys, registration("b1", 0, ("T1", "T2")), origin(), limits=ns.limits)

    both_ways(ns.store, ns.keys, registered)


def test_a_broker_that_comes_back_after_its_lapse_has_its_topics(ns: Namespace) -> None:
    """The clean-up of its rows of before takes none of those that came since."""
    ns.register("b1", 0, ("T1", "T2"))
    lapse(ns.store, ns.keys, "b1")
    back = registration("b1", 0, ("T1", "T2"), at="127.9.9.9:10911")
    both_ways(ns.store, ns.keys, lambda: register(ns.keys, back, origin()))
    assert ns.topics("b1").keys() == {"T1", "T2"}


def test_a_key_of_another_type_is_replaced_in_the_dry_run_only(ns: Namespace) -> None:
    ns.register("b1")
    ns.store.delete(ns.keys.kv(ORDER_TOPIC_CONFIG))
    ns.store.set(ns.keys.kv("n1"), "no hash")

    def put() -> Plan[str]:
        return kv.put(ns.keys, "n1", "k", "v", origin())

    stored = contents(ns.store)
    dry_run = DryRun()
    run(dry_run.of(put()), ns.store)
    assert contents(ns.store) == stored
    assert [entry["kind"] for entry in dry_run.entries][-1] == "kv_changed"
    run(put(), ns.store)


def test_a_table_that_is_full_takes_keys_in_the_place_of_others(ns: Namespace) -> None:
    """Each step is judged by what those before it would have left."""
    limits = DEFAULT_LIMITS
    full = {f"k{number}": "v" for number in range(limits.max_kv_keys)}
    ns.run(kv.replace_table(ns.keys, "n1", full, origin(), limits))
    other = {**full, "new": "v"}
    other.pop("k0")
    assert (
        both_ways(ns.store, ns.keys, lambda: kv.replace_table(ns.keys, "n1", other, origin(), limits)) is True
    )


@pytest.mark.parametrize("error", [ConditionFailed, LimitReached])
def test_a_dry_run_raises_what_the_change_would(ns: Namespace, error: type[RegistryError]) -> None:
    tags = kv.Conditions(if_match=("other",)) if error is ConditionFailed else kv.NO_CONDITIONS
    value = "v" if error is ConditionFailed else "v" * (DEFAULT_LIMITS.max_kv_value_bytes + 1)
    ended = both_ways(ns.store, ns.keys, lambda: kv.put(ns.keys, "n", "k", value, origin(), conditions=tags))
    assert ended[0] is error


def test_plans_of_one_dry_run_see_what_those_before_them_would_have_written(ns: Namespace) -> None:
    dry_run = DryRun()
    run(dry_run.of(kv.put(ns.keys, "n", "k", "v", origin())), ns.store)
    assert run(dry_run.of(kv.get(ns.keys, "n", "k")), ns.store) == "v"
    assert run(dry_run.of(kv.table(ns.keys, "n")), ns.store) == {"k": "v"}
