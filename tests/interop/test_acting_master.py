"""A slave of 5.5.0 that stands in for its killed master, and steps back when the master returns.

With compatibleWithOldNameSrv brokers send 322 as heartbeat and ask 105, without it with 904 and 901."""

import re
import signal
import time

import pytest
from msgspec import Struct

from testbed.eventually import eventually
from testbed.rocketmq.admin import Admin
from testbed.rocketmq.brokers import Broker, BrokerConfig, start_brokers
from testbed.rocketmq.clients import Clients
from testbed.rocketmq.releases import Release, dashed
from testbed.rocketmq.servers import Kind, NameServer, serve
from testbed.rocketmq.stage import Stage

MESSAGES = 8
CLOSED_S = 8.0
"""Less than the lease of a broker that sends heartbeats, which is 10 s."""
SYNCHRONISED_S = 90
"""A slave copies topics and offsets for the first time a minute after its start."""
READ, READ_WRITE = 4, 6
pytestmark = pytest.mark.twice
COMPATIBLE = {"compatible": "true", "heartbeats": "false"}
"""Broker name -> compatibleWithOldNameSrv."""


class Pair(Struct, frozen=True):
    """A master and its slave, which may act for it."""

    master: Broker
    slave: Broker

    @property
    def topic(self) -> str:
        return f"Topic-{self.master.config.name}"


@pytest.fixture(scope="module")
def acting(stage: Stage, kind: Kind) -> NameServer:
    """A name server that lets slaves act and pushes 905."""
    return serve(stage, kind, {"supportActingMaster": "true", "notifyMinBrokerIdChanged": "true"})


@pytest.fixture(scope="module")
def admin(stage: Stage, release_5: Release) -> Admin:
    return Admin(stage, release_5)


@pytest.fixture(scope="module")
def pairs(stage: Stage, release_5: Release, acting: NameServer, admin: Admin) -> dict[str, Pair]:
    """Both, up for so long that the slaves know their masters' topics."""
    configs = [
        BrokerConfig(release_5, name, number, cluster=name, settings=_settings(compatible))
        for name, compatible in COMPATIBLE.items()
        for number in (0, 1)
    ]
    started = start_brokers(stage, [acting], configs)
    pairs = {
        broker.config.name: Pair(broker, slave)
        for broker, slave in zip(started[::2], started[1::2], strict=True)
    }
    for name, pair in pairs.items():
        acting.await_brokers(name, 0, 1)
        admin(acting, "updateTopic", "-c", name, "-t", pair.topic, "-r", "4", "-w", "4")
        assert Clients(stage, release_5, acting).produce(pair.topic, MESSAGES).sent == MESSAGES
    for pair in pairs.values():
        pair.slave.process.await_printed("Update slave topic config from master", SYNCHRONISED_S)
    return pairs


def _settings(compatible: str) -> dict[str, str]:
    return {
        "enableSlaveActingMaster": "true",
        "slaveReadEnable": "true",
        "compatibleWithOldNameSrv": compatible,
    }


@pytest.fixture(params=list(COMPATIBLE))
def pair(request: pytest.FixtureRequest, pairs: dict[str, Pair]) -> Pair:
    return pairs[request.param]


def test_a_slave_acts_while_its_master_is_away(
    pair: Pair, acting: NameServer, admin: Admin, stage: Stage, release_5: Release, release_4: Release
) -> None:
    master, slave = pair.master, pair.slave
    assert _route(acting, pair) == ({0: master.address, 1: slave.address}, READ_WRITE)

    master.process.signal(signal.SIGKILL)
    killed = time.monotonic()
    eventually(lambda: _route(acting, pair) == ({0: slave.address}, READ), CLOSED_S)
    print(f"acts {1000 * (time.monotonic() - killed):.0f} ms after kill -9")
    slave.process.await_printed(r"min broker id changed, prev \d+, new 1")
    print(f"notified within {1000 * (time.monotonic() - killed):.0f} ms")
    assert acting.brokers(master.config.name) == {1: slave.address}
    listed = admin(acting, "clusterList", "-c", master.config.cluster).out
    assert re.findall(rf"{master.config.name} +(\d) +(\S+)", listed) == [("1", slave.address)]

    refused = Clients(stage, release_5, acting).produce(pair.topic, 1)
    assert refused.sent == 0
    assert "No route info of this topic" in refused.last_failure
    for release in (release_5, release_4):
        group = f"of-{dashed(release.version)}"
        got = Clients(stage, release, acting).consume(
            pair.topic, MESSAGES, group=f"{pair.master.config.name}-{group}"
        )
        assert got.distinct == MESSAGES

    master.start()
    master.await_boot()
    eventually(lambda: _route(acting, pair) == ({0: master.address, 1: slave.address}, READ_WRITE))
    slave.process.await_printed(r"min broker id changed, prev \d+, new 0")


def _route(server: NameServer, pair: Pair) -> tuple[dict[int, str], int]:
    route = server.route(pair.topic)
    assert route
    (data,) = route.broker_datas
    (queues,) = route.queue_datas
    assert data.enable_acting_master
    return data.broker_addrs, queues.perm
