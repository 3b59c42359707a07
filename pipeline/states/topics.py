"""A topic's states, of its pairs: one with each broker that a queue datum of it is stored for."""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.states.brokers import NAME
from pipeline.states.combined import PLANNED, UNKNOWN, UP, combined, within
from pipeline.states.steady import thinned
from pipeline.windows import TOLD, Window, cells, frame

TOPIC = ("namespace", "topic")
PERM_WRITE = 2


def pair_states(route_versions: DataFrame, writable: DataFrame, from_ms: int, to_ms: int) -> DataFrame:
    """The states of each pair in [from_ms, to_ms) while it is in force: `namespace`, `topic`, `broker`,
    `write_queues`, `state`, `from_ms`, `to_ms`; one row or more for each version, equal ones side by side.

    PLANNED without permission to write, unless a slave that acts for its master is why; else as its broker in
    `writable` (`writable_states`)."""
    pairs = within(route_versions, from_ms, to_ms).select(
        *TOPIC,
        "broker",
        "write_queues",
        "from_ms",
        "to_ms",
        F.expr(f"perm & {PERM_WRITE} = 0 and not from_cause <=> 'acting'").alias("closed"),
    )
    there = within(writable, from_ms, to_ms).select(
        *(F.col(name).alias(f"of_{name}") for name in NAME),
        "state",
        F.expr("from_ms as begin"),
        F.expr("to_ms as end"),
    )
    meets = F.expr(
        "not closed and namespace = of_namespace and broker = of_broker and begin < to_ms and from_ms < end"
    )
    return pairs.join(F.broadcast(there), meets, "left").select(
        *TOPIC,
        "broker",
        "write_queues",
        F.expr(f"if(closed, '{PLANNED}', coalesce(state, '{UNKNOWN}'))").alias("state"),
        F.greatest("from_ms", "begin").alias("from_ms"),
        F.least("to_ms", "end").alias("to_ms"),
    )


def topic_states(pairs: DataFrame, from_ms: int, to_ms: int) -> DataFrame:
    """The states of each topic in [from_ms, to_ms), of its pairs' there. One that serves without write queues counts as
    PLANNED."""
    serving = F.expr(f"if(state = '{UP}' and write_queues <= 0, '{PLANNED}', state) as state")
    pieces = pairs.select(*TOPIC, serving, "from_ms", "to_ms")
    return pieces.transform(thinned, TOPIC, from_ms, to_ms).transform(combined, TOPIC)


def weighted_time_in(pairs: DataFrame, of: Sequence[Window]) -> DataFrame:
    """How many write queues of each topic were in each state for how long: `namespace`, `topic`, `window`, `from_ms`,
    `to_ms`, and in queue-milliseconds `up`, `down`, `planned`.

    Each piece is summed into the cell of time it lies in, and the cells into the windows that hold them."""
    cut = pairs.join(frame(pairs.sparkSession, cells(of)), F.expr("from_ms < end and begin < to_ms"))
    lasting = F.expr("write_queues * (least(to_ms, end) - greatest(from_ms, begin))")
    by_cell = cut.groupBy(*TOPIC, "begin", "end").agg(
        *(F.sum(F.when(F.col("state") == state, lasting).otherwise(0)).alias(state) for state in TOLD)
    )
    whole = frame(pairs.sparkSession, of).select("window", F.expr("begin as from_ms"), F.expr("end as to_ms"))
    of_window = by_cell.join(whole, F.expr("from_ms <= begin and end <= to_ms"))
    return of_window.groupBy(*TOPIC, "window", "from_ms", "to_ms").agg(
        *(F.sum(state).alias(state.lower()) for state in TOLD)
    )
