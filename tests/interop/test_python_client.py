"""Our own client library with real brokers: its groups as `mqadmin` sees them."""

import re
from collections.abc import Iterator

import pytest
from msgspec import Struct

from mqns import ConsumerGroup, MqClient, MqClientOptions, sql92
from mqns.remoting.acl import AclCredentials
from mqns.remoting.options import RemotingOptions
from mqns.routes.queues import MessageQueue
from rocketmq_remoting.heartbeat import ConsumeFromWhere, MessageModel
from rocketmq_remoting.version import CURRENT, version_name
from testbed.eventually import eventually
from testbed.rocketmq.admin import Admin
from testbed.rocketmq.brokers import Broker, BrokerConfig, start_brokers
from testbed.rocketmq.enforced import Access
from testbed.rocketmq.releases import dashed, release
from testbed.rocketmq.servers import NameServer
from testbed.rocketmq.stage import Stage

PYTHON = rf"PYTHON\s+{version_name(CURRENT)}"
OF_ADMIN = {"5.5.0": "5.5.0", "4.9.7": "4.9.8"}
SEEN_S = 20
"""A broker's new retry topic takes some seconds to the name server, where mqadmin looks for it first."""


class Scene(Struct, frozen=True):
    """A broker of one release, an mqadmin of the same line, and a topic; `remoting` is how a client gets at them."""

    broker: Broker
    admin: Admin
    server: NameServer
    topic: str
    remoting: RemotingOptions

    def say(self, command: str, *arguments: str) -> str:
        """All that an mqadmin command prints."""
        output = self.admin(self.server, command, *arguments)
        return output.out + output.err

    def says(self, pattern: str, command: str, *arguments: str) -> bool:
        """Whether that comes in what an mqadmin command prints."""
        said = self.say(command, *arguments)
        assert re.search(pattern, said), said
        return True


def remoting_of(access: Access) -> RemotingOptions:
    """How a client signs where that is asked for, and whose certificates it trusts there."""
    if not access.environment:
        return RemotingOptions()
    hook = AclCredentials(access.environment["ACCESS_KEY"], access.environment["SECRET_KEY"])
    return RemotingOptions(tls=access.stranger, hooks=(hook,))


@pytest.fixture(scope="module", params=["5.5.0", "5.5.0-enforced", "4.9.7"])
def scene(request: pytest.FixtureRequest) -> Scene:
    version, _, enforced = request.param.partition("-")
    stage: Stage = request.getfixturevalue("enforced_stage" if enforced else "session_stage")
    server: NameServer = request.getfixturevalue("enforced_server" if enforced else "server")
    name = f"python-{dashed(request.param)}"
    config = BrokerConfig(release(version), name, cluster=name, settings={"enablePropertyFilter": "true"})
    (broker,) = start_brokers(stage, [server], [config])
    server.await_brokers(name, 0)
    admin = Admin(stage, release(OF_ADMIN[version]))
    scene = Scene(broker, admin, server, f"Topic-{name}", remoting_of(stage.access))
    output = scene.say("updateTopic", "-b", broker.address, "-t", scene.topic, "-r", "3", "-w", "2")
    assert f"create topic to {broker.address} success." in output
    return scene


@pytest.fixture(params=["full", "short"])
def client(request: pytest.FixtureRequest, scene: Scene) -> Iterator[MqClient]:
    with client_of(scene, request.param) as client:
        yield client


def client_of(scene: Scene, form: str) -> MqClient:
    """One that sends heartbeats of this form, five a second."""
    options = MqClientOptions(
        client_ip="127.0.0.1",
        instance_name=form,
        poll_name_server_s=0.5,
        heartbeat_broker_s=0.2,
        heartbeat_v2=form == "short",
        remoting=scene.remoting,
    )
    return MqClient(scene.server.address, options)


def group_name(kind: str, scene: Scene, client: MqClient) -> str:
    """One for this client and broker alone: where a group has been, its retry topic stays."""
    return f"{kind}-{scene.topic}-{client.client_id.rpartition('@')[2]}"


