"""From Java's name servers to this one while messages flow: docs/migration.md, step by step."""

import time
from typing import Final, NamedTuple

import pytest

from mqns.cli.exit_codes import ExitCode
from testbed.eventually import eventually, stays
from testbed.haproxy import Balancer
from testbed.rocketmq.admin import Admin
from testbed.rocketmq.brokers import Broker, BrokerConfig, start_brokers
from testbed.rocketmq.clients import Clients
from testbed.rocketmq.releases import Release
from testbed.rocketmq.servers import NameServer, Several, serve, serve_4x, serve_file
from testbed.rocketmq.stage import Stage
from tests.interop.moving import (
    LOOKS_OFTEN,
    ORDER,
    REPETITIONS,
    TAKEN_S,
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

CLUSTER: Final = "moved"
END_S: Final = 40.0
FIRST_LOOK_4X_S, LATEST_4X_S = 20.0, 180.0
"""A 4.9.7 broker looks at its own namesrvAddr 10 s after its start and then each 2 minutes (RocketMQ
BrokerController): when the first look is over, and when the second must be."""


class TwoMinutes(NamedTuple):
    """A 4.9.7 broker, started at `began` (monotonic seconds) with `server` and given `other` later."""

    began: float
    broker: Broker
    server: NameServer
    other: NameServer


@pytest.fixture(scope="module", autouse=True)
def two_minutes(stage: Stage, release_4: Release) -> TwoMinutes:
    """Before all tests, for the last of them."""
    server, other = (serve(stage, "ours", name=name) for name in ("first", "second"))
    began = time.monotonic()
    (broker,) = start_brokers(stage, [server], [BrokerConfig(release_4, "patient", cluster="patient")])
    server.await_brokers(broker.config.name, 0)
    time.sleep(max(0, began + FIRST_LOOK_4X_S - time.monotonic()))
    set_name_servers(Admin(stage, release_4), broker, server, other)
    return TwoMinutes(began, broker, server, other)


def await_dropped(broker: Broker, server: NameServer, *, times: int) -> None:
    """Until a 5.5.0 broker has said so often that it registers with one no more: some seconds after it took others."""
    line = f"remove invalid address {server.address}"
    eventually(lambda: broker.process.printed().count(line) == times, TAKEN_S)


def serves(broker: Broker, topic: str, server: NameServer) -> bool:
    """Whether a name server's route of the topic has the broker."""
    route = server.route(topic)
    return route is not None and broker.config.name in {data.broker_name for data in route.queue_datas}


def copy_kv(namespace: str, old: NameServer, new: NameServer) -> None:
    """With mqns, entry by entry."""
    listed = run("kv", "list", namespace, "-n", old.address, "-o", "json").document["table"]
    for key, value in listed.items():
        assert run("kv", "set", namespace, key, value, "-n", new.address).code == ExitCode.OK


def test_brokers_register_with_both_and_clients_follow(
    stage: Stage, release_5: Release, release_4: Release
) -> None:
    settings = {"orderMessageEnable": "true", "kvConfigPath": str(stage.folder / "old" / "kvConfig.json")}
    old_5 = serve(stage, "java", {"orderMessageEnable": "true"}, name="old-5.5.0")
    old_4 = serve_4x(stage, release_4.version, settings)
    old = Several([old_4, old_5])
    configs = [
        BrokerConfig(release_5, "moved-5", cluster=CLUSTER, settings=LOOKS_OFTEN),
        BrokerConfig(release_4, "moved-4", cluster=CLUSTER),
    ]
    brokers = start_brokers(stage, old.servers, configs)
    live, restarted = brokers
    for config in configs:
        for server in (old_4, old_5):  # mqadmin asks either
            server.await_brokers(config.name, 0)
    admin = Admin(stage, release_4)
    make_topic(admin, old, "Orders", brokers)
    put = admin(old, "updateOrderConf", "-t", "Orders", "-m", "put", "-v", "moved-4:4;moved-5:4")
    assert "update orderConf success" in put.out, put
    consumer_1 = start_consumer(Clients(stage, release_5, old), "Orders", "all")
    producer_1 = start_producer(Clients(stage, release_4, old), "Orders", repetitions=REPETITIONS)

    # 1: the new name server, with the old one's file and KV
    new = serve_file(stage, stage.folder / "java-4.9.7" / "namesrv.conf", {}, name="new")
    assert "KV taken over" in new.process.printed()

    # 2: brokers get its address, too: live, or by a restart
    assert {finding["check"] for finding in differences(old_4, new)} >= {"broker-missing"}
    set_name_servers(admin, live, old_4, old_5, new)
    print(f"5.5.0: taken after {await_taken(live, old_4, old_5, new):.1f} s")
    restarted.restart([old_4, old_5, new])
    for config in configs:
        new.await_brokers(config.name, 0)

    # 3: all servers tell the same
    eventually(lambda: not differences(old_4, old_5, new), TAKEN_S)

    # 4: clients
    consumer_2 = start_consumer(Clients(stage, release_4, new), "Orders", "all")
    producer_2 = start_producer(
        Clients(stage, release_5, new), "Orders", repetitions=REPETITIONS, first_key=ENDLESS
    )
    sent_1 = end_producer(producer_1)
    received_1 = end_consumer(consumer_1)

    # 5: brokers let go of the old ones; back, for once, and again
    set_name_servers(admin, live, new)
    await_dropped(live, old_5, times=1)
    set_name_servers(admin, live, new, old_4, old_5)
    await_taken(live, new, old_4, old_5)
    make_topic(admin, new, "Back", brokers)
    eventually(lambda: serves(live, "Back", old_5), TAKEN_S)
    set_name_servers(admin, live, new)
    await_dropped(live, old_5, times=2)
    make_topic(admin, new, "Again", brokers)
    eventually(lambda: serves(live, "Again", new), TAKEN_S)
    stays(lambda: not serves(live, "Again", old_5), 2)
    restarted.restart([new])
    assert old_4.brokers(restarted.config.name) == {}

    # 6: the old ones end
    for server in (old_4, old_5):
        server.process.ask_to_end(END_S)
    sent_2 = end_producer(producer_2)
    await_consumed(admin, new, "all")
    check([sent_1, sent_2], [received_1, end_consumer(consumer_2)], [0, ENDLESS], restarts=1)
    assert f"namesrvAddr={new.address}\n" in live.settings_file.read_text()


def test_the_old_address_is_taken_over(stage: Stage, release_5: Release, release_4: Release) -> None:
    """Clients are not touched: the balancer before the old name server leads to the new one."""
    old = serve(stage, "java", name="behind-old")
    new = serve(stage, "ours", name="behind-new")
    front = Balancer(stage, [old], name="front", proxy="no-send-proxy")
    config = BrokerConfig(release_5, "stays", cluster="stays", settings=LOOKS_OFTEN)
    (broker,) = brokers = start_brokers(stage, [front], [config])
    front.await_brokers(config.name, 0)
    admin = Admin(stage, release_4)
    make_topic(admin, front, "Stays", brokers)
    put = admin(old, "updateOrderConf", "-t", "Stays", "-m", "put", "-v", "stays:4")
    assert "update orderConf success" in put.out, put
    consumer = start_consumer(Clients(stage, release_4, front), "Stays", "stays")
    producer = start_producer(Clients(stage, release_5, front), "Stays", repetitions=REPETITIONS)

    set_name_servers(admin, broker, front, new)
    await_taken(broker, front, new)
    new.await_brokers(config.name, 0)
    assert [finding["check"] for finding in differences(old, new)] == ["kv-differs"]
    copy_kv(ORDER, old, new)
    assert not differences(old, new)
    front.stop()
    front.start([new])
    assert front.brokers(config.name) == {0: broker.address}
    old.process.ask_to_end(END_S)
    set_name_servers(admin, broker, front)
    await_taken(broker, front)

    sent = end_producer(producer)
    await_consumed(admin, front, "stays")
    check([sent], [end_consumer(consumer)], [0])


def test_a_4x_broker_takes_new_name_servers_while_it_runs(two_minutes: TwoMinutes) -> None:
    """Last, so that the others run meanwhile."""
    began, broker, server, other = two_minutes
    left = LATEST_4X_S - (time.monotonic() - began)
    other.await_brokers(broker.config.name, 0, within_s=max(left, 1))
    print(f"4.9.7: registered with the new one within {time.monotonic() - began:.0f} s of its start")
    assert server.brokers(broker.config.name) == {0: broker.address}
    assert f"namesrvAddr={Several([server, other]).address}\n" in broker.settings_file.read_text()
