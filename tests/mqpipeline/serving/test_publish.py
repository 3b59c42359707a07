"""Reports in Redis: what each key says, and that a reader never meets two runs."""

import json
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import redis as redis_py

from mqnamesrv.store import EmbeddedStore, programs
from mqpipeline.reports.catalogue import AVAILABILITY, FLAP, INCIDENTS
from mqpipeline.serving import names
from mqpipeline.serving.entries import Entry, entries, fitting
from mqpipeline.serving.publish import ASIDE_MS, LIMIT_BYTES, META_BYTES, TTL_MS, publish
from mqpipeline.serving.results import DAY_MS, Results, Run
from registry.drivers import run
from registry.keys import Keys
from registry.plans import call
from registry.reports import served as served_of_one_run
from registry.store.connect import connect
from testbed.eventually import eventually
from tests.mqpipeline.serving.example import AS_OF, RUN, TABLES, W0, availability, results, row

PREFIX = "ns:{default}:report:"


def run_named(name: str) -> Run:
    return msgspec.structs.replace(RUN, run=name)


def said(redis: redis_py.Redis, name: str) -> Any:
    """A hash, its values read as JSON; the members of a sorted set, lowest score first."""
    key = PREFIX + name
    if redis.type(key) == "zset":
        scored: Any = redis.zrange(key, 0, -1, withscores=True)
        return [(json.loads(member), score) for member, score in scored]
    values: Any = redis.hgetall(key)
    return {field: json.loads(value) for field, value in values.items()}


def keys_of(redis: redis_py.Redis) -> list[str]:
    return list(redis.scan_iter())


@pytest.fixture
def served(redis: redis_py.Redis) -> redis_py.Redis:
    publish(redis, "default", RUN, results())
    return redis


def test_readers_and_writers_mean_the_same_keys() -> None:
    assert Keys("n-1").report(FLAP.key()) == names.prefix("n-1") + "flap:values"


def test_meta(served: redis_py.Redis) -> None:
    meta = served.hgetall(PREFIX + "meta")
    seconds, _ = served.time()
    assert abs(int(meta.pop("published_ms")) - 1000 * seconds) < 60_000
    assert meta == {
        "run": "r1",
        "as_of_ms": str(AS_OF),
        "took_ms": "5300",
        "events": "14",
        "holes": "0",
        "phantoms": "0",
        "rejected": "0",
        "repeats": "0",
        "unknown": "0",
        "incomplete": "0",
        "waiting": "0",
        "incarnations": "0",
        "provisional": "1",
        "left_out": "0",
        "names": "incidents conflicts slo detect repair skew timeouts churn:1h availability:1h"
        " availability:day:2026-01-01 availability:month:2026-01 flap flap:values",
    }


def test_meta_says_how_a_checkpoint_compares(redis: redis_py.Redis) -> None:
    checked = msgspec.structs.replace(
        RUN, round_ms=AS_OF - 1, proves=True, members_differing=2, pairs_differing=0
    )
    publish(redis, "default", checked, results())
    names_of = ("round_ms", "proves", "members_differing", "pairs_differing")
    assert redis.hmget(PREFIX + "meta", names_of) == [str(AS_OF - 1), "1", "2", "0"]


def test_availability_of_a_window(served: redis_py.Redis) -> None:
    said_of = said(served, "availability:1h")
    assert set(said_of) == {
        "cluster:c1",
        "broker:c1:a",
        "broker:c1:b",
        "broker:c1:c",
        "topic:T1",
        "topic:T2",
    }
    assert said_of["broker:c1:a"] == {
        "window": "1h",
        "from_ms": W0,
        "to_ms": AS_OF,
        "up_ms": 3_060_000,
        "down_ms": 540_000,
        "planned_ms": 0,
        "unknown_ms": 0,
        "availability": 0.85,
        "weighted": None,
        "outages": 2,
        "mtbf_ms": 1_530_000.0,
        "mttr_ms": 270_000.0,
        "worst": {"5m": 0.0},
        "provisional": True,
    }
    assert said_of["broker:c1:b"]["mtbf_ms"] is None
    assert set(said(served, "availability:day:2026-01-01")) == {"cluster:c1", "broker:c1:a"}
    assert set(said(served, "availability:month:2026-01")) == {"cluster:c1"}


