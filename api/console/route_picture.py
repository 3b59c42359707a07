"""The picture of a route: where topic, clusters, brokers and members are drawn, and the lines between them.

A topic at the left, its brokers in the middle, grouped by cluster, their members at the right. Lengths are those of an
SVG's view box."""

from collections.abc import Sequence
from itertools import groupby
from typing import Final
from unicodedata import east_asian_width

import msgspec

from api.console.formats import number, permission
from api.console.topic_route import MASTER, BrokerRow

__all__ = ["Box", "BrokerBox", "ClusterBox", "MemberBox", "Picture", "picture_of", "shortened"]

BROKERS_MOST: Final = 30
MEMBERS_MOST: Final = 4
NAME_CELLS: Final = 36
"""Characters of a name in its box, wide ones counted twice."""
ADDRESS_CELLS: Final = 29

WIDTH: Final = 1100
TOPIC_WIDTH, TOPIC_HEIGHT, TOPIC_MIDDLE_MOST = 220, 76, 220
GROUP_X, GROUP_PADDING, GROUP_HEAD = 300, 14, 30
BROKER_X, BROKER_WIDTH, BROKER_HEIGHT = 314, 320, 74
MEMBER_X, MEMBER_WIDTH, MEMBER_HEIGHT = 734, 352, 28
GAP: Final = 14
BEND: Final = 12
MEMBER_GAP: Final = 8


class Box(msgspec.Struct, frozen=True):
    """A rectangle by its upper left corner."""

    x: int
    y: int
    width: int
    height: int

    @property
    def middle(self) -> int:
        """Its middle in height."""
        return self.y + self.height // 2

    @property
    def right(self) -> int:
        """Its right edge."""
        return self.x + self.width

    @property
    def bottom(self) -> int:
        """Its lower edge."""
        return self.y + self.height


class MemberBox(msgspec.Struct, frozen=True):
    """A living member; `line` is the path to it from its broker. One without an address counts those left out."""

    box: Box
    line: str
    role: str
    address: str
    text: str


class BrokerBox(msgspec.Struct, frozen=True):
    """A broker; `line` is the path to it from the topic. `state` is `open` where producers send to it, else `drained`
    or `limited`, and `words` say which and why."""

    box: Box
    line: str
    name: str
    text: str
    queues: str
    words: str
    state: str
    members: tuple[MemberBox, ...]


class ClusterBox(msgspec.Struct, frozen=True):
    """A cluster around its brokers."""

    box: Box
    name: str
    text: str
    brokers: tuple[BrokerBox, ...]


class Picture(msgspec.Struct, frozen=True):
    """A route as it is drawn; `left_out` brokers are not, and `description` says all of it in words."""

    width: int
    height: int
    topic: Box
    text: str
    description: str
    clusters: tuple[ClusterBox, ...]
    left_out: int


