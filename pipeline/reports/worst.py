"""The least availability of any stretch of a given length: what someone saw who came at the worst moment."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.reports.shape import WINDOW
from pipeline.states.brokers import BROKER
from pipeline.windows import Window

LENGTHS = {"5m": 300_000, "1h": 3_600_000, "6h": 21_600_000}
FOUND = {
    **dict.fromkeys(BROKER, pa.string()),
    **{"window": pa.string(), "from_ms": pa.int64(), "to_ms": pa.int64()},
    **{"length": pa.string(), "low": pa.float64()},
}
DDL = ", ".join(f"{name} {'bigint' if kind == pa.int64() else kind}" for name, kind in FOUND.items())
Times = npt.NDArray[np.int64]


def worst(brokers: DataFrame, of: Sequence[Window], lengths: Mapping[str, int] = LENGTHS) -> DataFrame:
    """By broker and window: `worst`, a map from a length's name to the least availability in [s, s + length) of all
    that lie within the window and are UP or DOWN throughout; a length that fits nowhere is not in it.

    The states (`broker_states`) of one broker at a time are taken into memory."""
    listed, named = tuple(of), tuple(lengths.items())

    def of_broker(key: tuple[pa.Scalar, ...], states: pa.Table) -> pa.Table:
        told = Told.of(states)
        broker = [name.as_py() for name in key]
        found = [
            (*broker, *window, name, low)
            for window in listed
            for name, length in named
            if (low := told.lowest(window, length)) is not None
        ]
        return pa.Table.from_pylist([dict(zip(FOUND, row, strict=True)) for row in found], pa.schema(FOUND))

    known = brokers.where("state in ('UP', 'DOWN')")
    lows = known.groupBy(*BROKER).applyInArrow(of_broker, DDL)
    entries = F.sort_array(F.collect_list(F.struct("length", "low")))
    return lows.groupBy(*BROKER, *WINDOW).agg(F.map_from_entries(entries).alias("worst"))


class Told(NamedTuple):
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

    def lowest(self, window: Window, length: int) -> float | None:
        """The least availability in [s, s + length); None if that lies in no stretch within the window.

        Moving s on while it is UP, or back while it is in an outage, never raises it: so it is least where an outage
        begins, or at an end of the stretch."""
        begins, ends = np.maximum(self.begins, window.from_ms), np.minimum(self.ends, window.to_ms)
        tried = np.concatenate([begins, ends - length, self.down])
        stretch = np.searchsorted(self.begins, tried, side="right") - 1
        fits = (stretch >= 0) & (begins[stretch] <= tried) & (tried + length <= ends[stretch])
        if not fits.any():
            return None
        down = self._down_before(tried[fits] + length) - self._down_before(tried[fits])
        return float((length - down.max()) / length)

    def _down_before(self, at: Times) -> Times:
        """How long it was DOWN until then."""
        whole = np.r_[0, np.cumsum(self.up - self.down)]
        index = np.searchsorted(self.down, at, side="right")
        over = np.where(index > 0, at - np.r_[0, self.up][index], 0)
        return np.asarray(whole[index] + np.minimum(over, 0), dtype=np.int64)
