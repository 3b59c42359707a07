"""Agents announced to Java's name servers and ours, and what Java clients see of them."""

from collections.abc import Mapping
from typing import Any

import pytest

from mqns.broker import (
    BrokerAgent,
    BrokerConfig,
    BrokerEvent,
    Failed,
    MasterChanged,
    MinBrokerIdChanged,
    OrderTopicsChanged,
    Registered,
    TopicSettings,
)
from mqns.errors import ResponseError
from mqns.name_server.client import NameServerClient
from rocketmq_remoting.topic_config import TopicConfig
from testbed.eventually import eventually
from testbed.ports import broker_port
from testbed.rocketmq.admin import Admin
from testbed.rocketmq.clients import Clients
from testbed.rocketmq.releases import dashed, release
from testbed.rocketmq.servers import NameServer, serve, serve_4x
from testbed.rocketmq.stage import Stage

SERVERS = ("ours", "java 5.5.0", "java 4.9.7")
VERSIONS = ("5.5.0", "4.9.7")
LETS_SLAVES_ACT = {"supportActingMaster": "true", "notifyMinBrokerIdChanged": "true"}


@pytest.fixture(scope="module")
def servers(stage: Stage) -> Mapping[str, NameServer]:
    return {
        "ours": serve(stage, "ours", LETS_SLAVES_ACT),
        "java 5.5.0": serve(stage, "java", LETS_SLAVES_ACT),
        "java 4.9.7": serve_4x(stage, "4.9.7"),
    }


@pytest.fixture(params=SERVERS)
def announced_to(request: pytest.FixtureRequest, servers: Mapping[str, NameServer]) -> NameServer:
    return servers[request.param]


@pytest.fixture(params=["ours", "java 5.5.0"])
def of_5x(request: pytest.FixtureRequest, servers: Mapping[str, NameServer]) -> NameServer:
    return servers[request.param]


def broker(name: str, *name_servers: NameServer, **more: Any) -> BrokerConfig:
    return BrokerConfig(
        broker_name=name,
        broker_cluster_name="agents",
        broker_ip1="127.0.0.1",
        listen_port=broker_port(),
        namesrv_addr=";".join(server.address for server in name_servers),
        **more,
    )


def topics(of: str) -> tuple[TopicSettings, ...]:
    return (
        TopicSettings(topic_name=f"Both-{of}", read_queue_nums=4, write_queue_nums=2),
        TopicSettings(topic_name=f"ReadOnly-{of}", perm=4),
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_java_clients_see_what_an_agent_announces(
    announced_to: NameServer, version: str, stage: Stage
) -> None:
    name = f"plays-{dashed(version)}"
    clients = [Clients(stage, release(each), announced_to) for each in VERSIONS]
    config = broker(name, announced_to, version=version, topics=topics(name))
    events: list[BrokerEvent] = []
    with BrokerAgent(config, listener=events.append) as agent:
        assert events == [Registered(announced_to.address)]
        agent.put_topics(TopicConfig(f"Later-{name}", 1, 1))
        for client in clients:
            assert client.queues(f"Both-{name}", f"ReadOnly-{name}", f"Later-{name}") == {
                f"Both-{name}": [f"{name}:0", f"{name}:1"],
                f"ReadOnly-{name}": [],
                f"Later-{name}": [f"{name}:0"],
            }
        assert announced_to.brokers(name) == {0: config.broker_addr}
    eventually(lambda: announced_to.brokers(name) == {})
    assert clients[0].queues(f"Both-{name}") == {f"Both-{name}": []}


def test_one_agent_is_announced_to_all(servers: Mapping[str, NameServer], stage: Stage) -> None:
    config = broker("everywhere", *servers.values(), version="4.9.7", topics=topics("everywhere"))
    with BrokerAgent(config, listener=lambda event: None) as agent:
        outcomes = agent.register(forced=False)
        assert outcomes == [], "all know this version"
        admin = Admin(stage, release("5.5.0"))
        routes = [admin(server, "topicRoute", "-t", "Both-everywhere").out for server in servers.values()]
        assert all(f"0:'{config.broker_addr}'" in route.replace('"', "'") for route in routes), routes
        agent.delete_topic("ReadOnly-everywhere")
        assert len(agent.register(forced=False)) == len(servers)
        admin.close()
    eventually(lambda: all(server.brokers("everywhere") == {} for server in servers.values()))


def test_order_topics_reach_an_agent(announced_to: NameServer) -> None:
    name = "ordered"
    events: list[BrokerEvent] = []
    with NameServerClient(announced_to.address) as ns:
        ns.put_kv_config("ORDER_TOPIC_CONFIG", f"Both-{name}", f"{name}:2")
        with BrokerAgent(broker(name, announced_to, topics=topics(name)), listener=events.append) as agent:
            assert OrderTopicsChanged(frozenset({f"Both-{name}"})) in events
            assert agent.topics[f"Both-{name}"].order
        ns.delete_kv_config("ORDER_TOPIC_CONFIG", f"Both-{name}")


def test_a_slave_agent_learns_of_its_master_and_the_acting_one(of_5x: NameServer) -> None:
    acting = {"enable_slave_acting_master": True, "listen": True, "bind_address": "127.0.0.1"}
    master = broker("acting", of_5x, topics=topics("acting"), **acting)
    slave = broker("acting", of_5x, topics=topics("acting"), broker_id=1, **acting)
    events: list[BrokerEvent] = []
    with BrokerAgent(slave, listener=events.append) as second:
        with BrokerAgent(master, listener=lambda event: None):
            second.register()
            assert second.master == MasterChanged(master.broker_addr, master.ha_server_addr)
            eventually(lambda: second.min_broker_id == 0)
        pushed = MinBrokerIdChanged(1, slave.broker_addr, master.broker_addr)
        polled = MinBrokerIdChanged(1, slave.broker_addr)
        eventually(lambda: pushed in events or polled in events)
        route = of_5x.route("Both-acting")
        assert route
        assert route.broker_datas[0].broker_addrs == {0: slave.broker_addr}


@pytest.mark.parametrize(("server", "taken"), [("ours", True), ("java 5.5.0", False)])
def test_what_5_5_0_says_of_a_compressed_body(
    servers: Mapping[str, NameServer], server: str, taken: bool
) -> None:
    """Its brokers call it uncompressed; Java's name server does not look, and refuses it."""
    name, events = "compressed", list[BrokerEvent]()
    faithful = broker(name, servers[server], compressed_register=True)
    with BrokerAgent(faithful, listener=events.append):
        (outcome,) = events
        assert isinstance(outcome, Registered) is taken
        if not taken:
            assert isinstance(outcome, Failed)
            assert isinstance(outcome.error, ResponseError)
            assert (outcome.error.code, servers[server].brokers(name)) == (1, {})
    honest = broker(name, servers[server], compressed_register=True, keep_compressed_bug=False)
    with BrokerAgent(honest, listener=lambda event: None):
        assert servers[server].brokers(name) == {0: honest.broker_addr}
