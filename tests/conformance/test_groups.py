"""QUERY_DATA_VERSION, BROKER_HEARTBEAT, member groups and pushes (docs/conformance.md, 322 and 5X).

That no broker was pushed to is seen by what comes next: pushes keep the order of what caused them.
"""

import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from rocketmq_remoting.cluster import decode_broker_member_group
from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.command import Command
from testbed.broker import A1, A, Broker
from testbed.eventually import eventually, stays
from testbed.push import Listener
from testbed.scene import Scene

STORED = {"counter": 1, "stateVersion": 0, "timestamp": 1000}


@pytest.mark.parametrize(
    ("changes", "changed", "body"),
    [
        pytest.param({}, "false", STORED, id="equal", marks=pytest.mark.conformance("322-01", "322-06")),
        pytest.param(
            {"counter": 2}, "true", STORED, id="other counter", marks=pytest.mark.conformance("322-02")
        ),
        pytest.param(
            {"timestamp": 999}, "true", STORED, id="other timestamp", marks=pytest.mark.conformance("322-02")
        ),
        pytest.param(
            {"addr": "127.10.0.9:10911"}, "true", None, id="unknown", marks=pytest.mark.conformance("322-03")
        ),
        pytest.param(
            {"cluster": "c2"}, "true", None, id="other cluster", marks=pytest.mark.conformance("322-04")
        ),
        pytest.param(
            {"state_version": 0},
            "false",
            STORED,
            id="with stateVersion",
            marks=pytest.mark.conformance("322-07"),
        ),
        pytest.param(
            {"state_version": 1},
            "true",
            STORED,
            id="other stateVersion",
            marks=pytest.mark.conformance("322-07"),
        ),
    ],
)
def test_a_data_version_is_asked_for(
    ns: Scene, changes: dict[str, object], changed: str, body: dict[str, int] | None
) -> None:
    ns.f1()
    answer = A.query(ns.k2, **changes)
    assert (answer.code, answer.ext) == (0, {"changed": changed})
    assert (json.loads(answer.body) if answer.body else None) == body


@pytest.mark.conformance("322-05")
@pytest.mark.parametrize("body", [b"", b"null"])
def test_a_data_version_is_asked_for_without_body(ns: Scene, body: bytes) -> None:
    ns.f1()
    answer = ns.k2.ask(RequestCode.QUERY_DATA_VERSION, A.identity(), body)
    assert (answer.code, answer.ext, json.loads(answer.body)) == (0, {"changed": "true"}, STORED)


@pytest.mark.conformance("322-08")
def test_a_oneway_data_version_is_a_heartbeat(ns: Scene) -> None:
    broker = ns.f1(timeout_ms=2000)

    def heartbeat() -> bool:
        ns.k1.send_oneway(RequestCode.QUERY_DATA_VERSION, broker.identity(), broker.data_version())
        return ns.brokers() == {"broker-a": {0: A.addr}}

    stays(heartbeat, for_s=2.6, every_s=0.25)
    assert ns.k1.silent()


@pytest.mark.conformance("5X-01")
@pytest.mark.parametrize("addr", [A.addr, "127.10.0.9:10911"], ids=["known", "unknown"])
def test_a_heartbeat_is_always_welcome(ns: Scene, addr: str) -> None:
    broker = ns.f1()
    assert ns.k1.ask(RequestCode.BROKER_HEARTBEAT, broker.but(addr=addr).identity()).code == 0


@pytest.mark.conformance("5X-02")
def test_a_heartbeat_without_cluster(ns: Scene) -> None:
    ns.f1()
    ext = {"brokerAddr": A.addr, "brokerName": A.name}
    assert ns.k1.ask(RequestCode.BROKER_HEARTBEAT, ext).code == 1


def group(ns: Scene, cluster: str, name: str) -> Command:
    answer = ns.ask(RequestCode.GET_BROKER_MEMBER_GROUP, {"clusterName": cluster, "brokerName": name})
    assert answer.code == 0
    return answer


@pytest.mark.conformance("5X-03")
def test_the_members_of_a_group(ns: Scene) -> None:
    ns.f2()
    members = decode_broker_member_group(group(ns, "c1", "broker-a").body)
    assert (members.cluster, members.broker_name) == ("c1", "broker-a")
    assert members.broker_addrs == {0: A.addr, 1: A1.addr}
    assert b'{0:"127.10.0.1:10911",1:"127.10.0.2:10911"}' in group(ns, "c1", "broker-a").body


@pytest.mark.conformance("5X-04")
def test_a_groups_cluster_is_echoed(ns: Scene) -> None:
    ns.f1()
    members = decode_broker_member_group(group(ns, "zzz", "broker-a").body)
    assert (members.cluster, members.broker_addrs) == ("zzz", {0: A.addr})


@pytest.mark.conformance("5X-05")
def test_the_members_of_an_unknown_group(ns: Scene) -> None:
    ns.f1()
    assert decode_broker_member_group(group(ns, "c1", "no-such-broker").body).broker_addrs == {}


