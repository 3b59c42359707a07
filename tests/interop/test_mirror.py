"""`mqns mirror` against Java's name servers, and a migration with it while messages flow (docs/migration.md)."""

import sys
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from mqns.name_server.calls import BrokerIdentity
from mqns.name_server.client import NameServerClient
from rocketmq_remoting.data_version import DataVersion
from rocketmq_remoting.registration import RegisterBrokerBody, encode_register_broker_body
from rocketmq_remoting.route import TopicRouteData
from rocketmq_remoting.topic_config import TopicConfig
from rocketmq_remoting.version import CURRENT
from testbed.eventually import eventually
from testbed.ports import free_port
from testbed.process import Process
from testbed.rocketmq.admin import Admin
from testbed.rocketmq.brokers import BrokerConfig, start_brokers
from testbed.rocketmq.clients import Clients
from testbed.rocketmq.releases import Release
from testbed.rocketmq.servers import NameServer, Several, serve, serve_4x
from testbed.rocketmq.stage import Stage
from tests.interop.moving import (
    LOOKS_OFTEN,
    ORDER,
    REPETITIONS,
    await_taken,
    check,
    differences,
    make_topic,
    set_name_servers,
)
from tests.interop.traffic import (
    ENDLESS,
    await_consumed,
    end_consumer,
    end_producer,
    start_consumer,
    start_producer,
)
from tests.mqns.cli.conftest import run

CLUSTER: Final = "mirrored"
MQNS: Final = Path(sys.executable).with_name("mqns")
FOLLOWED_S: Final = 60.0
DROPPED_S: Final = 30.0
"""A silent broker of 3 s leaves Java's answers up to 5 s after them."""
READ: Final = 4


def http_of(server: NameServer) -> str:
    return server.process.await_printed(r"ready remoting=\S+ http=(\S+)")[1]


def once(target: NameServer, *sources: NameServer) -> Any:
    """Make one round of a mirror, which must be whole; return what it did."""
    addresses = [source.address for source in sources]
    ended = run("mirror", *addresses, "--http", http_of(target), "--once", "--rate", "2000", "-o", "json")
    assert ended.code == 0, ended
    return ended.document


def follow(stage: Stage, target: NameServer, *sources: NameServer, name: str = "mirror") -> Process:
    """Start a mirror that looks every second."""
    words = ["mirror", *(source.address for source in sources), "--http", http_of(target)]
    more = ["--every", "1", "--rate", "500", "-o", "json"]
    return stage.start(f"{name}-{target.port}", [str(MQNS), *words, *more])


def marks(target: NameServer) -> dict[tuple[str, int], str | None]:
    """Return from where each member is mirrored, by broker name and id."""
    shown = run("brokers", "-n", target.address, "--http", http_of(target), "-o", "json").document
    return {(row["brokerName"], row["brokerId"]): row["mirroredFrom"] for row in shown}


def lease_end(target: NameServer, name: str) -> int:
    """Return when the lease of a broker's only member ends (ms)."""
    (member,) = httpx.get(f"http://{http_of(target)}/v1/brokers/{name}").json()["members"]
    end: int = member["lease"]["endMillis"]
    return end


def in_order(route: TopicRouteData | None) -> Any:
    """Return a route without the order of its lists, which is by chance."""
    if route is None:
        return None
    brokers = sorted(route.broker_datas, key=lambda data: data.broker_name)
    queues = sorted(route.queue_datas, key=lambda data: data.broker_name)
    return brokers, queues


def assert_same(target: NameServer, source: NameServer) -> list[str]:
    """Compare all answers about brokers and topics; return the topics."""
    with NameServerClient(source.address) as java, NameServerClient(target.address) as ours:
        topics = sorted(java.get_topics().topic_list)
        assert sorted(ours.get_topics().topic_list) == topics
        assert ours.get_cluster_info().broker_addr_table == java.get_cluster_info().broker_addr_table
        for topic in topics:
            assert in_order(ours.get_route(topic)) == in_order(java.get_route(topic)), topic
    return topics


