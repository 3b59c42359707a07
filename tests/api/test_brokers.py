"""Members with their leases, as operators see them."""

import pytest
import redis as redis_py

from registry.drivers import run
from registry.keys import Keys
from registry.members import NAMES_MAX, Lease, brokers
from registry.plans import Origin
from registry.registration.register import Registration, register
from tests.api.http import MASTER, SLAVE, Http, a_broker


def set_lease(redis: redis_py.Redis, keys: Keys, member: str, from_now_ms: int) -> int:
    seconds, micros = redis.time()
    now = seconds * 1000 + micros // 1000
    redis.zadd(keys.leases, {member: now + from_now_ms})
    return now + from_now_ms


def test_all_of_a_member_is_shown(http: Http, redis: redis_py.Redis, keys: Keys) -> None:
    http.ok("POST", "/v1/brokers", a_broker(heartbeatTimeoutMillis=30_000, filterServers=["127.0.1.1:8"]))
    http.ok(
        "POST",
        "/v1/brokers",
        a_broker(
            brokerAddr=SLAVE,
            brokerId=1,
            haServerAddr="127.0.1.2:10912",
            zoneName="z1",
            enableActingMaster=True,
        ),
    )
    broker = http.ok("GET", "/v1/brokers/broker-a")
    master, slave = broker.pop("members")
    assert broker == {
        "brokerName": "broker-a",
        "cluster": "c1",
        "clusters": ["c1"],
        "zoneName": "z1",
        "enableActingMaster": True,
        "epoch": 1,
        "host": "127.0.0.1",
        "drain": None,
    }
    lease, since = master.pop("lease"), master.pop("sinceMillis")
    assert master == {
        "cluster": "c1",
        "brokerId": 0,
        "brokerAddr": MASTER,
        "haServerAddr": None,
        "dataVersion": {"stateVersion": 0, "timestamp": 1700000000000, "counter": 1},
        "filterServers": ["127.0.1.1:8"],
        "owners": [],
        "mirroredFrom": None,
    }
    assert lease["endMillis"] == lease["keptUntilMillis"] == since + 30_000
    assert lease["state"] == "living"
    assert lease["timeoutMillis"] == 30_000
    assert lease["ageMillis"] + lease["remainingMillis"] == 30_000
    assert (slave["brokerId"], slave["haServerAddr"]) == (1, "127.0.1.2:10912")


def test_owners_are_the_connections_of_a_wire_registration(
    http: Http, redis: redis_py.Redis, keys: Keys
) -> None:
    for connection in ("w1/2", "w1/1"):
        registration = Registration("c1", "broker-a", MASTER, 0)
        run(register(keys, registration, Origin("w1-1", "wire:127.0.1.1:1"), owner=connection), redis)
    assert http.ok("GET", "/v1/brokers/broker-a")["members"][0]["owners"] == ["w1/1", "w1/2"]


def test_a_broker_of_two_clusters(http: Http) -> None:
    http.ok("POST", "/v1/brokers", a_broker())
    http.ok("POST", "/v1/brokers", a_broker(cluster="c:2", brokerAddr=SLAVE, brokerId=1))
    broker = http.ok("GET", "/v1/brokers/broker-a")
    assert (broker["cluster"], broker["clusters"]) == ("c1", ["c1", "c:2"])
    assert [member["cluster"] for member in broker["members"]] == ["c1", "c:2"]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        pytest.param("", ["*a", "a-1", "a-2", "b-1"], id="all"),
        pytest.param("?cluster=c2", ["a-2", "b-1"], id="that a cluster lists"),
        pytest.param("?cluster=none", [], id="of an unknown cluster"),
        pytest.param("?prefix=a-", ["a-1", "a-2"], id="that begin so"),
        pytest.param("?prefix=*", ["*a"], id="a sign of a pattern is a letter"),
        pytest.param("?prefix=a&cluster=c2", ["a-2"], id="both"),
        pytest.param("?cluster=c2&after=a-2", ["b-1"], id="behind a page of them"),
    ],
)
def test_brokers_of_a_cluster_and_by_prefix(http: Http, query: str, names: list[str]) -> None:
    for port, (cluster, name) in enumerate((("c1", "*a"), ("c1", "a-1"), ("c2", "a-2"), ("c2", "b-1")), 1):
        http.ok(
            "POST",
            "/v1/brokers",
            a_broker(cluster=cluster, brokerName=name, brokerAddr=f"127.0.1.1:{port}"),
        )
    assert [broker["brokerName"] for broker in http.ok("GET", f"/v1/brokers{query}")["brokers"]] == names


