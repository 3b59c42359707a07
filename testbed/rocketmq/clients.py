"""Java producers and consumers (java/*.java), and their reports, the last line that they print."""

from collections.abc import Sequence
from typing import TypeVar

from msgspec import Struct

from mqns.remoting.acl import AclCredentials
from rocketmq_remoting.typed import decoded
from testbed.process import Process
from testbed.rocketmq.releases import Release
from testbed.rocketmq.servers import Addressed
from testbed.rocketmq.stage import Stage

T = TypeVar("T")
START_S = 60.0


class Sent(Struct, frozen=True):
    """The report of Produce. Each failed send was repeated; its message may have been stored all the same."""

    sent: int
    failures: int
    ms: int
    last_failure: str


class Received(Struct, frozen=True):
    """The report of Consume: all deliveries, and the number of different messages.

    `keys` are theirs, in pairs of the first and the last of each row without a gap."""

    received: int
    distinct: int
    ms: int
    keys: list[tuple[int, int]]

    def all_keys(self) -> set[int]:
        """Return the keys of messages with at least one delivery."""
        return {key for first, last in self.keys for key in range(first, last + 1)}


class InOrder(Struct, frozen=True):
    """The report of Ordered: the queues of its route, those it used, and the received messages."""

    queues: int
    used: int
    received: int
    out_of_order: int


class Transacted(Struct, frozen=True):
    """The report of Transact: the messages that the broker checked, and those delivered."""

    asked_back: int
    received: int
    rolled_back_received: int


class Delayed(Struct, frozen=True):
    """The report of Delay: milliseconds from a message's birth to its delivery."""

    received: int
    shortest_ms: int
    longest_ms: int


class Published(Struct, frozen=True):
    """The report of Queues: topic -> `broker:queue` of each queue that messages may be sent to."""

    queues: dict[str, list[str]]


class Clients:
    """Clients of one release, with the same name servers."""

    def __init__(
        self,
        stage: Stage,
        release: Release,
        server: Addressed,
        options: Sequence[str] = (),
        credentials: AclCredentials | None = None,
    ) -> None:
        self._stage = stage
        self._release = release
        self._server = server
        self._options = options
        self._signing = signing(credentials)
        self._started = 0

    def start(self, main: str, topic: str, *arguments: object) -> Process:
        """Start one of the Java sources."""
        self._started += 1
        name = f"{main}-{topic}-{self._release.version}-{self._started}"
        words = [self._server.address, topic, *map(str, arguments)]
        return self._stage.java(name, self._release, main, *words, options=self._options, env=self._signing)

    def queues(self, *topics: str) -> dict[str, list[str]]:
        """Return the queues of each topic that a producer may send to; none of a topic without a route."""
        return outcome(self.start("Queues", topics[0], *topics[1:]), Published).queues

    def produce(self, topic: str, count: int, *, per_second: int = 0) -> Sent:
        """Send messages with the keys 0 to count - 1."""
        return outcome(self.start("Produce", topic, count, per_second), Sent)

    def consume(self, topic: str, count: int, *, within_s: int = 40, group: str = "") -> Received:
        """Receive a topic from its beginning until `count` different messages are there."""
        group_given = (group,) if group else ()
        return outcome(
            self.start("Consume", topic, count, within_s, *group_given), Received, within_s + START_S
        )


def signing(credentials: AclCredentials | None) -> dict[str, str]:
    """Return the environment of a client that signs with these."""
    if credentials is None:
        return {}
    token = {"SECURITY_TOKEN": credentials.security_token} if credentials.security_token else {}
    return {"ACCESS_KEY": credentials.access_key, "SECRET_KEY": credentials.secret_key} | token


def outcome(process: Process, kind: type[T], within_s: float = 60.0) -> T:
    """Wait for a client to end and return its report."""
    process.await_end(within_s)
    lines = [line for line in process.printed().splitlines() if line.startswith("{")]
    assert lines, process.printed()
    return decoded(lines[-1], kind)
