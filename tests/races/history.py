"""The rules of any race, and their judge. The history is the stream of events; no other order is needed.

That the stream tells the truth is half of what is tested here. What clients see by their own clocks, with leases that
end and stores that fail, is judged without it: docs/consistency.md, faults/history.

1. *The stream is the serial order.* A script appends its entries as one group, or changes nothing. The replay of the
   entries up to the end of a group (`registry.events.replay`, which also proves that each entry starts from what those
   before it led to) is a state; the states in their order are all that ever was.
2. *No torn read.* A read that learns the stream's end in the same transaction has seen exactly the state there,
   less the members whose lease was over by the Redis clock (their next entry says when). So of a first registration
   nothing is seen before its commit, and everything after; nothing of a removed broker is seen after the entry of
   its removal. Mixed rounds in one broker are seen only while a table of more than one slice is written over
   one that is already there, and then they are in the history too.
3. *No stale read over the wire.* A worker's reply shows a state between the last one that this connection saw of the
   topic (or had acknowledged) and the end of the stream at the reply.
4. *Acknowledged means done.* An acknowledged operation has its entries between its request and its reply, and the
   state after its last entry is what was asked for. One that was acknowledged without an entry has none, and what it
   asked for was so in some state meanwhile.
5. *Once.* An operation that fits one script has all its entries in one group; one that was given up, or whose process
   was killed, has one group or none (of a table of several slices: all of a first registration's, or none).
6. *A renewed member stays.* No member is removed as lost that was renewed after its last connection had ended.
7. *Nothing is left.* In the end the tables are exactly what the entries lead to, and no key is there that no broker
   needs.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol, TypeAlias

import msgspec
from msgspec.structs import replace

from registry.events.entry import FIRST, Event, EventId, EventKind
from registry.events.replay import BrokerState, Tables, replay
from registry.events.replay_checks import without

Position: TypeAlias = tuple[int, int]  # an EventId, or between two
BEGIN: Position = (0, 0)
Route: TypeAlias = dict[str, tuple[dict[int, str], str]]  # broker name -> addresses by id, queue data


def position(event_id: str) -> Position:
    """Return an entry's id as a position; "" and "-" are before all of them."""
    return EventId.parse(event_id) if event_id.strip("-") else FIRST


class Group(msgspec.Struct, frozen=True):
    """The entries of one script, `at` the position of the last."""

    at: Position
    events: tuple[Event, ...]


def visible_at(tables: Tables, later: Iterable[Event], at_ms: int) -> Tables:
    """Return what readers saw at `at_ms` (Redis clock); `tables` are those of all entries up to then.

    A lapse is recorded after it took effect: members are left out whose removal is among the entries `later`, but
    was effective at `at_ms`. A broker without members is gone, and its topics with it (`Tables.living`)."""
    brokers, seen = dict(tables.brokers), set[tuple[str, int]]()
    for event in later:
        if event.kind not in (EventKind.BROKER_REGISTERED, EventKind.BROKER_REMOVED):
            continue
        place = (event.get("broker"), event.number("id"))
        broker = brokers.get(place[0])
        over = "effective_ms" in event.fields and event.number("effective_ms") <= at_ms
        if over and broker is not None and place not in seen:
            brokers[place[0]] = replace(broker, addrs=without(broker.addrs, place[1]))
        seen.add(place)
    return replace(tables, brokers=brokers)


class State(msgspec.Struct, frozen=True):
    """The tables after all groups up to `at`; `following` are the next entries of each place (broker name, id)."""

    at: Position
    tables: Tables
    following: Mapping[tuple[str, str], Event]

    def living(self, at_ms: int | None = None) -> dict[str, BrokerState]:
        """Return brokers with a member; at a time, with one whose lease was not over then."""
        if at_ms is None:
            return self.tables.living()
        return visible_at(self.tables, self.following.values(), at_ms).living()

    def members(self, at_ms: int) -> dict[str, dict[int, str]]:
        """Return addresses by broker name."""
        return {name: addresses(broker) for name, broker in self.living(at_ms).items()}

    def route(self, topic: str, at_ms: int | None = None) -> Route:
        return {
            name: (addresses(broker), broker.topics[topic])
            for name, broker in self.living(at_ms).items()
            if topic in broker.topics
        }


class Claim(Protocol):
    """A claim that something held in a state whose position is within [lo, hi]."""

    @property
    def lo(self) -> Position: ...

    @property
    def hi(self) -> Position: ...

    def holds(self, state: State) -> bool: ...


def addresses(broker: BrokerState) -> dict[int, str]:
    return {number: key.partition(":")[2] for number, key in sorted(broker.addrs.items())}


def groups(events: Iterable[Event]) -> list[Group]:
    """Return the entries by script: `part` counts them."""
    complete: list[Group] = []
    begun: list[Event] = []
    for event in events:
        begun.append(event)
        part, _, parts = (event.get("part") or "1/1").partition("/")
        assert len(begun) == int(part), f"{event.id}: part {part}, but {len(begun)} of the group are there"
        if part == parts:
            complete.append(Group(event.id, tuple(begun)))
            begun = []
    assert not begun, "the last group is not complete"
    return complete


def states(history: Sequence[Group]) -> Iterator[State]:
    """Yield all states in order, first that before the first entry."""
    following: list[dict[tuple[str, str], Event]] = [{}]
    for group in reversed(history):
        places = {
            (event.get("broker"), event.get("id")): event
            for event in reversed(group.events)
            if event.kind in ("broker_registered", "broker_removed")
        }
        following.append({**following[-1], **places} if places else following[-1])
    tables = Tables()
    yield State(BEGIN, tables, following.pop())
    for group in history:
        tables = replay(tables, group.events)
        yield State(group.at, tables, following.pop())


def broken(history: Sequence[Group], claims: Iterable[Sequence[Claim]]) -> list[str]:
    """Return what does not hold. The claims of one sequence must hold in states that do not go back."""
    ends = {BEGIN, *(group.at for group in history)}
    waiting: dict[Position, list[list[Claim]]] = {}
    complaints: list[str] = []
    for sequence in claims:
        if torn := [claim for claim in sequence if not {claim.lo, claim.hi} <= ends]:
            complaints.append(f"the stream did not end there: {torn[0]}")
        elif sequence:
            waiting.setdefault(sequence[0].lo, []).append(list(reversed(sequence)))
    begun: list[list[Claim]] = []
    for state in states(history):
        begun += waiting.pop(state.at, [])
        for rest in begun:
            while rest and rest[-1].lo <= state.at and rest[-1].holds(state):
                rest.pop()
            if rest and rest[-1].hi <= state.at:
                complaints.append(f"not so in any state up to {state.at}: {rest[-1]}")
                rest.clear()
        begun = [rest for rest in begun if rest]
    return complaints
