"""Plans driven with literal replies: what each asks of Redis, and what it makes of the answer."""

from typing import Any, TypeVar

import pytest
from msgspec.structs import replace

from registry.clusters import cluster_info, member_group, system_topics
from registry.errors import BrokerBusy, ConfigNotFound
from registry.expiry.worker_lease import Tick, tick
from registry.keys import Keys
from registry.kv import get, import_table, table
from registry.long_work.scan import members_of, scan, some_of
from registry.plans import (
    NOTHING,
    Acquire,
    Batch,
    Call,
    Expected,
    Pause,
    Plan,
    Request,
    ScriptCall,
    ScriptItem,
    call,
    exceptions,
    pairs,
)
from registry.registration.heartbeat import Heartbeat, renew_lease
from registry.registration.register import PENDING_PAUSES, register
from registry.registration.renewals import Renewal
from registry.removal import Disconnected, release_owner, unregister
from registry.routes import RoutesRead, StoredBroker, StoredRoute, read_route
from rocketmq_remoting.cluster import BrokerMemberGroup, ClusterInfo
from rocketmq_remoting.data_version import DataVersion
from rocketmq_remoting.route import BrokerData, QueueData
from rocketmq_remoting.topic_list import TopicList
from tests.registry.brokers import mapping_info, origin, registration

T = TypeVar("T")
KEYS = Keys()
HEARTBEAT = ScriptItem(
    "heartbeat", (KEYS.leases,), (KEYS.member("c1:a:1"),), ("c1:a:1",), exceptions, expected=NOTHING
)


def again(*reply: str) -> Renewal:
    expected = Expected(" ".join(reply[1:]), [*reply])
    return Renewal(replace(HEARTBEAT, expected=expected), [*reply], 0.12)


def answered(plan: Plan[T], *replies: Any) -> tuple[list[str], T]:
    """What the plan asked for, in short, and its result once it has all replies."""
    asked: list[str] = []
    left = list(replies)
    request = next(plan)
    try:
        while True:
            asked.append(short(request))
            assert left, f"no reply to {asked[-1]}"
            request = plan.send(left.pop(0))
    except StopIteration as done:
        assert not left
        return asked, done.value


def short(request: Request) -> str:
    match request:
        case Call(args):
            return " ".join(str(arg).removeprefix(KEYS.prefix) for arg in args)
        case ScriptCall(name) | ScriptItem(name):
            return name
        case Batch(requests):
            return " + ".join(map(short, requests))
        case Pause(seconds):
            return f"pause {seconds}"
        case Acquire():
            return "enter"


def test_a_hash_is_read_in_pages() -> None:
    asked, found = answered(scan("h"), ("17", {"a": "1"}), (0, {"b": "2", "a": "1"}))
    assert asked == ["HSCAN h 0 COUNT 100", "HSCAN h 17 COUNT 2000"]
    assert found == {"a": "1", "b": "2"}


def test_pages_of_long_texts_have_few_items() -> None:
    """The store is held as long by the bytes as by the items."""
    long = {str(number): "x" * 32_000 for number in range(100)}
    asked, found = answered(scan("h"), ("17", long), (0, {"b": "2"}))
    assert asked == ["HSCAN h 0 COUNT 100", "HSCAN h 17 COUNT 15"]
    assert found == long | {"b": "2"}


def test_a_set_is_read_in_pages() -> None:
    asked, found = answered(
        members_of("s"), ("17", ["a", "b"]), ("18", []), ("19", ["x" * 600_000]), (0, ["a"])
    )
    assert asked == [
        f"SSCAN s {at} COUNT {count}" for at, count in ((0, 100), (17, 2000), (18, 2000), (19, 1))
    ]
    assert found == {"a", "b", "x" * 600_000}


def test_a_command_takes_few_long_names() -> None:
    assert some_of(["a", "b", "c", "d"], 1, 2) == ["b", "c"]
    assert some_of(["x" * 400_000] * 3, 0, 3) == ["x" * 400_000]


def test_pairs_of_a_flat_reply() -> None:
    assert pairs(["a", "1", "b", "2"]) == {"a": "1", "b": "2"}
    with pytest.raises(ValueError, match="shorter"):
        pairs(["a"])


@pytest.mark.parametrize(
    ("replies", "asked", "found"),
    [
        pytest.param(
            [["renewed", "120000", "0:5:1"]],
            ["heartbeat"],
            Heartbeat(DataVersion(0, 5, 1), renewal=again("renewed", "120000", "0:5:1")),
            id="known",
        ),
        pytest.param([["unknown"]], ["heartbeat"], Heartbeat(None), id="unknown"),
        pytest.param(
            [["renewed", "120000", ""]],
            ["heartbeat"],
            Heartbeat(
                DataVersion(timestamp=-1),
                renewal=again("renewed", "120000", ""),
            ),
            id="incomplete",
        ),
        pytest.param(
            [["lapsed"], ["renewed", "0:5:1", "7-0", []]],
            ["heartbeat", "reinstate_member"],
            Heartbeat(DataVersion(0, 5, 1), "7-0"),
            id="lapsed, and back",
        ),
        pytest.param(
            [["lapsed"], ["unknown"]],
            ["heartbeat", "reinstate_member"],
            Heartbeat(None),
            id="lapsed, and recorded",
        ),
    ],
)
def test_a_heartbeat(replies: list[Any], asked: list[str], found: Heartbeat) -> None:
    assert answered(renew_lease(KEYS, "c1", "a:1", origin()), *replies) == (asked, found)


