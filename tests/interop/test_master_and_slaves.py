"""A master and two slaves of one release: how they come, learn of each other, and leave."""

import re
import signal
import time
from collections.abc import Iterator

import pytest
from msgspec import Struct

from testbed.eventually import eventually
from testbed.rocketmq.admin import Admin
from testbed.rocketmq.brokers import Broker, BrokerConfig, start_brokers
from testbed.rocketmq.clients import Clients
from testbed.rocketmq.releases import Release, dashed, release
from testbed.rocketmq.servers import NameServer
from testbed.rocketmq.stage import Stage
from testbed.sockets import peers
from tests.interop.watch import Watch

MESSAGES = 20
GONE_S = 30.0
"""Far less than a lease."""
SLAVE_1, SLAVE_2 = 1, 2


class Group(Struct, frozen=True):
    """The brokers of one name, master first; the cluster is called the same, for its frozen master would
    hold up a command that asks all brokers of a cluster."""

    server: NameServer
    release: Release
    brokers: list[Broker]
    admin: Admin
    clients: Clients

    @property
    def name(self) -> str:
        return self.brokers[0].config.name

    @property
    def topic(self) -> str:
        return f"Topic-{self.name}"


@pytest.fixture(scope="module", params=["4.9.7", "5.5.0", "5.5.0-enforced"])
def group(request: pytest.FixtureRequest) -> Group:
    """On a stage of the session: its master is left behind frozen (test_leases.py)."""
    version, _, enforced = request.param.partition("-")
    stage: Stage = request.getfixturevalue("enforced_stage" if enforced else "session_stage")
    server: NameServer = request.getfixturevalue("enforced_server" if enforced else "server")
    of, name = release(version), f"group-{dashed(request.param)}"
    configs = [BrokerConfig(of, name, number, cluster=name) for number in (0, SLAVE_1, SLAVE_2)]
    brokers = start_brokers(stage, [server], configs)
    return Group(server, of, brokers, Admin(stage, of), Clients(stage, of, server))


def test_all_are_registered(group: Group) -> None:
    server = group.server
    addresses = {broker.config.id: broker.address for broker in group.brokers}
    eventually(lambda: server.brokers(group.name) == addresses)
    version = f"V{group.release.version.replace('.', '_')}"
    lines = [
        rf"{group.name}\s+{group.name}\s+{broker.config.id}\s+{broker.address}\s+{version}"
        for broker in group.brokers
    ]

    def all_listed() -> bool:
        """mqadmin asks each broker for its version, and one that has just registered may not answer yet."""
        listed = group.admin(server, "clusterList").out
        assert all(re.search(line, listed) for line in lines), listed
        return True

    eventually(all_listed)


def test_a_topic_has_the_routes_that_its_broker_gave_it(group: Group) -> None:
    server = group.server
    command = group.admin(server, "updateTopic", "-c", group.name, "-t", group.topic, "-r", "3", "-w", "2")
    assert f"create topic to {group.brokers[0].address} success." in command.out
    route = server.route(group.topic)
    assert route
    (queues,) = [data for data in route.queue_datas if data.broker_name == group.name]
    assert (queues.read_queue_nums, queues.write_queue_nums, queues.perm) == (3, 2, 6)
    (data,) = [data for data in route.broker_datas if data.broker_name == group.name]
    assert data.broker_addrs == {broker.config.id: broker.address for broker in group.brokers}


def test_slaves_learn_the_master_and_its_ha_address(group: Group) -> None:
    master, *slaves = group.brokers
    eventually(lambda: len(peers(master.ha_port)) == len(slaves))
    sent = group.clients.produce(group.topic, MESSAGES)
    assert sent.sent == MESSAGES
    eventually(lambda: len({_commit_log_end(group, broker) for broker in group.brokers}) == 1)
    # 4.9.7 logs only that it has fetched the topics from there; 5.5.0 does so much later
    line = (
        "Update master address from null to"
        if group.release.is_5x
        else "Update slave topic config from master,"
    )
    for slave in slaves:
        slave.process.await_printed(rf"{line} {master.address}", 30)


def test_a_slave_killed_is_gone_at_once(group: Group) -> None:
    slave = group.brokers[SLAVE_1]
    slave.process.signal(signal.SIGKILL)
    killed = time.monotonic()
    eventually(lambda: SLAVE_1 not in group.server.brokers(group.name), GONE_S)
    print(f"{group.name}: gone {1000 * (time.monotonic() - killed):.0f} ms after kill -9")
    assert set(_route_ids(group)) == {0, SLAVE_2}


def test_a_slave_shut_down_unregisters(group: Group) -> None:
    server, slave = group.server, group.brokers[SLAVE_2]
    slave.shut_down()
    assert re.search(rf"[uU]nregisterBroker.*{server.address}", slave.process.printed())
    assert set(server.brokers(group.name)) == {0}
    assert set(_route_ids(group)) == {0}


def test_a_frozen_master_stays_for_now(group: Group, watches: dict[str, Watch]) -> None:
    group.brokers[0].freeze()
    watches[group.name] = Watch(group.server, group.name, 0)
    time.sleep(0.5)
    assert set(_route_ids(group)) == {0}


def _route_ids(group: Group) -> Iterator[int]:
    route = group.server.route(group.topic)
    for data in route.broker_datas if route else ():
        if data.broker_name == group.name:
            yield from data.broker_addrs


def _commit_log_end(group: Group, broker: Broker) -> int:
    status = group.admin(group.server, "brokerStatus", "-b", broker.address)
    offset = re.search(r"commitLogMaxOffset\s*:\s*(\d+)", status.out)
    assert offset, status
    return int(offset[1])
