"""Versions found in arrays: as one would find them row by row."""

import random
from typing import NamedTuple

import numpy as np
import pytest

from mqpipeline.tables.changes import TopicChanges, versions

NONE = 0
"""What `before` and `after` are where nothing was stored."""


class Row(NamedTuple):
    """Of one broker and one topic, unless it says otherwise."""

    seq: int
    before: int
    after: int
    is_checkpoint: bool = False
    epoch: int = 1
    segment: int = 0
    superseded: bool = False
    broker: int = 0
    topics: tuple[int, ...] = (0,)


Found = set[tuple[int, int, int, int]]
"""Topic, and the rows that began it, named it last, and ended it."""


def found(rows: list[Row]) -> Found:
    columns = {name: np.array([getattr(row, name) for row in rows]) for name in Row._fields[:-1]}
    reported = TopicChanges(**columns, place=np.zeros(len(rows), np.int64), holds=columns["after"] != NONE)
    pairs = [(topic, i) for i, row in enumerate(rows) for topic in row.topics]
    random.Random(len(rows)).shuffle(pairs)
    listed = list(zip(*versions(reported, *np.array(pairs).T), strict=True))
    assert len(set(listed)) == len(listed)
    return {(int(topic), int(first), int(last), int(ended)) for topic, first, last, ended in listed}


def one_by_one(rows: list[Row]) -> Found:
    made = set()
    for topic, broker in {(topic, row.broker) for row in rows for topic in row.topics}:
        its = [i for i, row in enumerate(rows) if row.broker == broker and topic in row.topics]
        its.sort(key=lambda i: rows[i].seq)
        first = its[0]
        for place, i in enumerate(its):
            row = rows[i]
            then = its[place + 1] if place + 1 < len(its) else None
            ended = -1
            if then is not None:
                behind = rows[then]
                same = behind.epoch == row.epoch
                if behind.is_checkpoint and same and behind.after == row.after != NONE:
                    continue
                whole = behind.segment == row.segment
                from_it = not behind.is_checkpoint and behind.before == row.after
                if (same and (whole or from_it)) or (whole and not row.superseded):
                    ended = then
            if row.after != NONE:
                made.add((topic, first, i, ended))
            first = i if then is None else then
    return made


CASES: dict[str, tuple[list[Row], Found]] = {
    "one": ([Row(1, NONE, 5)], {(0, 0, 0, -1)}),
    "changed, deleted": ([Row(1, NONE, 5), Row(2, 5, 6), Row(3, 6, NONE)], {(0, 0, 0, 1), (0, 1, 1, 2)}),
    "never stored": ([Row(1, 5, NONE)], set()),
    "in any order": ([Row(2, 5, 6), Row(1, NONE, 5)], {(0, 1, 1, 0), (0, 0, 0, -1)}),
    "checkpointed": ([Row(1, NONE, 5), Row(2, NONE, 5, is_checkpoint=True)], {(0, 0, 1, -1)}),
    "checkpointed over a hole, then changed": (
        [Row(1, NONE, 5), Row(3, NONE, 5, is_checkpoint=True, segment=1), Row(4, 5, 6, segment=1)],
        {(0, 0, 1, 2), (0, 2, 2, -1)},
    ),
    "over a hole, from what was known": (
        [Row(1, NONE, 5), Row(3, 5, 6, segment=1)],
        {(0, 0, 0, 1), (0, 1, 1, -1)},
    ),
    "over a hole, from something else": (
        [Row(1, NONE, 5), Row(3, 7, 6, segment=1)],
        {(0, 0, 0, -1), (0, 1, 1, -1)},
    ),
    "over a hole, in another epoch": (
        [Row(1, NONE, 5), Row(3, 5, 6, segment=1, epoch=2)],
        {(0, 0, 0, -1), (0, 1, 1, -1)},
    ),
    "by a new epoch": (
        [Row(1, NONE, 5, superseded=True), Row(3, NONE, 5, epoch=2)],
        {(0, 0, 0, -1), (0, 1, 1, -1)},
    ),
    "of two topics and brokers": (
        [
            Row(1, NONE, 5, topics=(0, 1)),
            Row(2, NONE, 5, broker=1, topics=(1,)),
            Row(3, 5, 6, broker=1, topics=(1,)),
        ],
        {(0, 0, 0, -1), (1, 0, 0, -1), (1, 1, 1, 2), (1, 2, 2, -1)},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_cases(name: str) -> None:
    rows, expected = CASES[name]
    assert found(rows) == expected


@pytest.mark.parametrize("seed", range(20))
def test_as_found_one_by_one(seed: int) -> None:
    dice = random.Random(seed)
    rows = [
        Row(
            seq,
            before=dice.randint(0, 2),
            after=dice.randint(0, 2),
            is_checkpoint=dice.random() < 0.4,
            epoch=1 + dice.randint(0, seq) // 60,
            segment=seq // 40,
            superseded=dice.random() < 0.2,
            broker=dice.randint(0, 2),
            topics=tuple(dice.sample(range(4), dice.randint(1, 4))),
        )
        for seq in range(200)
    ]
    dice.shuffle(rows)
    assert found(rows) == one_by_one(rows)