@pytest.mark.parametrize("release_of_server", ["4.9.7", "5.5.0"])
def test_what_java_answers_is_answered_here(
    stage: Stage, release_4: Release, release_5: Release, release_of_server: str
) -> None:
    five = release_of_server == "5.5.0"
    old = serve(stage, "java", name="read-5.5.0") if five else serve_4x(stage, release_of_server)
    new = serve(stage, "ours", name=f"read-into-{release_of_server}")
    release = release_5 if five else release_4
    names = [f"read-{release_of_server}-{letter}" for letter in "ab"]
    configs = [
        BrokerConfig(release, names[0], cluster=names[0]),
        BrokerConfig(release, names[1], cluster=names[0]),
    ]
    brokers = start_brokers(stage, [old], configs)
    for name in names:
        old.await_brokers(name, 0)
    admin = Admin(stage, release_4)
    make_topic(admin, old, "Read", brokers)
    make_topic(admin, old, "Gone", brokers)
    eventually(lambda: len(old.route("Gone").queue_datas) == len(brokers), FOLLOWED_S)  # type: ignore[union-attr]
    assert len(once(new, old)["registered"]) == len(brokers)
    assert {"Read", "Gone", *names} <= {*assert_same(new, old)}
    assert not once(new, old)["changed"]

    # what changes at the name server alone moves no data version of a broker
    with NameServerClient(old.address) as java:
        java.wipe_write_perm(names[0])
        java.delete_topic("Gone")
    assert {member["brokerName"] for member in once(new, old)["changed"]} == {*names}
    assert_same(new, old)
    assert {data.perm for data in new.route("Read").queue_datas} == {READ, 6}  # type: ignore[union-attr]

    brokers[1].process.kill()
    eventually(lambda: old.brokers(names[1]) == {}, FOLLOWED_S)
    assert [member["brokerName"] for member in once(new, old)["removed"]] == [names[1]]
    assert_same(new, old)


def test_a_mirror_keeps_no_broker_alive_at_java(stage: Stage) -> None:
    """As request 322 would, by which it could learn data versions."""
    old = serve(stage, "java", name="silent-5.5.0")
    new = serve(stage, "ours", name="silent-new")
    topics = {name: TopicConfig(name, 4, 4, 6, 0) for name in ("Silent", "Other")}
    body = RegisterBrokerBody(DataVersion(0, 1, 1), topics, frozenset(topics), ())
    encoded = encode_register_broker_body(body, version=CURRENT, compressed=False)
    identity = BrokerIdentity("silent", "silent", "127.0.0.1:10999", 0)
    with NameServerClient(old.address) as java:
        java.register_broker(identity, encoded, ha_server_addr="127.0.0.1:11000", heartbeat_timeout_ms=3000)
        mirror = follow(stage, new, old)
        new.await_brokers("silent", 0, within_s=FOLLOWED_S)
        assert in_order(new.route("Silent")) == in_order(old.route("Silent"))
        eventually(lambda: old.brokers("silent") == {}, DROPPED_S)
    mirror.ask_to_end(FOLLOWED_S)
    assert run("mirror", old.address, "--http", http_of(new), "--once").code == 0
    assert new.brokers("silent") == {}


def test_restarts_of_java_and_of_the_mirror_take_no_route(stage: Stage, release_5: Release) -> None:
    place = {"listenPort": str(free_port())}
    old = serve(stage, "java", place, name="restarted-old")
    new = serve(stage, "ours", name="restarted-new")
    (broker,) = start_brokers(stage, [old], [BrokerConfig(release_5, "stays", cluster="stays")])
    broker.create_topic("Stays")
    mirror = follow(stage, new, old)
    eventually(lambda: in_order(new.route("Stays")) == in_order(old.route("Stays")) is not None, FOLLOWED_S)
    route = in_order(new.route("Stays"))
    seen = []

    def is_back() -> bool:
        seen.append(in_order(new.route("Stays")))
        return old.brokers("stays") == {0: broker.address}

    old.process.kill()
    mirror.kill()
    mirror = follow(stage, new, old, name="again")
    old = serve(stage, "java", place, name="restarted-old-again")
    assert old.brokers("stays") == {}  # it knows nothing until the broker registers
    eventually(is_back, FOLLOWED_S)
    end = lease_end(new, "stays")
    eventually(lambda: lease_end(new, "stays") > end, FOLLOWED_S)
    mirror.ask_to_end(FOLLOWED_S)
    assert seen == [route] * len(seen)
    assert in_order(new.route("Stays")) == route


