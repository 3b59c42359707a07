"""Broker, mqadmin, producer and consumer of one release at one name server, whatever their transport options."""

from testbed.eventually import eventually
from testbed.rocketmq.admin import Admin
from testbed.rocketmq.brokers import BrokerConfig, start_brokers
from testbed.rocketmq.clients import Clients
from testbed.rocketmq.releases import dashed, release
from testbed.rocketmq.servers import NameServer
from testbed.rocketmq.stage import Stage

MESSAGES = 20


def work_together(
    stage: Stage, server: NameServer, version: str, options: tuple[str, ...], what: str
) -> None:
    """With these JVM options; `what` sets their names apart from others'."""
    of = release(version)
    name = f"broker-{what}-{dashed(version)}"
    topic = f"Topic-{name}"
    (broker,) = start_brokers(stage, [server], [BrokerConfig(of, name, cluster=name)], options)
    admin = Admin(stage, of, options)
    eventually(lambda: f" {broker.address} " in admin(server, "clusterList").out)
    command = admin(server, "updateTopic", "-c", name, "-t", topic, "-r", "2", "-w", "2")
    assert f"create topic to {broker.address} success." in command.out
    clients = Clients(stage, of, server, options)
    assert clients.produce(topic, MESSAGES).sent == MESSAGES
    assert clients.consume(topic, MESSAGES).distinct == MESSAGES
    broker.shut_down()
    eventually(lambda: broker.address not in admin(server, "clusterList").out)
    admin.close()
