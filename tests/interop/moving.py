"""Moving brokers from name servers to others while messages flow: what its rehearsals share (docs/migration.md)."""

import time
from collections.abc import Sequence
from typing import Any, Final

from mqns.cli.exit_codes import ExitCode
from testbed.eventually import eventually
from testbed.rocketmq.admin import Admin
from testbed.rocketmq.brokers import Broker
from testbed.rocketmq.clients import Received, Sent
from testbed.rocketmq.servers import Addressed, NameServer, Several
from tests.mqns.cli.conftest import run

REPETITIONS: Final = 2
"""Of a failed send, by the client: its default (RocketMQ retryTimesWhenSendFailed)."""
LOOKS_OFTEN: Final = {"updateNameServerAddrPeriod": "3000"}
"""A 5.5.0 broker looks at its own namesrvAddr so often (ms) here; by default each 2 minutes."""
TAKEN_S: Final = 30.0
ORDER: Final = "ORDER_TOPIC_CONFIG"


def set_name_servers(admin: Admin, broker: Broker, *servers: Addressed) -> None:
    """Tell a running broker its namesrvAddr, as an operator does."""
    words = ("-b", broker.address, "-k", "namesrvAddr", "-v", Several(servers).address)
    said = admin(servers[0], "updateBrokerConfig", *words)
    assert f"update broker config success, {broker.address}" in said.out, said


def await_taken(broker: Broker, *servers: Addressed) -> float:
    """Until it says that it has taken them -> seconds."""
    began = time.monotonic()
    names = {server.address for server in servers}

    def last_taken() -> bool:
        lines = broker.process.printed().split("name server address updated. NEW : [")
        return set(lines[-1].partition("]")[0].split(", ")) == names

    eventually(last_taken, TAKEN_S)
    return time.monotonic() - began


def make_topic(admin: Admin, server: Addressed, topic: str, brokers: Sequence[Broker]) -> None:
    command = admin(server, "updateTopic", "-c", brokers[0].config.cluster, "-t", topic, "-r", "4", "-w", "4")
    for broker in brokers:
        assert f"create topic to {broker.address} success." in command.out, command


def differences(*servers: NameServer) -> list[Any]:
    """What the doctor calls an error."""
    ended = run(
        "doctor", *(server.address for server in servers), "--kv", ORDER, "-o", "json", "--timeout", "30"
    )
    findings = ended.document["findings"]
    errors = [finding for finding in findings if finding["severity"] == "error"]
    assert (ended.code == ExitCode.FINDINGS) is bool(errors)
    return errors


def check(
    sent: Sequence[Sent], received: Sequence[Received], first_keys: Sequence[int], restarts: int = 0
) -> None:
    """Every message has come, and no send failed beyond the client's own repetitions.

    One may at each restart of a broker: a send that is with it as it ends has no answer, and its repetitions share its
    time-out of 3 s (DefaultMQProducerImpl.sendDefaultImpl)."""
    print(*sent, *(f"received={one.received} distinct={one.distinct}" for one in received))
    keys = {first + n for first, one in zip(first_keys, sent, strict=True) for n in range(one.sent)}
    assert all(one.sent for one in sent)
    assert all(one.failures <= restarts for one in sent)
    assert all(one.last_failure.endswith("sendDefaultImpl call timeout") for one in sent if one.failures)
    assert set[int]().union(*(one.all_keys() for one in received)) == keys