def test_brokers_are_untouched_until_clients_are_moved(
    stage: Stage, release_5: Release, release_4: Release
) -> None:
    order = {"orderMessageEnable": "true"}
    old_5 = serve(stage, "java", order, name="old-5.5.0")
    old_4 = serve_4x(
        stage, release_4.version, order | {"kvConfigPath": str(stage.folder / "old" / "kv.json")}
    )
    old = Several([old_4, old_5])
    configs = [
        BrokerConfig(release_5, "moved-5", cluster=CLUSTER, settings=LOOKS_OFTEN),
        BrokerConfig(release_4, "moved-4", cluster=CLUSTER),
    ]
    live, restarted = brokers = start_brokers(stage, old.servers, configs)
    for config in configs:
        for server in (old_4, old_5):
            server.await_brokers(config.name, 0)
    admin = Admin(stage, release_4)
    make_topic(admin, old, "Moved", brokers)
    put = admin(old, "updateOrderConf", "-t", "Moved", "-m", "put", "-v", "moved-4:4;moved-5:4")
    assert "update orderConf success" in put.out, put
    consumer_1 = start_consumer(Clients(stage, release_5, old), "Moved", "all")
    producer_1 = start_producer(Clients(stage, release_4, old), "Moved", repetitions=REPETITIONS)
    began = [broker.process.pid for broker in brokers]

    # 1: the new name server, and the mirror
    new = serve(stage, "ours", order, name="new")
    mirror = follow(stage, new, old_4, old_5)
    for config in configs:
        new.await_brokers(config.name, 0, within_s=FOLLOWED_S)
    eventually(lambda: not differences(old_4, old_5, new), FOLLOWED_S)
    mark = ";".join(sorted([old_4.address, old_5.address]))
    assert marks(new) == {("moved-4", 0): mark, ("moved-5", 0): mark}

    # 2: clients; brokers know nothing of it
    consumer_2 = start_consumer(Clients(stage, release_4, new), "Moved", "all")
    producer_2 = start_producer(
        Clients(stage, release_5, new), "Moved", repetitions=REPETITIONS, first_key=ENDLESS
    )
    sent_1, received_1 = end_producer(producer_1), end_consumer(consumer_1)
    make_topic(admin, old, "Later", brokers)  # mqadmin at the old ones, as before
    eventually(lambda: in_order(new.route("Later")) == in_order(old_5.route("Later")), FOLLOWED_S)
    assert [broker.process.pid for broker in brokers] == began
    assert not any(new.address in broker.settings_file.read_text() for broker in brokers)

    # 3: brokers, whose own registrations win. A running one keeps the old ones until it has registered with the new
    # one: Java's server drops it with its connection, and the mirror then, maybe before its next registration
    set_name_servers(admin, live, old_4, old_5, new)
    print(f"5.5.0: taken after {await_taken(live, old_4, old_5, new):.1f} s")
    eventually(lambda: marks(new)["moved-5", 0] is None, FOLLOWED_S)
    assert old_5.brokers("moved-5") == {0: live.address}  # still there, and mirrored no more
    set_name_servers(admin, live, new)
    await_taken(live, new)
    restarted.restart([new])
    eventually(lambda: marks(new) == {("moved-4", 0): None, ("moved-5", 0): None}, FOLLOWED_S)

    # 4: the old ones and the mirror end
    for server in (old_4, old_5):
        server.process.ask_to_end(FOLLOWED_S)
    mirror.ask_to_end(FOLLOWED_S)
    assert new.brokers("moved-5") == {0: live.address}
    sent_2 = end_producer(producer_2)
    await_consumed(admin, new, "all")
    check([sent_1, sent_2], [received_1, end_consumer(consumer_2)], [0, ENDLESS], restarts=1)
    order_of = run("kv", "get", ORDER, "Moved", "-n", new.address, "-o", "json")
    assert "moved-4:4;moved-5:4" in order_of.out