@pytest.mark.parametrize(
    ("lease_ms", "hold_ms", "state", "remaining"),
    [
        pytest.param(60_000, None, "living", (50_000, 60_000), id="living"),
        pytest.param(-10, None, "overdue", (0, 0), id="overdue: removed any moment"),
        pytest.param(-10, 30_000, "held", (20_000, 30_000), id="held after an outage"),
        pytest.param(60_000, 30_000, "living", (50_000, 60_000), id="living whatever the hold"),
        pytest.param(-10, -5, "overdue", (0, 0), id="overdue: the hold is over too"),
    ],
)
def test_states_of_a_lease(
    http: Http,
    redis: redis_py.Redis,
    keys: Keys,
    lease_ms: int,
    hold_ms: int | None,
    state: str,
    remaining: tuple[int, int],
) -> None:
    http.ok("POST", "/v1/brokers", a_broker())
    end = set_lease(redis, keys, f"c1:{MASTER}", lease_ms)
    if hold_ms is not None:
        redis.hset(keys.events_meta, "hold_from_ms", end - lease_ms - 60_000)
        redis.hset(keys.events_meta, "hold_until_ms", end - lease_ms + hold_ms)
    lease = http.ok("GET", "/v1/brokers/broker-a")["members"][0]["lease"]
    assert lease["state"] == state
    assert lease["endMillis"] == end
    assert remaining[0] <= lease["remainingMillis"] <= remaining[1]
    assert bool(http.ok("GET", "/v1/clusters")["clusters"]) is (state != "overdue")


@pytest.mark.parametrize(
    ("now", "state", "remaining", "age"),
    [
        pytest.param(99, "living", 51, 29, id="before its end"),
        pytest.param(100, "held", 50, 30, id="at its end"),
        pytest.param(150, "overdue", 0, 80, id="at the hold's end"),
    ],
)
def test_a_lease_at_a_moment(now: int, state: str, remaining: int, age: int) -> None:
    lease = Lease(now_ms=now, end_ms=100, kept_until_ms=150, timeout_ms=30)
    assert (lease.state, lease.remaining_ms, lease.age_ms) == (state, remaining, age)


def test_more_brokers_than_one_script_takes(redis: redis_py.Redis, keys: Keys) -> None:
    names = [f"broker-{i:03}" for i in range(NAMES_MAX + 1)]
    for i, name in enumerate(names):
        run(
            register(keys, Registration("c1", name, f"127.0.1.1:{i + 1}", 0), Origin("t-1", "job:test")),
            redis,
        )
    listed = run(brokers(keys, [*names, "no-broker"]), redis)
    assert [broker.name for broker in listed] == names


def test_clusters_list_brokers_that_live(http: Http) -> None:
    http.ok("POST", "/v1/brokers", a_broker())
    http.ok(
        "POST", "/v1/brokers", a_broker(cluster="c2", brokerName="broker-b", brokerAddr=SLAVE, zoneName="z")
    )
    first = {"brokerName": "broker-a", "cluster": "c1", "brokerAddrs": {"0": MASTER}} | {
        "enableActingMaster": False,
        "zoneName": None,
    }
    second = first | {"brokerName": "broker-b", "cluster": "c2", "brokerAddrs": {"0": SLAVE}, "zoneName": "z"}
    assert http.ok("GET", "/v1/clusters/c2") == {"cluster": "c2", "brokerDatas": [second]}
    assert http.ok("GET", "/v1/clusters")["clusters"] == [
        {"cluster": "c1", "brokerDatas": [first]},
        {"cluster": "c2", "brokerDatas": [second]},
    ]


def test_names_of_clusters_alone(http: Http, redis: redis_py.Redis, keys: Keys) -> None:
    """Of one without a living member, too."""
    for port, cluster in enumerate(("c2", "c1", "c3"), 1):
        http.ok(
            "POST",
            "/v1/brokers",
            a_broker(cluster=cluster, brokerName=cluster, brokerAddr=f"127.0.1.1:{port}"),
        )
    set_lease(redis, keys, "c1:127.0.1.1:2", -10)
    first = http.ok("GET", "/v1/clusters?brokers=false&limit=2")
    assert first == {
        "clusters": [{"cluster": name, "brokerDatas": None} for name in ("c1", "c2")],
        "next": "c2",
    }
    rest = http.ok("GET", "/v1/clusters?brokers=false&after=c2")
    assert [cluster["cluster"] for cluster in rest["clusters"]] == ["c3"]