@pytest.mark.parametrize(
    ("name", "unit", "column", "value"),
    [
        ("slo", "cluster:c1", "remaining", -95.5517),
        ("slo", "cluster:c1", "alerts", ["14.4"]),
        ("detect", "cluster:c1", "p50_ms", 120_000.0),
        ("repair", "cluster:c1", "p90_ms", None),
        ("skew", "topic:T1", "queues_gini", 0.222222),
        ("timeouts", "cluster:c1", "suggested_timeout_ms", 120_000.0),
        ("flap:values", "slot:c1:c:0", "flapping", False),
    ],
)
def test_a_report_by_unit(served: redis_py.Redis, name: str, unit: str, column: str, value: Any) -> None:
    assert said(served, name)[unit][column] == value


def test_reports_of_one_window_tell_of_the_longest(redis: redis_py.Redis) -> None:
    rows = tuple(
        row(FLAP.table, "slot:c1:a:0", window, score=1.0, episodes=n) for window, n in [("1h", 1), ("7d", 2)]
    )
    publish(redis, "default", RUN, results(report_flap=rows))
    assert said(redis, "flap:values")["slot:c1:a:0"]["episodes"] == 2


def test_churn(served: redis_py.Redis) -> None:
    churn = served.hgetall(PREFIX + "churn:1h")
    assert json.loads(churn.pop("top")) == [{"topic": "T1", "changes": 9}, {"topic": "T2", "changes": 2}]
    assert churn == {
        "c1:first": "4,5",
        "c1:lost": "1,1",
        "c1:unregistered": "1,1",
        "c1:expired": "2,3",
        "c1:wipe": "1,1",
        "c1:restore": "1,1",
    }


def test_what_happened_is_sorted_by_time(served: redis_py.Redis) -> None:
    assert served.zrange(PREFIX + "flap", 0, -1, withscores=True) == [
        ("slot:c1:a:0", 373.4),
        ("slot:c1:b:0", 565.0),
        ("slot:c1:c:0", 793.7),
    ]
    ((incident, start),) = said(served, "incidents")
    assert (incident["members"], incident["ids"], start) == (4, [f"{W0 + 1_923_400}-0"], W0 + 1_920_000)
    ((conflict, last),) = said(served, "conflicts")
    assert (conflict["unit"], conflict["count"], last) == ("slot:c1:a:0:state_version", 2, W0 + 700_000)


def test_all_of_it_goes_after_a_week(served: redis_py.Redis) -> None:
    keys = keys_of(served)
    assert len(keys) == 14
    for key in keys:
        assert TTL_MS - 60_000 < served.pttl(key) <= TTL_MS, key


def test_what_the_next_run_lacks_goes_with_it(served: redis_py.Redis) -> None:
    served.set(PREFIX + "other", "not of a run")
    publish(
        served,
        "default",
        run_named("r2"),
        Results(AS_OF, {INCIDENTS.table.name: TABLES[INCIDENTS.table.name]}),
    )
    assert set(keys_of(served)) == {PREFIX + name for name in ("meta", "incidents", "other")}
    assert served.hget(PREFIX + "meta", "run") == "r2"


def test_namespaces_stay_apart(served: redis_py.Redis) -> None:
    publish(served, "second", run_named("s1"), results())
    publish(served, "second", run_named("s2"), Results(AS_OF, {}))
    assert served.keys("ns:{second}:*") == ["ns:{second}:report:meta"]
    assert served.hget(PREFIX + "meta", "run") == "r1"


@pytest.mark.parametrize("writes", [0, 1, 3])
def test_a_run_that_ends_halfway_leaves_the_old_one_whole(
    served: redis_py.Redis, store: EmbeddedStore, monkeypatch: pytest.MonkeyPatch, writes: int
) -> None:
    before = {key: served.dump(key) for key in keys_of(served)}
    many = tuple(availability(f"topic:T{n}", (1, 1, 0, 0), 1) for n in range(3000))
    with connect(store.url) as client:
        whole, done = client.pipeline, iter(range(writes))

        def breaking(*args: Any, **options: Any) -> Any:
            if next(done, None) is None:
                raise redis_py.ConnectionError("killed")
            return whole(*args, **options)

        monkeypatch.setattr(client, "pipeline", breaking)
        with pytest.raises(redis_py.ConnectionError):
            publish(client, "default", run_named("r2"), results(report_availability=many))
    left = set(keys_of(served)) - set(before)
    assert bool(left) is bool(writes)
    assert all(key.startswith(PREFIX + "run:r2:") for key in left)
    assert all(0 < served.pttl(key) <= ASIDE_MS for key in left)
    assert {key: served.dump(key) for key in before} == before
    publish(served, "default", run_named("r3"), results())
    assert set(keys_of(served)) - left == set(before)