@pytest.mark.parametrize("field", ["clusterName", "brokerName"])
def test_what_a_request_does_not_name_is_not_echoed(ns: Scene, field: str) -> None:
    named = {"clusterName": "c1", "brokerName": "broker-a"}
    del named[field]
    group_info = json.loads(ns.ask(RequestCode.GET_BROKER_MEMBER_GROUP, named).body)["brokerMemberGroup"]
    echoed = {"clusterName": "cluster", "brokerName": "brokerName"}
    assert group_info == {"brokerAddrs": {}} | {echoed[name]: text for name, text in named.items()}


@pytest.fixture
def ports() -> Iterator[list[Listener]]:
    """The own ports of three brokers, by id."""
    with ExitStack() as stack:
        yield [stack.enter_context(Listener(f"127.10.1.{number}")) for number in range(3)]


def members(ports: list[Listener], *, acting: bool) -> list[Broker]:
    """A group of three, master first."""
    return [
        A.but(id=number, addr=port.addr, ha=f"127.10.1.{number}:10912", acting=acting)
        for number, port in enumerate(ports)
    ]


def pushed(port: Listener) -> list[dict[str, str]]:
    """The ext fields of what came, which are oneway 905s."""
    assert {(push.code, push.flag) for push in port.received} <= {(905, 2)}
    return [push.ext or {} for push in port.received]


def newcomer(broker: Broker) -> dict[str, str]:
    return {"minBrokerId": str(broker.id), "minBrokerAddr": broker.addr, "haBrokerAddr": broker.ha}


def successor(broker: Broker, gone: Broker) -> dict[str, str]:
    return {"minBrokerId": str(broker.id), "minBrokerAddr": broker.addr, "offlineBrokerAddr": gone.addr}


def register(ns: Scene, *brokers: Broker) -> None:
    for broker in brokers:
        assert broker.register(ns.connect()).code == 0


PUSHED_S = 5.0


@pytest.mark.conformance("5X-06", "5X-11")
@pytest.mark.server("options")
def test_a_master_joins_its_slaves(ns: Scene, ports: list[Listener]) -> None:
    master, first, second = members(ports, acting=True)
    register(ns, first, second, master)
    for port in ports[1:]:
        eventually(lambda port=port: pushed(port) == [newcomer(master)], PUSHED_S)  # type: ignore[misc]
    assert pushed(ports[0]) == []


@pytest.mark.conformance("5X-07")
@pytest.mark.server("options")
def test_a_master_leaves_its_slaves(ns: Scene, ports: list[Listener]) -> None:
    master, first, second = members(ports, acting=True)
    register(ns, master, first, second)
    assert master.unregister(ns.k1).code == 0
    for port in ports[1:]:
        eventually(lambda port=port: pushed(port) == [successor(first, master)], PUSHED_S)  # type: ignore[misc]
    assert pushed(ports[0]) == []


@pytest.mark.conformance("5X-08")
@pytest.mark.server("options")
def test_a_master_leaves_slaves_that_do_not_act(ns: Scene, ports: list[Listener]) -> None:
    master, first, second = members(ports, acting=False)
    register(ns, master, first, second)
    assert master.unregister(ns.k1).code == 0
    eventually(lambda: ns.brokers() == {"broker-a": {1: first.addr, 2: second.addr}})
    register(ns, master)
    for port in ports[1:]:
        eventually(lambda port=port: pushed(port) == [newcomer(master)], PUSHED_S)  # type: ignore[misc]


@pytest.mark.conformance("5X-09")
@pytest.mark.server("options")
def test_another_than_the_smallest_leaves(ns: Scene, ports: list[Listener]) -> None:
    master, first, second = members(ports, acting=True)
    register(ns, master, first, second)
    assert second.unregister(ns.k1).code == 0
    assert master.unregister(ns.k1).code == 0
    eventually(lambda: pushed(ports[1]) == [successor(first, master)], PUSHED_S)
    assert pushed(ports[0]) == pushed(ports[2]) == []


@pytest.mark.conformance("5X-10")
def test_nothing_is_pushed_by_default(ns: Scene, ports: list[Listener]) -> None:
    master, first, second = members(ports, acting=True)
    register(ns, first, second, master)
    assert master.unregister(ns.k1).code == 0
    stays(lambda: not any(port.received for port in ports), for_s=1.5)


@pytest.fixture
def deaf() -> Iterator[str]:
    """An address where a connect hangs, because no process accepts and the backlog is full."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.10.1.9", 0), backlog=0))
        for _ in range(3):
            client = stack.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(listener.getsockname())
        yield f"127.10.1.9:{listener.getsockname()[1]}"


@pytest.mark.conformance("5X-12")
@pytest.mark.server("options")
@pytest.mark.parametrize("reachable", ["refuses", "hangs"])
def test_a_push_that_cannot_be_delivered(ns: Scene, deaf: str, reachable: str) -> None:
    register(ns, A1.but(addr=deaf if reachable == "hangs" else A1.addr, acting=True))

    def quickest_s(broker: Broker) -> float:
        took_s = []
        for _ in range(5):
            began = time.monotonic()
            assert broker.register(ns.k1).code == 0
            took_s.append(time.monotonic() - began)
            broker.unregister(ns.k1)
        return min(took_s)

    # a push is given 0.3 s, which each of them would wait
    assert quickest_s(A.but(acting=True)) < quickest_s(A.but(name="broker-alone", acting=True)) + 0.25
    assert ns.k1.usable()