def test_a_route_as_it_is_read() -> None:
    info = mapping_info("T", "b1")
    mapping = '{"topic":"T","bname":"b1","totalQueues":1,"currIdMap":{"0":0},"scope":"__global__","epoch":1}'
    brokers = [
        ["b1", "12", "c1", "1", "z", "0", "10", "a:3", "", "0", "a:1", '["f:1"]'],
        ["b2", "3", "c1", "0", "", "0", "0", "a:2", ""],
    ]
    rows = ["b1", "12,8,4,6,1", "b2", "2,8,8,6,0", "gone", "1,8,8,6,0"]
    mappings = ["b1", f"12,{mapping}", "b2", "3,of another route"]
    reply = [brokers, [[1, "b1:4", *mappings]], [[], rows], 1, 2, 2]
    asked, route = answered(read_route(KEYS, "T"), [brokers, [[0, "b1:4", *mappings]], [rows], 1])
    data = BrokerData("c1", "b1", {0: "a:1", 10: "a:3"}, True, "z")
    queues = QueueData("b1", 8, 4, 6, 1)
    assert asked == ["read_routes"]
    read = RoutesRead(reply)
    assert (len(read), read.route("T", 1)) == (3, route)
    assert read.route("U", 0) == StoredRoute("U", (), frozenset())
    assert [one.queues for one in read.route("U", 2).brokers] == [queues]
    assert read.route("U", 2).order_conf is None
    assert route == StoredRoute(
        "T",
        (StoredBroker(data, queues, {"a:1": ("f:1",)}, info),),
        frozenset({"b1", "b2", "gone"}),
        "b1:4",
        {"b1": frozenset({0, 10})},
    )
    assert list(route.brokers[0].data.broker_addrs) == [0, 10]


def test_clusters_as_they_are_read() -> None:
    rows = [
        ["b2", "c1", "0", "", ["c2", "c1"], ["1", "a:2"]],
        ["b1", "c1", "1", "z", ["c1"], ["10", "a:3", "2", "a:1"]],
    ]
    _, clusters = answered(cluster_info(KEYS), [2, *rows])
    assert clusters == ClusterInfo(
        {
            "b1": BrokerData("c1", "b1", {2: "a:1", 10: "a:3"}, True, "z"),
            "b2": BrokerData("c1", "b2", {1: "a:2"}),
        },
        {"c1": ("b1", "b2"), "c2": ("b2",)},
    )
    assert system_topics(clusters) == TopicList(("c1", "c2", "b1", "b2"), "a:1")


def test_system_topics_without_brokers() -> None:
    assert system_topics(ClusterInfo({}, {})) == TopicList(())


@pytest.mark.parametrize(
    ("rows", "found"),
    [([], {}), ([["b1", "c1", "0", "", ["c1"], ["1", "a:2", "0", "a:1"]]], {0: "a:1", 1: "a:2"})],
)
def test_a_member_group_echoes_the_cluster(rows: list[Any], found: dict[int, str]) -> None:
    assert answered(member_group(KEYS, "asked", "b1"), [1, *rows])[1] == BrokerMemberGroup(
        "asked", "b1", found
    )


def test_a_tick() -> None:
    found = answered(
        tick(KEYS, "w1", origin()), ["100", "7", "130", ["c1:a:1", "90", "c1:a:2", "95.0"], "", "0"]
    )[1]
    assert found == Tick(100, 7, 130, {"c1:a:1": 90, "c1:a:2": 95})
    assert answered(tick(KEYS, "w1", origin()), ["100", "7", "", [], "9-1", "60000"])[1] == Tick(
        100, 7, None, {}, "9-1", 60_000
    )


@pytest.mark.parametrize(
    ("reply", "found"), [([], None), (["100", "7e2"], Disconnected("c1", "a:1", 100, 700))]
)
def test_a_released_owner(reply: list[str], found: Disconnected | None) -> None:
    assert answered(release_owner(KEYS, "c1", "a:1", "w1/1"), reply)[1] == found


def test_a_removal_does_its_own_clean_up_and_no_other() -> None:
    notes = {"clean:b1": "7-0", "clean:b2": "6-0"}
    asked, removal = answered(
        unregister(KEYS, "c1", "a:1", "b1", "0", origin()),
        ["7-0", ["b1"]],
        notes,
        [None, None],
        (0, {"T": "5,8,8,6,0"}),
        1,
        (0, {}),
        1,
    )
    assert asked == [
        "unregister",
        "HGETALL owed",
        "HGET broker:b1 epoch + GET pending:b1",
        "HSCAN topics_of:b1 0 COUNT 100",
        "sweep_topics",
        "HSCAN mappings_of:b1 0 COUNT 100",
        "clear_deferred",
    ]
    assert (removal.event_id, removal.brokers) == ("7-0", ("b1",))


def test_a_registration_waits_for_another_of_its_broker() -> None:
    with pytest.raises(BrokerBusy):
        answered(
            register(KEYS, registration(), origin()),
            ["differs"],
            *[["pending"], None] * PENDING_PAUSES,
            ["pending"],
            ["unknown"],
        )


def test_a_missing_kv_key_and_namespace() -> None:
    with pytest.raises(ConfigNotFound):
        answered(get(KEYS, "n", "k"), None)
    with pytest.raises(ConfigNotFound):
        answered(table(KEYS, "n"), [0, {}])
    assert answered(table(KEYS, "n"), [1, {}])[1] == {}


def test_a_file_is_imported_into_an_empty_store_only() -> None:
    tables = {"n": {"k": "v"}, "empty": {}}
    assert answered(import_table(KEYS, tables, origin()), 1) == (["EXISTS kv"], False)
    asked = answered(import_table(KEYS, tables, origin()), 0, "1-0", 1)
    assert asked == (["EXISTS kv", "set_kv", "SADD kv empty"], True)


def test_a_call_is_its_arguments() -> None:
    assert call("GET", "k").args == ("GET", "k")
