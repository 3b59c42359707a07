"""Messages that flow beside what a test does, until it ends them."""

import signal
from typing import Final

from testbed.eventually import eventually
from testbed.process import Process
from testbed.rocketmq.admin import Admin
from testbed.rocketmq.clients import Clients, Received, Sent, outcome
from testbed.rocketmq.servers import Addressed

ENDLESS: Final = 1_000_000
PER_SECOND: Final = 50
START_S: Final = 30.0
END_S: Final = 60.0


def start_consumer(clients: Clients, topic: str, group: str) -> Process:
    """One that receives until it is ended."""
    consumer = clients.start("Consume", topic, ENDLESS, ENDLESS, group)
    consumer.await_printed("(?m)^started$", START_S)
    return consumer


def start_producer(clients: Clients, topic: str, *, repetitions: int = 0, first_key: int = 0) -> Process:
    """One that sends until it is ended; the client itself repeats a failed send so often."""
    producer = clients.start("Produce", topic, ENDLESS, PER_SECOND, repetitions, first_key)
    producer.await_printed("(?m)^sending$", START_S)
    return producer


def await_consumed(admin: Admin, server: Addressed, group: str) -> None:
    """Until nothing of what was sent waits for the group, and its offsets say so."""

    def consumed() -> bool:
        said = admin(server, "consumerProgress", "-g", group)
        assert "Diff Total: 0" in said.out, said
        return True

    eventually(consumed, END_S)


def end_producer(producer: Process) -> Sent:
    """-> what it has sent."""
    producer.signal(signal.SIGTERM)
    return outcome(producer, Sent)


def end_consumer(consumer: Process) -> Received:
    """-> what it has received; its offsets are kept."""
    consumer.signal(signal.SIGTERM)
    return outcome(consumer, Received)
