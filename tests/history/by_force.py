"""The result of faults.history.search by trying every order: slow, and short enough to be seen right."""

from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from faults.history.search import ABSENT, NO_WRITE, Read, Write

Kind: TypeAlias = Literal["write", "read", "lapse"]


class Item(msgspec.Struct, frozen=True):
    kind: Kind
    index: int
    opens: float
    closes: float
    required: bool


class State(msgspec.Struct, frozen=True):
    """The value, the write whose lease it is, and the writes and reads that came before."""

    value: int = ABSENT
    holder: int = NO_WRITE
    done: frozenset[int] = frozenset()
    read: frozenset[int] = frozenset()


START = State()


def explained(writes: Sequence[Write], reads: Sequence[Read]) -> bool:
    """Return whether an order explains all reads."""
    items = [Item("write", i, one.opens, one.closes, one.required) for i, one in enumerate(writes)]
    items += [Item("read", i, one.opens, one.closes, True) for i, one in enumerate(reads)]
    items += [Item("lapse", i, one.lapses_from, one.lapses_until, False) for i, one in enumerate(writes)]
    return _explained(tuple(items), START, writes, reads)


def _explained(items: tuple[Item, ...], state: State, writes: Sequence[Write], reads: Sequence[Read]) -> bool:
    """Return whether the items can follow that state. None comes after one that opens when it has closed already."""
    if not any(item.required for item in items):
        return True
    for first in items:
        rest = tuple(
            item for item in items if item is not first and (item.required or item.closes >= first.opens)
        )
        in_time = state.holder == NO_WRITE or first.opens <= writes[state.holder].lapses_until
        in_order = all(item.closes >= first.opens for item in rest)
        states = _after(first, state, writes, reads) if in_time and in_order else ()
        if any(_explained(rest, after, writes, reads) for after in states):
            return True
    return False


def _after(item: Item, state: State, writes: Sequence[Write], reads: Sequence[Read]) -> Iterator[State]:
    if item.kind == "lapse":
        if state.holder == item.index:
            yield replace(state, value=ABSENT, holder=NO_WRITE)
    elif item.kind == "read":
        read = reads[item.index]
        own = read.after == NO_WRITE or read.after in state.done
        in_turn = all(other < item.index for other in state.read if reads[other].session == read.session)
        if state.value in read.accepts and own and in_turn:
            yield replace(state, read=state.read | {item.index})
    else:
        write, done = writes[item.index], state.done | {item.index}
        for other in write.restores:
            value = ABSENT if other == NO_WRITE else writes[other].sets
            if value is not None:
                yield replace(state, value=value, holder=other, done=done)
        if write.sets is not None:
            yield replace(state, value=write.sets, holder=item.index, done=done)
        elif state.value in write.removes:
            yield replace(state, value=ABSENT, holder=NO_WRITE, done=done)
        else:
            yield replace(state, done=done)
