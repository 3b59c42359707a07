"""Changes of routes, in order, cut into versions: numbers in arrays, and no text."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mqpipeline.codes import Numbers

Truths = npt.NDArray[np.bool_]


class TopicChanges(NamedTuple):
    """Rows that each name some topics of a broker, in any order. Equal numbers mean equal things.

    `seq` and `place` order those of a `broker`; `before` and `after` are what was stored, of which `holds` says that
    `after` is something; `is_checkpoint`: nothing need have changed; `segment`: history is whole between equal ones;
    `superseded`: its epoch ended in that segment."""

    broker: Numbers
    seq: Numbers
    place: Numbers
    before: Numbers
    after: Numbers
    epoch: Numbers
    segment: Numbers
    holds: Truths
    is_checkpoint: Truths
    superseded: Truths


class Versions(NamedTuple):
    """What was stored of a `topic` on a broker, from one row to another: `first` began it, `last` named it last,
    `ended` is the next change, which ended it, or -1 where none did."""

    topic: Numbers
    first: Numbers
    last: Numbers
    ended: Numbers


def versions(changes: TopicChanges, topic: Numbers, row: Numbers) -> Versions:
    """Return the versions that `row[i]` naming `topic[i]` makes, for all i, of which there is one at least.

    A row of a checkpoint that lists what held begins no version. What did not hold in a segment may hold behind it:
    a change ends a version over a hole if it is of the same epoch and started from that."""
    at = np.empty(len(changes.seq), np.int64)
    at[np.lexsort((changes.place, changes.seq, changes.broker))] = np.arange(len(at))
    order = np.argsort(topic * len(at) + at[row], kind="stable")
    topic, row = topic[order], row[order]
    one, then = row[:-1], row[1:]
    of_one_pair = (topic[:-1] == topic[1:]) & (changes.broker[one] == changes.broker[then])
    same = (changes.epoch[one] == changes.epoch[then]) & (changes.after[one] == changes.after[then])
    goes_on = of_one_pair & changes.is_checkpoint[then] & changes.holds[one] & same
    begins = np.append(True, ~goes_on)
    first = np.maximum.accumulate(np.where(begins, np.arange(len(row)), 0))
    last = np.flatnonzero(np.append(begins[1:], True) & changes.holds[row])
    this, behind = row[last], row[np.minimum(last + 1, len(row) - 1)]
    whole = changes.segment[this] == changes.segment[behind]
    starts_from_it = ~changes.is_checkpoint[behind] & (changes.before[behind] == changes.after[this])
    met = (changes.epoch[this] == changes.epoch[behind]) & (whole | starts_from_it)
    changed = np.append(of_one_pair, False)[last] & (met | (whole & ~changes.superseded[this]))
    return Versions(topic[last], row[first[last]], this, np.where(changed, behind, -1))