def picture_of(topic: str, rows: Sequence[BrokerRow]) -> Picture:
    """Return the picture of a topic's route: the first brokers of `rows`, which are sorted by name."""
    drawn = sorted(rows[:BROKERS_MOST], key=lambda row: (row.cluster, row.name))
    groups = [tuple(group) for _, group in groupby(drawn, key=lambda row: row.cluster)]
    height = max(sum(map(_group_height, groups)) + GAP * max(len(groups) - 1, 0), TOPIC_HEIGHT)
    middle = min(height // 2, TOPIC_MIDDLE_MOST)
    box = Box(0, middle - TOPIC_HEIGHT // 2, TOPIC_WIDTH, TOPIC_HEIGHT)
    clusters: list[ClusterBox] = []
    top = 0
    for group in groups:
        clusters.append(_cluster(group, top, box))
        top = clusters[-1].box.bottom + GAP
    return Picture(
        width=WIDTH,
        height=height,
        topic=box,
        text=shortened(topic, TOPIC_WIDTH // 9),
        description=_description(topic, rows),
        clusters=tuple(clusters),
        left_out=len(rows) - len(drawn),
    )


def shortened(text: str, cells: int) -> str:
    """Return a text without its middle, if it takes more cells: ends of names tell brokers apart."""
    if len(text) <= cells and _cells(text) <= cells:
        return text
    head, tail = text[:cells], text[-cells:]
    while _cells(head) > cells // 2:
        head = head[:-1]
    while _cells(tail) > cells - cells // 2 - 1:
        tail = tail[1:]
    return f"{head}…{tail}"


def _cells(text: str) -> int:
    return sum(2 if east_asian_width(character) in "WF" else 1 for character in text)


def _group_height(rows: Sequence[BrokerRow]) -> int:
    return GROUP_HEAD + sum(_row_height(row) + GAP for row in rows)


def _row_height(row: BrokerRow) -> int:
    members = min(len(row.addresses), MEMBERS_MOST + 1)
    return max(BROKER_HEIGHT, members * (MEMBER_HEIGHT + MEMBER_GAP) - MEMBER_GAP)


def _cluster(rows: Sequence[BrokerRow], top: int, topic: Box) -> ClusterBox:
    brokers: list[BrokerBox] = []
    at = top + GROUP_HEAD
    for row in rows:
        brokers.append(_broker(row, at, topic))
        at += _row_height(row) + GAP
    name = rows[0].cluster
    box = Box(GROUP_X, top, WIDTH - GROUP_X, at - top)
    return ClusterBox(box, name, shortened(name, 2 * NAME_CELLS), tuple(brokers))


def _broker(row: BrokerRow, top: int, topic: Box) -> BrokerBox:
    box = Box(BROKER_X, top + (_row_height(row) - BROKER_HEIGHT) // 2, BROKER_WIDTH, BROKER_HEIGHT)
    return BrokerBox(
        box=box,
        line=_line(topic, box),
        name=row.name,
        text=shortened(row.name, NAME_CELLS),
        queues=f"{number(row.read_queues)} to read, {number(row.write_queues)} to write",
        words=_words(row),
        state="open" if row.writable else "drained" if row.drained else "limited",
        members=_members(row, top, box),
    )


def _words(row: BrokerRow) -> str:
    words = [*(["drained"] if row.drained else []), permission(row.perm)]
    return ", ".join([*words, *([] if row.has_master else ["no master"])])


def _members(row: BrokerRow, top: int, broker: Box) -> tuple[MemberBox, ...]:
    left_out = len(row.addresses) - MEMBERS_MOST
    listed = [
        ("master" if number == MASTER else f"slave {number}", address) for number, address in row.addresses
    ]
    if left_out > 0:
        listed = [*listed[:MEMBERS_MOST], (f"and {left_out} more", "")]
    used = len(listed) * (MEMBER_HEIGHT + MEMBER_GAP) - MEMBER_GAP
    first = top + (_row_height(row) - used) // 2
    members: list[MemberBox] = []
    for place, (role, address) in enumerate(listed):
        box = Box(MEMBER_X, first + place * (MEMBER_HEIGHT + MEMBER_GAP), MEMBER_WIDTH, MEMBER_HEIGHT)
        members.append(MemberBox(box, _line(broker, box), role, address, shortened(address, ADDRESS_CELLS)))
    return tuple(members)


def _line(left: Box, right: Box) -> str:
    """Return the path from the right of a box to the left of another: lines of one box have their way down in common,
    so that many stay apart from what they pass."""
    down, by = (left.right + right.x) // 2, right.middle - left.middle
    if not by:
        return f"M{left.right} {left.middle}H{right.x}"
    size = min(BEND, abs(by) // 2)
    bend = size if by > 0 else -size
    return (
        f"M{left.right} {left.middle}H{down - size}q{size} 0 {size} {bend}"
        f"V{right.middle - bend}q0 {bend} {size} {bend}H{right.x}"
    )


def _description(topic: str, rows: Sequence[BrokerRow]) -> str:
    clusters = len({row.cluster for row in rows})
    said = [
        f"{topic} has queues on {number(len(rows))} {_plural('broker', len(rows))} "
        f"of {number(clusters)} {_plural('cluster', clusters)}",
        f"producers send to {number(sum(row.writable for row in rows))}",
    ]
    if drained := sum(row.drained for row in rows):
        said.append(f"{number(drained)} {'is' if drained == 1 else 'are'} drained")
    if without := sum(not row.has_master for row in rows):
        said.append(f"{number(without)} {'has' if without == 1 else 'have'} no master")
    return "; ".join(said) + "."


def _plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"