def subscribed(topic: str, expression: str) -> str:
    """How mqadmin says so: 5.5.0 in a table, 4.9 in words."""
    return rf"{re.escape(topic)}\s+(SubExpression: )?{re.escape(expression)}\s"


def test_groups_are_what_a_broker_knows_of_us(scene: Scene, client: MqClient) -> None:
    changed: list[str] = []
    client.on_consumers_changed(changed.append)
    consumers, producers = group_name("readers", scene, client), group_name("writers", scene, client)
    client.add_consumer(ConsumerGroup(group=consumers, subscriptions={scene.topic: "TagA || TagB"}))
    client.add_producer(producers, [scene.topic])

    def connections() -> str:
        said = scene.say("consumerConnection", "-g", consumers)
        assert re.search(rf"{re.escape(client.client_id)}\s+127\.0\.0\.1:\d+\s+{PYTHON}", said), said
        return said

    said = eventually(connections, SEEN_S)
    print(said)
    assert re.search(subscribed(scene.topic, "TagA || TagB"), said), said
    assert re.search(subscribed(f"%RETRY%{consumers}", "*"), said), said
    assert re.search(r"ConsumeType: CONSUME_PASSIVELY\s+MessageModel: CLUSTERING", said)
    assert "ConsumeFromWhere: CONSUME_FROM_LAST_OFFSET" in said
    said = scene.say("producerConnection", "-g", producers, "-t", scene.topic)
    print(said)
    assert re.search(rf"{re.escape(client.client_id)}\s+,?\s*127\.0\.0\.1:\d+.*{PYTHON}", said), said
    eventually(lambda: consumers in changed, SEEN_S)

    client.subscribe(consumers, scene.topic, sql92("a > 1"))
    eventually(
        lambda: scene.says(subscribed(scene.topic, "a > 1"), "consumerConnection", "-g", consumers),
        SEEN_S,
    )
    client.remove_consumer(consumers)
    client.remove_producer(producers)
    eventually(lambda: scene.says("not online", "consumerConnection", "-g", consumers), SEEN_S)
    eventually(
        lambda: scene.says("not exist|not online", "producerConnection", "-g", producers, "-t", scene.topic),
        SEEN_S,
    )


def test_a_broadcast_group_is_one(scene: Scene, client: MqClient) -> None:
    group = group_name("all", scene, client)
    client.add_consumer(
        ConsumerGroup(
            group=group,
            subscriptions={scene.topic: "*"},
            message_model=MessageModel.BROADCASTING,
            consume_from_where=ConsumeFromWhere.FIRST_OFFSET,
        )
    )
    pattern = r"ConsumeType: CONSUME_PASSIVELY\s+MessageModel: BROADCASTING\s+.*CONSUME_FROM_FIRST_OFFSET"
    eventually(lambda: scene.says(pattern, "consumerConnection", "-g", group), SEEN_S)


def test_routes_say_where_messages_go(scene: Scene, client: MqClient) -> None:
    name = scene.broker.config.name
    assert list(client.publish_info(scene.topic).queues) == [
        MessageQueue(scene.topic, name, n) for n in range(2)
    ]
    assert len(client.subscribe_queues(scene.topic)) == 3
    assert client.master_address(name) == scene.broker.address
    client.add_producer("versions", [scene.topic])
    version = client.broker_version(scene.broker.address)
    assert version is not None
    assert version_name(version) == f"V{scene.broker.config.release.version.replace('.', '_')}"


def test_a_restarted_broker_learns_the_subscriptions_of_a_client_that_sends_short_heartbeats(
    scene: Scene,
) -> None:
    """Of a short heartbeat it would make a group without subscriptions."""
    with client_of(scene, "short") as client:
        group = group_name("restarted", scene, client)
        client.add_consumer(ConsumerGroup(group=group, subscriptions={scene.topic: "TagA"}))
        subscription = subscribed(scene.topic, "TagA")
        eventually(lambda: scene.says(subscription, "consumerConnection", "-g", group), SEEN_S)
        scene.broker.shut_down()
        scene.broker.start()
        scene.broker.await_boot()
        scene.server.await_brokers(scene.broker.config.name, 0)
        eventually(lambda: scene.says(subscription, "consumerConnection", "-g", group), SEEN_S)
