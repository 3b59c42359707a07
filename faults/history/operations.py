"""Requests of clients and their replies, by the clients' clock: the only input of the judge."""

from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from rocketmq_remoting.typed import decoded

Kind: TypeAlias = Literal["register", "unregister", "lookup"]
CLUSTERS = "cluster info"
"""The question of a lookup by 106; else it is a topic."""


class Value(msgspec.Struct, frozen=True):
    """The value of a broker name and id: an address, and the version that its topics carry as number of queues.

    The version is None where it cannot be seen: in cluster info, and in a request to unregister."""

    address: str
    version: int | None = None

    def __str__(self) -> str:
        return self.address if self.version is None else f"version {self.version} at {self.address}"


class Register(msgspec.Struct, frozen=True, order=True):
    """One place that is written and read: a broker name and id. Histories are judged place by place."""

    broker: str
    number: int

    def __str__(self) -> str:
        return f"{self.broker}/{self.number}"


class Operation(msgspec.Struct, frozen=True):
    """One request for one place. Times are seconds of `time.monotonic`, one clock for all processes of a machine.

    `value` is what was registered, whose address was to leave, or what a lookup saw (None: nothing). Without
    `acknowledged` the client never learned what became of it: `ended_s` is when it gave up. `connection` counts the
    recorder's connections; a client that reconnects has another. `lease_s` belongs to a registration."""

    kind: Kind
    place: Register
    value: Value | None
    client: str
    connection: int
    began_s: float
    ended_s: float
    acknowledged: bool = True
    question: str = ""
    lease_s: float = 0.0


class History(msgspec.Struct, frozen=True):
    """Operations in the order of their beginnings, and how many lookups got no answer that says anything."""

    operations: tuple[Operation, ...]
    unanswered_lookups: int = 0

    def by_place(self) -> dict[Register, list[Operation]]:
        """Return the operations of each place, in their order."""
        places: dict[Register, list[Operation]] = {}
        for operation in self.operations:
            places.setdefault(operation.place, []).append(operation)
        return places

    def save(self, path: Path) -> None:
        """Write it as one line of JSON."""
        path.write_bytes(msgspec.json.encode(self))

    @classmethod
    def load(cls, path: Path) -> "History":
        """Read it back."""
        return decoded(path.read_bytes(), cls)
