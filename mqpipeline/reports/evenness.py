"""How evenly amounts are balanced among the members of a group: plain arrays, many groups at once."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]
Ratios = npt.NDArray[np.float64]


class Evenness(NamedTuple):
    """By group, ascending: how many share, the greatest amount over the mean, and Gini's coefficient, which are NaN
    where all amounts are 0."""

    group: Numbers
    members: Numbers
    max_to_mean: Ratios
    gini: Ratios


def evenness(groups: Numbers, amounts: Numbers) -> Evenness:
    """Return how evenly amounts lie in each group, which has one member at least; members in any order, no amount below
    0."""
    order = np.lexsort((amounts, groups))
    groups, sizes = groups[order], amounts[order].astype(np.float64)
    begins = np.flatnonzero(np.diff(groups, prepend=-1))
    members = np.diff(begins, append=len(groups))
    rank = np.arange(len(groups)) - np.repeat(begins, members)
    apart = np.add.reduceat((2 * rank + 1 - np.repeat(members, members)) * sizes, begins)
    total = np.add.reduceat(sizes, begins)
    total[total == 0] = np.nan
    most = sizes[begins + members - 1]
    return Evenness(groups[begins], members, most * members / total, apart / (members * total))
