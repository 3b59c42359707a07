"""The least availability of any stretch of a given length: what a client saw that came at the worst moment."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from mqpipeline.reports.shape import WINDOW
from mqpipeline.states.brokers import BROKER
from mqpipeline.windows import Window, table

LENGTHS = {"5m": 300_000, "1h": 3_600_000, "6h": 21_600_000}
FOUND = pa.schema(
    {
        **dict.fromkeys(BROKER, pa.string()),
        **dict(zip(WINDOW, (pa.string(), pa.int64(), pa.int64()), strict=True)),
        "worst": pa.map_(pa.string(), pa.float64()),
    }
)
Times = npt.NDArray[np.int64]
NOWHERE = -1


def worst(brokers: DataFrame, windows: Sequence[Window], lengths: Mapping[str, int] = LENGTHS) -> DataFrame:
    """By broker and window: `worst`, a map from a length's name to the least availability in [s, s + length) of all
    that lie within the window and are UP or DOWN throughout; a length that fits nowhere is not in it.

    The states (`broker_states`) of one broker at a time are taken into memory."""
    shape, named = tuple(windows), dict(sorted(lengths.items()))

    def of_broker(key: tuple[pa.Scalar, ...], states: pa.Table) -> pa.Table:
        return _of_broker(shape, named, key, states)

    known = brokers.where("state in ('UP', 'DOWN')")
    return known.groupBy(*BROKER).applyInArrow(of_broker, from_arrow_schema(FOUND))


def _of_broker(
    windows: Sequence[Window], lengths: Mapping[str, int], key: tuple[pa.Scalar, ...], states: pa.Table
) -> pa.Table:
    """The UP and DOWN intervals of a broker, in any order -> rows as FOUND."""
    stretches, columns = Stretches.of(states), table(windows)
    begins, ends = (columns[name].to_numpy() for name in ("begin", "end"))
    down = np.column_stack([stretches.most_down(begins, ends, length) for length in lengths.values()])
    window, which = np.nonzero(down != NOWHERE)
    length = np.array(list(lengths.values()))[which]
    low = (length - down[window, which]) / length
    rows, firsts = np.unique(window, return_index=True)
    entries = pa.MapArray.from_arrays(
        pa.array(np.append(firsts, len(window)), pa.int32()),
        pa.array(list(lengths)).take(pa.array(which)),
        pa.array(low),
    )
    broker = (pa.repeat(name, len(rows)) for name in key)
    return pa.table([*broker, *columns.take(pa.array(rows)).columns, entries], FOUND)


class Stretches(NamedTuple):
    """When a broker was UP or DOWN: `begins` and `ends` of stretches without a break; its outages, `down` and `up`
    again; all ascending."""

    begins: Times
    ends: Times
    down: Times
    up: Times

    @classmethod
    def of(cls, states: pa.Table) -> Self:
        """From UP and DOWN intervals in any order."""
        in_order = states.sort_by("from_ms")
        from_ms, to_ms = (in_order[name].to_numpy() for name in ("from_ms", "to_ms"))
        broken = np.flatnonzero(from_ms[1:] != to_ms[:-1])
        failed = in_order["state"].to_numpy() == "DOWN"
        return cls(from_ms[np.r_[0, broken + 1]], to_ms[np.r_[broken, -1]], from_ms[failed], to_ms[failed])

    def most_down(self, begins: Times, ends: Times, length: int) -> Times:
        """Return for each window [begin, end) the most time DOWN in any [s, s + length) that lies in it and in a
        stretch, or NOWHERE.

        Moving s on while it is UP, or back while it is in an outage, never lowers it: so it is most where an outage
        begins, or at an end of the stretch or of the window."""
        tried = np.sort(np.concatenate([self.begins, self.ends - length, self.down]))
        inside = np.column_stack(
            [np.searchsorted(tried, begins), np.searchsorted(tried, ends - length, side="right")]
        )
        down = np.append(self._down_from(tried, length), NOWHERE)
        within = np.maximum.reduceat(down, inside.ravel())[::2]  # where none is inside, of one that is not
        most = np.where(inside[:, 0] < inside[:, 1], within, NOWHERE)
        at_edges = np.maximum(self._down_from(begins, length), self._down_from(ends - length, length))
        return np.where(begins + length <= ends, np.maximum(most, at_edges), NOWHERE)

    def _down_from(self, at: Times, length: int) -> Times:
        """How long it was DOWN in [at, at + length); NOWHERE if that does not lie in a stretch."""
        stretch = np.searchsorted(self.begins, at, side="right") - 1
        lies = (stretch >= 0) & (at + length <= self.ends[stretch])
        return np.where(lies, self._down_before(at + length) - self._down_before(at), NOWHERE)

    def _down_before(self, at: Times) -> Times:
        """How long it was DOWN until then."""
        whole = np.r_[0, np.cumsum(self.up - self.down)]
        index = np.searchsorted(self.down, at, side="right")
        over = np.where(index > 0, at - np.r_[0, self.up][index], 0)
        return np.asarray(whole[index] + np.minimum(over, 0), dtype=np.int64)
