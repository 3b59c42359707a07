"""What a replay verifies of each entry, and the errors it raises. Only tables that are whole are verified."""

from collections.abc import Mapping
from typing import TypeVar

from registry.events.entry import Event, EventId
from registry.events.tables import BrokerState, MemberState, Tables
from registry.keys import member_key

K = TypeVar("K")
V = TypeVar("V")


class ReplayError(ValueError):
    """An entry does not follow from those before it; the text begins with its id."""


class CheckpointDiffers(ReplayError):
    """A checkpoint round differs from the entries before it: an entry was wrong, or a table was changed by hand.

    `differences` are lines for people; `tables` are those of the round, to go on from."""

    def __init__(self, event_id: EventId, differences: list[str], tables: Tables) -> None:
        super().__init__(f"{event_id}: the checkpoint differs: {'; '.join(differences)}")
        self.differences = differences
        self.tables = tables


def same(tables: Tables, event: Event, what: str, stated: object, replayed: object) -> None:
    """Raise ReplayError when an entry states another value than whole tables have."""
    if stated != replayed and tables.whole:
        raise ReplayError(
            f"{event.id}: {event.kind}: {what} is {stated!r}, but {replayed!r} by the entries before"
        )


def same_addrs(tables: Tables, event: Event, broker: BrokerState) -> None:
    """Verify the addresses that an entry gives of a broker."""
    listed = {number: key.partition(":")[2] for number, key in broker.addrs.items()}
    same(tables, event, "addrs", event.json("addrs", dict[int, str]), listed)


def member_of(event: Event) -> str:
    """Return the member, `<cluster>:<addr>`, that an entry is about."""
    return member_key(event.get("cluster"), event.get("addr"))


def broker_of(tables: Tables, event: Event, name: str) -> BrokerState | None:
    """Return the broker; None only of tables that are not whole."""
    broker = tables.brokers.get(name)
    if tables.whole and (broker is None or not broker.addrs):
        raise ReplayError(f"{event.id}: {event.kind} of broker {name!r}, which has no member")
    return broker


def living(tables: Tables, event: Event) -> tuple[BrokerState | None, MemberState | None]:
    """Return the broker and the member that an entry is about; None only of tables that are not whole."""
    broker, member = broker_of(tables, event, event.get("broker")), tables.members.get(member_of(event))
    if member is None and tables.whole:
        raise ReplayError(f"{event.id}: {event.kind} of an unknown member {member_of(event)!r}")
    if broker is not None:
        same(tables, event, "epoch", event.number("epoch"), broker.epoch)
    return broker, member


def without(table: Mapping[K, V], key: K) -> dict[K, V]:
    """Return a copy of a table without one key."""
    return {other: value for other, value in table.items() if other != key}
