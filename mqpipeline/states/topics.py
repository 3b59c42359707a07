"""How long topics were in each state, of their pairs: one with each broker that a queue datum of it is stored for."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from mqpipeline.codes import numbered
from mqpipeline.partitions import partitions_of, table_of
from mqpipeline.states import sweep
from mqpipeline.states.brokers import NAME
from mqpipeline.states.combined import DOWN, PLANNED, UNKNOWN, UP, within
from mqpipeline.windows import Window, span, table

TOPIC = ("namespace", "topic")
CLOSED = "perm & 2 = 0 and not from_cause <=> 'acting'"
STATES = pa.array([UP, DOWN, UNKNOWN, PLANNED])
"""By the numbers that they have in a sweep."""
TIMES = ("up_ms", "down_ms", "planned_ms", "unknown_ms")
FOUND = pa.schema(
    {
        **dict.fromkeys((*TOPIC, "window"), pa.string()),
        **dict.fromkeys(("from_ms", "to_ms", *TIMES, "outages"), pa.int64()),
        "weighted": pa.float64(),
    }
)


def topic_time_in(route_versions: DataFrame, writable: DataFrame, of: Sequence[Window]) -> DataFrame:
    """As `time_in`, of topics; and `weighted`: up / (up + down) over a topic's pairs while they are in force, each
    instant weighted by write queues.

    A pair is PLANNED without permission to write, unless a slave that acts for its master is why; else as its broker
    in `writable` (`writable_states`), which is read at once. All versions of a partition's topics are in memory
    together."""
    begin_end = span(of)
    states = within(writable, *begin_end).select(*NAME, "state", "from_ms", "to_ms").toArrow()
    held = within(route_versions, *begin_end).select(
        *TOPIC,
        F.expr(f"if({CLOSED}, null, broker) as broker"),
        F.coalesce("write_queues", F.lit(0)).alias("write_queues"),
        "from_ms",
        "to_ms",
    )
    totals = partial(_time_in, Brokers.of(states, *begin_end), tuple(of))
    return held.repartition(partitions_of(held), *TOPIC).mapInArrow(totals, from_arrow_schema(FOUND))


class Brokers(NamedTuple):
    """The states of brokers by number. After those in `numbers`, by namespace and name, come one that nothing is known
    of and one that is not writable."""

    numbers: dict[tuple[bytes, ...], int]
    timelines: sweep.Timelines

    @classmethod
    def of(cls, states: pa.Table, from_ms: int, to_ms: int) -> Self:
        """Return the timelines of rows of NAME, `state`, `from_ms`, `to_ms`, in any order."""
        rows, names = numbered(states, *NAME)
        others = len(names) + np.arange(2)
        timelines = sweep.Timelines(
            np.append(rows, others),
            np.append(pc.index_in(states["state"], STATES).to_numpy(), [sweep.UNKNOWN, sweep.PLANNED]),
            np.append(states["from_ms"].to_numpy(), [from_ms] * 2),
            np.append(states["to_ms"].to_numpy(), [to_ms] * 2),
        )
        order = np.lexsort((timelines.from_ms, timelines.broker))
        numbers = {key: number for number, key in enumerate(_keys(names))}
        return cls(numbers, sweep.Timelines(*(column[order] for column in timelines)))

    def of_rows(self, held: pa.Table) -> sweep.Numbers:
        """The number of each row's broker; null is the one that is not writable."""
        rows, names = numbered(held, *NAME)
        unknown = len(self.numbers)
        numbers = [unknown + 1 if key[1] is None else self.numbers.get(key, unknown) for key in _keys(names)]
        return np.array(numbers, np.int64)[rows]


def _time_in(
    brokers: Brokers, of: Sequence[Window], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """All versions of some topics, in any order -> rows as FOUND."""
    held = table_of(batches)
    if held is None:
        return
    versions, topics = _versions(brokers, held)
    del held  # the numbers are enough
    windows = table(of)
    for totals in sweep.time_in(versions, brokers.timelines, sweep.Windows.of(of)):
        window, weight = windows.take(pa.array(totals.window)), totals.up_weight + totals.down_weight
        length = pc.subtract(window["end"], window["begin"]).to_numpy()
        share = np.divide(totals.up_weight, weight, out=np.zeros_like(weight), where=weight > 0)
        columns = (
            *topics.take(pa.array(totals.topic)).columns,
            *window.columns,
            *(pa.array(time) for time in (totals.up, totals.down, totals.planned)),
            pa.array(length - totals.up - totals.down - totals.planned),
            pa.array(totals.outages),
            pa.array(share, mask=weight == 0),
        )
        yield from pa.table(columns, FOUND).to_batches()


def _versions(brokers: Brokers, held: pa.Table) -> tuple[sweep.Versions, pa.Table]:
    """As numbers, and the topics by number."""
    rows, topics = numbered(held, *TOPIC)
    numbers = (held[name].to_numpy().astype(np.int64) for name in ("write_queues", "from_ms", "to_ms"))
    return sweep.Versions(rows, brokers.of_rows(held), *numbers), topics


def _keys(names: pa.Table) -> Iterator[tuple[bytes, ...]]:
    """Each row as bytes, since not all that calls itself text is."""
    return zip(*(column.cast(pa.binary()).to_pylist() for column in names.columns), strict=True)
