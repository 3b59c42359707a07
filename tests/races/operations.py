"""The operations of a race, each with the state that must hold once it is done; and the clients' notes.

`slices` is whether an operation may take several scripts, `later` whether its state may hold only after its own last
entry: others may have done the rest."""

from typing import Literal, TypeAlias

import msgspec

from registry.events.replay import BrokerState
from rocketmq_remoting.permission import PERM_READ, PERM_WRITE
from tests.races.history import Position, Route, State

SMALL = tuple(f"T{number}" for number in range(6))
LARGE = tuple(f"T{number}" for number in range(1300))  # three slices
HUGE = tuple(
    f"T{number}-{'x' * 230}" for number in range(3000)
)  # more than the commit of a first registration may list
TABLES = {"small": SMALL, "large": LARGE, "huge": HUGE}
Table: TypeAlias = Literal["small", "large", "huge"]
Outcome: TypeAlias = Literal["done", "given up", "killed"]


class Registering(msgspec.Struct, frozen=True):
    """103 of a table whose every topic has queue data `text`."""

    name: str
    number: int
    address: str
    table: Table
    text: str
    acting: bool | None
    later: bool = False

    @property
    def slices(self) -> bool:
        """Return whether it may take several scripts."""
        return self.table != "small"

    def so(self, state: State) -> bool:
        broker = state.living().get(self.name)
        if broker is None or _address(broker, self.number) != self.address:
            return False
        prime = self.acting is not None and self.number == min(broker.addrs)
        if self.number and not prime:
            return True  # a member that writes no topics is only added
        return self.whole(broker)

    def whole(self, broker: BrokerState) -> bool:
        """Return whether every topic is as it was registered."""
        text = without_write(self.text) if self.number and self.acting else self.text
        return all(broker.topics.get(topic) == text for topic in TABLES[self.table])


class Leaving(msgspec.Struct, frozen=True):
    """104, or the end of a connection."""

    name: str
    address: str
    slices: bool = False
    later: bool = False

    def so(self, state: State) -> bool:
        broker = state.living().get(self.name)
        return broker is None or all(_address(broker, number) != self.address for number in broker.addrs)


class Deleting(msgspec.Struct, frozen=True):
    """216 in all clusters."""

    topic: str
    slices: bool = False
    later: bool = False

    def so(self, state: State) -> bool:
        return not state.route(self.topic)


class Setting(msgspec.Struct, frozen=True):
    """217 of one broker; without effect if the broker is not registered."""

    topic: str
    name: str
    text: str
    slices: bool = False
    later: bool = False

    def so(self, state: State) -> bool:
        broker = state.living().get(self.name)
        return broker is None or broker.topics.get(self.topic) == self.text


class Rewriting(msgspec.Struct, frozen=True):
    """205 (`wipe`) or 327."""

    name: str
    wipe: bool
    slices: bool = True
    later: bool = True

    def so(self, state: State) -> bool:
        broker = state.living().get(self.name)
        perms = {int(text.split(",")[2]) for text in broker.topics.values()} if broker else set()
        return all(not perm & PERM_WRITE if self.wipe else perm == PERM_READ | PERM_WRITE for perm in perms)


class Upkeep(msgspec.Struct, frozen=True):
    """Heartbeats and the expiry, which are judged by their entries and the reads."""

    slices: bool = True
    later: bool = True

    def so(self, state: State) -> bool:
        return True


Operation: TypeAlias = Registering | Leaving | Deleting | Setting | Rewriting | Upkeep


class Note(msgspec.Struct, frozen=True):
    """One operation: the stream's end before its request and after its reply, and the acknowledged entry."""

    op: str
    operation: Operation
    lo: Position
    hi: Position
    outcome: Outcome
    event_id: str = ""


class Seen(msgspec.Struct, frozen=True):
    """A read in one transaction: the stream's end, the Redis clock before and after, and routes by topic.

    `members` are the addresses by broker name, in the cluster info."""

    at: Position
    first_ms: int
    last_ms: int
    routes: dict[str, Route]
    members: dict[str, dict[int, str]]

    @property
    def lo(self) -> Position:
        return self.at

    @property
    def hi(self) -> Position:
        return self.at

    def holds(self, state: State) -> bool:
        times = range(self.first_ms, self.last_ms + 1)
        return any(state.members(at_ms) == self.members for at_ms in times) and all(
            any(state.route(topic, at_ms) == route for at_ms in times) for topic, route in self.routes.items()
        )


class Answered(msgspec.Struct, frozen=True):
    """A lookup over the wire: the connection's last position in the stream, and the stream's end after the reply."""

    topic: str
    route: Route
    lo: Position
    hi: Position

    def holds(self, state: State) -> bool:
        return state.route(self.topic) == self.route


class Sent(msgspec.Struct, frozen=True):
    """A registration of that data version, acknowledged over the wire to the actor (`wire:<ip:port>`)."""

    actor: str
    version: int


class Claimed(msgspec.Struct, frozen=True):
    """A claim that an operation was done in a state within [lo, hi]."""

    note: Note
    lo: Position
    hi: Position

    def holds(self, state: State) -> bool:
        return self.note.operation.so(state)


def without_write(text: str) -> str:
    read, write, perm, flag = text.split(",")
    return f"{read},{write},{int(perm) & ~PERM_WRITE},{flag}"


def _address(broker: BrokerState, number: int) -> str:
    return broker.addrs.get(number, "").partition(":")[2]
