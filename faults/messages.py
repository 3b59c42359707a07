"""A real Java broker with a producer and a consumer, whose messages are counted by number."""

from collections.abc import Sequence

import msgspec

from rocketmq_remoting.codes import ResponseCode
from rocketmq_remoting.command import Command
from testbed.connection import V5_3_3, Connection
from testbed.eventually import eventually
from testbed.rocketmq.brokers import Broker, BrokerConfig
from testbed.rocketmq.clients import Clients, Received, Sent, outcome
from testbed.rocketmq.releases import release
from testbed.rocketmq.servers import NameServer
from testbed.rocketmq.stage import Stage

VERSION = "5.5.0"
TOPIC, NAME = "faults", "java-broker"
PER_SECOND = 50
ROUTE_WITHIN_S = 25.0
"""A broker of 5.x may register new topics only with its next heartbeat but one (docs/agent.md)."""
STARTED_WITHIN_S, ENDED_WITHIN_S = 60.0, 60.0
UPDATE_AND_CREATE_TOPIC = 17
"""A request to brokers (RocketMQ RequestCode)."""


class Counted(msgspec.Struct, frozen=True):
    """Counts of messages: `sent` were acknowledged by the broker, `received` are different ones that came back.
    The producer program repeats a failed send."""

    sent: int
    received: int
    send_errors: int
    last_error: str

    @property
    def lost(self) -> int:
        return self.sent - self.received


class Messages:
    """Broker, consumer and producer, from the first message on until `end`."""

    def __init__(
        self, stage: Stage, servers: Sequence[NameServer], seconds: float, options: Sequence[str] = ()
    ) -> None:
        java = release(VERSION)
        self.broker = Broker(stage, BrokerConfig(java, NAME), servers, options).await_boot()
        self._make_topic()
        eventually(lambda: servers[0].route(TOPIC), ROUTE_WITHIN_S)
        self.count = int(seconds * PER_SECOND)
        clients = Clients(stage, java, servers[0], options)
        self._consumer = clients.start("Consume", TOPIC, self.count, int(seconds + ENDED_WITHIN_S))
        self._consumer.await_printed("started", STARTED_WITHIN_S)
        self._producer = clients.start("Produce", TOPIC, self.count, PER_SECOND)
        self._producer.await_printed("sending", STARTED_WITHIN_S)

    def end(self) -> Counted:
        """Wait for all messages to be sent and received, or for a client to give up."""
        sent = outcome(self._producer, Sent, ENDED_WITHIN_S)
        received = outcome(self._consumer, Received, ENDED_WITHIN_S)
        return Counted(sent.sent, received.distinct, sent.failures, sent.last_failure)

    def _make_topic(self) -> None:
        queues = {"readQueueNums": "4", "writeQueueNums": "4", "defaultTopic": "TBW102"}
        rest = {"topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "perm": "6", "order": "false"}
        over = Connection(self.broker.port)
        ext = {"topic": TOPIC, **queues, **rest}
        over.send_command(Command(UPDATE_AND_CREATE_TOPIC, 1, 0, V5_3_3, ext=ext))
        reply = over.receive(STARTED_WITHIN_S)
        over.close()
        assert reply.code == ResponseCode.SUCCESS, reply
