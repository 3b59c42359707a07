"""What faults.history.search answers, found by trying every order: slow, and short enough to be seen right."""

from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

import msgspec

from faults.history.search import ABSENT, NOBODY, Read, Write

Kind: TypeAlias = Literal["write", "read", "lapse"]


class Item(msgspec.Struct, frozen=True):
    kind: Kind
    index: int
    opens: float
    closes: float
    required: bool


def explained(writes: Sequence[Write], reads: Sequence[Read]) -> bool:
    """Whether there is an order in which all makes sense."""
    items = [Item("write", i, one.opens, one.closes, one.required) for i, one in enumerate(writes)]
    items += [Item("read", i, one.opens, one.closes, True) for i, one in enumerate(reads)]
    items += [Item("lapse", i, one.lapses_from, one.lapses_until, False) for i, one in enumerate(writes)]
    return any(_makes_sense(order, writes, reads) for order in _orders(tuple(items)))


def _orders(items: tuple[Item, ...]) -> Iterator[tuple[Item, ...]]:
    """All orders in which none comes after one that opens when it has closed already."""
    if not any(item.required for item in items):
        yield ()
    for first in items:
        rest = tuple(
            item for item in items if item is not first and (item.required or item.closes >= first.opens)
        )
        if all(item.closes >= first.opens for item in rest):
            for order in _orders(rest):
                yield (first, *order)


def _makes_sense(order: Sequence[Item], writes: Sequence[Write], reads: Sequence[Read]) -> bool:
    value, holder, done, last = ABSENT, NOBODY, set[int](), dict[int, int]()
    for item in order:
        if holder != NOBODY and item.opens > writes[holder].lapses_until:
            return False
        if item.kind == "lapse":
            if holder != item.index:
                return False
            value, holder = ABSENT, NOBODY
        elif item.kind == "read":
            read = reads[item.index]
            if value not in read.accepts or (read.after != NOBODY and read.after not in done):
                return False
            if last.get(read.session, -1) > item.index:
                return False
            last[read.session] = item.index
        else:
            write = writes[item.index]
            done.add(item.index)
            if write.sets is not None:
                value, holder = write.sets, item.index
            elif value in write.removes:
                value, holder = ABSENT, NOBODY
    return True