def test_what_was_written_aside_must_still_be_there(
    served: redis_py.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Redis may evict a key, or the run be stopped for longer than its TTL."""
    monkeypatch.setattr("mqpipeline.serving.publish.ASIDE_MS", 0)
    with pytest.raises(redis_py.ResponseError, match="GONE"):
        publish(served, "default", run_named("r2"), results())
    assert served.hget(PREFIX + "meta", "run") == "r1"
    assert served.exists(PREFIX + "slo") == 1


def in_a_transaction(client: redis_py.Redis) -> tuple[Any, ...]:
    with client.pipeline(transaction=True) as pipe:
        pipe.hget(PREFIX + "meta", "run")
        pipe.zrange(PREFIX + "flap", 0, -1)
        pipe.hget(PREFIX + "availability:1h", "cluster:c1")
        return tuple(pipe.execute())


def as_http_does(client: redis_py.Redis) -> tuple[Any, ...]:
    keys = Keys()
    flap = call("ZRANGE", keys.report("flap"), 0, -1)
    available = call("HGET", keys.report(AVAILABILITY.key("1h")), "cluster:c1")
    found = run(served_of_one_run(keys, flap, available), client)
    assert found is not None
    return (found.meta.run, *found.replies)


@pytest.mark.parametrize("read", [in_a_transaction, as_http_does])
def test_a_reader_never_meets_two_runs(
    store: EmbeddedStore, redis: redis_py.Redis, read: Callable[[redis_py.Redis], tuple[Any, ...]]
) -> None:
    """Each run says its number everywhere, and every reader compares."""
    over, mixed, seen = threading.Event(), [], set()

    def numbered(n: int) -> Results:
        score = (row(FLAP.table, f"slot:c1:a:{n}", score=float(n)),)
        return results(report_flap=score, report_availability=(availability("cluster:c1", (n, 0, 0, 0), 0),))

    def compare() -> None:
        with connect(store.url) as client:
            while not over.is_set():
                name, slots, cluster = read(client)
                numbers = {name, *(slot.rpartition(":")[2] for slot in slots)}
                numbers.add(str(json.loads(cluster)["up_ms"] // 1000))
                seen.add(name)
                if len(numbers) > 1:
                    mixed.append(numbers)

    publish(redis, "default", run_named("1"), numbered(1))
    readers = [threading.Thread(target=compare) for _ in range(3)]
    for reader in readers:
        reader.start()
    for n in range(2, 60):
        publish(redis, "default", run_named(str(n)), numbered(n))
    eventually(lambda: len(seen) > 1, 10)
    over.set()
    for reader in readers:
        reader.join()
    assert not mixed


def a_great_deal() -> Iterator[Any]:
    for window in ("1h", "24h", "7d", "30d"):
        yield availability("cluster:c1", (86_399, 1, 0, 0), 1, window=window)
        for n in range(3000):
            yield availability(
                f"broker:c1:broker-{n:05}", (86_399, 1, 0, 0), 1, window=window, worst={"5m": 0.5}
            )
        for n in range(200):
            yield availability(f"topic:{'T' * 200}{n}", (86_399, 1, 0, 0), 1, window=window)


def test_all_keys_together_take_at_most_5_mb(redis: redis_py.Redis) -> None:
    found = results(report_availability=tuple(a_great_deal()))
    served = publish(redis, "default", RUN, found)
    assert served.left_out > 500
    assert redis.hget(PREFIX + "meta", "left_out") == str(served.left_out)
    used = sum(redis.memory_usage(key, samples=0) or 0 for key in keys_of(redis))
    assert 0.8 * LIMIT_BYTES < used <= LIMIT_BYTES
    assert {"cluster:c1"} <= set(redis.hkeys(PREFIX + "availability:30d"))
    assert redis.exists(PREFIX + "incidents", PREFIX + "slo") == 2


@pytest.mark.parametrize(
    ("limit", "kept", "left_out"),
    [
        pytest.param(0, "", 3, id="nothing fits"),
        pytest.param(2 * 130, "ac", 1, id="a big one gives way to what comes after"),
        pytest.param(1000, "abc", 0, id="all of it"),
    ],
)
def test_what_fits(limit: int, kept: str, left_out: int) -> None:
    found = [Entry("k", "a", "1"), Entry("k", "b", "1" * 200), Entry("k", "c", "1")]
    taken, left = fitting(found, limit)
    assert ("".join(entry.field for entry in taken), left) == (kept, left_out)


def test_meta_fits_in_what_is_kept_for_it() -> None:
    windows = (f"availability:day:2026-01-{day:02}" for day in range(1, 32))
    assert 4 * sum(map(len, windows)) < META_BYTES


def listens(client: redis_py.Redis) -> bool:
    try:
        return bool(client.ping())
    except redis_py.ConnectionError:
        return False


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[redis_py.RedisCluster]:
    """A Redis Cluster of one server, which refuses commands and scripts over several slots as any does."""
    with socket.create_server(("127.0.0.1", 0)) as port, socket.create_server(("127.0.0.1", 0)) as bus:
        ports = port.getsockname()[1], bus.getsockname()[1]
    options = {
        "--port": ports[0],
        "--cluster-port": ports[1],
        "--bind": "127.0.0.1",
        "--cluster-enabled": "yes",
        "--dir": tmp_path,
        "--save": "",
        "--loglevel": "warning",
    }
    given = (str(part) for option in options.items() for part in option)
    given = (str(part) for option in options.items() for part in option)
    server = subprocess.Popen([next(iter(programs().values())), *given])
    try:
        with redis_py.Redis(port=ports[0]) as first:
            eventually(lambda: listens(first), 10)
            first.execute_command("CLUSTER ADDSLOTSRANGE", 0, 16383)
            eventually(lambda: first.execute_command("CLUSTER INFO")["cluster_state"] == "ok", 10)
        with redis_py.RedisCluster("127.0.0.1", ports[0], decode_responses=True) as client:
            yield client
    finally:
        server.kill()
        server.wait()


def test_a_redis_cluster_serves_as_well(cluster: redis_py.RedisCluster) -> None:
    for name in ("r1", "r2"):
        publish(cluster, "default", run_named(name), results())
    publish(cluster, "second", run_named("s1"), results())
    assert cluster.hget(PREFIX + "meta", "run") == "r2"
    assert cluster.hget(names.prefix("second") + "meta", "run") == "s1"
    assert len(list(cluster.scan_iter())) == 28


def test_hostile_names_stay_text(redis: redis_py.Redis) -> None:
    unit = 'topic:"\\\n\x00</script>\u2028{}'
    publish(redis, "default", RUN, results(report_availability=(availability(unit, (1, 0, 0, 0), 0),)))
    assert list(said(redis, "availability:1h")) == [unit]


def test_the_most_important_comes_first() -> None:
    keys = [entry.key for entry in entries(results())]
    assert keys[0] == "incidents"
    assert keys[-1] == "availability:day:2026-01-01"
    days = (
        availability("broker:c1:a", (1, 0, 0, 0), 0, window="day", from_ms=start, to_ms=start + DAY_MS)
        for start in (W0 - 2 * DAY_MS, W0, W0 - DAY_MS)
    )
    dated = [entry.key.rpartition(":")[2] for entry in entries(results(report_availability=tuple(days)))]
    assert dated[-3:] == ["2026-01-01", "2025-12-31", "2025-12-30"]


def test_no_number_is_null(redis: redis_py.Redis) -> None:
    nothing = availability("broker:c1:x", (0, 0, 0, 3600), 0)
    publish(redis, "default", RUN, results(**{AVAILABILITY.table.name: (nothing,)}))
    assert said(redis, "availability:1h")["broker:c1:x"]["availability"] is None
