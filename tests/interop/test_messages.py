"""Messages through brokers that know only this name server: while workers die, and of each special kind."""

import os
import re
import signal
import time

import pytest
from msgspec import Struct

from testbed.eventually import eventually
from testbed.rocketmq.admin import Admin
from testbed.rocketmq.brokers import Broker, BrokerConfig, start_brokers
from testbed.rocketmq.clients import Clients, Delayed, InOrder, Received, Sent, Transacted, outcome
from testbed.rocketmq.releases import Release, dashed
from testbed.rocketmq.servers import Kind, NameServer, serve
from testbed.rocketmq.stage import Stage
from tests.interop.lookups import Lookups

MESSAGES = 10_000
PER_SECOND = 400
DRAIN_S = 8
"""How long a worker that makes way serves the connections it has."""
CLUSTER = "both-releases"
SETTINGS = {"transactionTimeOut": "1000", "transactionCheckInterval": "1000"}
TIMER_PRECISION_MS = 1000
VERSIONS = ("5.5.0", "4.9.7")
pytestmark = pytest.mark.twice


class Scene(Struct, frozen=True):
    """A master of each release in one cluster, and clients of both."""

    server: NameServer
    masters: dict[str, Broker]
    admin: Admin
    clients: dict[str, Clients]

    def make_topic(self, topic: str, version: str, *more: str) -> None:
        """Four queues on the broker of that release."""
        address = self.masters[version].address
        command = self.admin(
            self.server, "updateTopic", "-b", address, "-t", topic, "-r", "4", "-w", "4", *more
        )
        assert f"create topic to {address} success." in command.out, command


@pytest.fixture(scope="module")
def scene(stage: Stage, kind: Kind, release_5: Release, release_4: Release) -> Scene:
    server = serve(stage, kind, {"orderMessageEnable": "true", "shutdownWaitTimeSeconds": str(DRAIN_S)})
    releases = {release.version: release for release in (release_5, release_4)}
    configs = [
        BrokerConfig(release, f"broker-{dashed(version)}", cluster=CLUSTER, settings=SETTINGS)
        for version, release in releases.items()
    ]
    masters = start_brokers(stage, [server], configs)
    for master in masters:
        server.await_brokers(master.config.name, 0)
    return Scene(
        server,
        dict(zip(releases, masters, strict=True)),
        Admin(stage, release_5),
        {version: Clients(stage, release, server) for version, release in releases.items()},
    )


def test_all_messages_arrive_while_workers_are_reloaded_and_killed(scene: Scene) -> None:
    for version in scene.masters:
        scene.make_topic("Many", version)
    with Lookups(scene.server, "Many", len(VERSIONS)) as lookups:
        consumer = scene.clients["5.5.0"].start("Consume", "Many", MESSAGES, 90)
        consumer.await_printed("started", 20)
        producer = scene.clients["4.9.7"].start("Produce", "Many", MESSAGES, PER_SECOND)
        if scene.server.kind == "ours":
            _disturb(scene.server)
            assert producer.runs
        sent, received = outcome(producer, Sent, 90), outcome(consumer, Received, 90)
    print(sent, received, f"lookups={lookups.count} reconnects={lookups.reconnects}")
    assert sent.sent == received.distinct == MESSAGES
    assert received.received - received.distinct <= sent.failures
    assert not lookups.wrong
    for master in scene.masters.values():
        assert scene.server.brokers(master.config.name) == {0: master.address}


def _disturb(server: NameServer) -> None:
    """First all workers make way for new ones, then one of these is killed."""
    first = server.workers()
    assert len(first) == 2
    time.sleep(0.9)
    server.reload()
    eventually(lambda: len(server.workers() - first) == 2 and not server.workers() & first, 40)
    second = server.workers()
    os.kill(min(second), signal.SIGKILL)
    eventually(lambda: len(server.workers()) == 2 and min(second) not in server.workers())


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    """Of clients and broker."""
    chosen: str = request.param
    return chosen


def test_an_order_topic_has_the_queues_of_its_order_configuration(scene: Scene, version: str) -> None:
    topic = f"Ordered-{dashed(version)}"
    scene.make_topic(topic, version)
    name = scene.masters[version].config.name
    put = scene.admin(scene.server, "updateOrderConf", "-t", topic, "-m", "put", "-v", f"{name}:3")
    assert "update orderConf success" in put.out
    got = outcome(scene.clients[version].start("Ordered", topic, 500, 30), InOrder)
    assert got == InOrder(queues=3, used=3, received=500, out_of_order=0)


def test_a_topic_made_as_order_topic_is_one_in_its_broker(scene: Scene, version: str) -> None:
    """updateTopic -o puts the configuration first; the broker learns of it in its next registration's answer."""
    topic = f"Sorted-{dashed(version)}"
    scene.make_topic(topic, version, "-o", "true")
    route = scene.server.route(topic)
    assert route
    assert route.order_topic_conf == f"{scene.masters[version].config.name}:4"


def test_transactional_messages_are_asked_back(scene: Scene, version: str) -> None:
    topic = f"Transacted-{dashed(version)}"
    scene.make_topic(topic, version)
    got = outcome(scene.clients[version].start("Transact", topic, 5, 40), Transacted)
    assert got == Transacted(asked_back=5, received=10, rolled_back_received=0)


@pytest.mark.parametrize(
    ("version", "when", "delay_ms"),
    [
        pytest.param("5.5.0", "level 1", 1000, id="5.5.0 level 1"),
        pytest.param("5.5.0", "ms 2500", 2500, id="5.5.0 timer"),
        pytest.param("4.9.7", "level 1", 1000, id="4.9.7 level 1"),
    ],
)
def test_delayed_messages_come_late(scene: Scene, version: str, when: str, delay_ms: int) -> None:
    topic = re.sub(r"\W", "-", f"Delayed-{version}-{when}")
    scene.make_topic(topic, version)
    got = outcome(scene.clients[version].start("Delay", topic, 10, 30, when), Delayed)
    assert got.received == 10
    assert got.shortest_ms >= delay_ms - TIMER_PRECISION_MS
    assert got.longest_ms < delay_ms + 10_000
