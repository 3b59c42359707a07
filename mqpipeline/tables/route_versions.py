"""Versions of routes: what is stored of a topic on a broker, from one change of it to the next.

Spark says of each row of an entry what holds for all topics in it, and brings it to the buckets of its topics. What
came of each topic is then found for all topics of a partition at once, as numbers in arrays.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema

from mqpipeline.codes import Codes, Numbers, coded, together
from mqpipeline.lake.writing import ArrowRows
from mqpipeline.partitions import table_of
from mqpipeline.schemas import ROUTE_VERSIONS, months
from mqpipeline.tables import checkpoints
from mqpipeline.tables.by_topic import BUCKET, TOPICS, by_bucket
from mqpipeline.tables.changes import TopicChanges, Truths, Versions, versions

STREAM = ("namespace", "inc")
BROKER = (*STREAM, "broker")
QUEUES = ("read_queues", "write_queues", "perm", "sys_flag")  # in the order of the stored text
ACTED = ("cause", "actor", "op")
ENDS = {"ms": "to_ms", "n": "to_n", "cause": "to_cause", "actor": "to_actor"}
"""Column of a row -> its name for the end of the version."""
EPOCH = "epoch"
NEVER = -1
INT_LIMIT = 1 << 31
AT_ONCE = 1 << 15
"""Rows made at a time."""


def route_versions(
    clean: DataFrame, carried: DataFrame | None = None, brokers: DataFrame | None = None
) -> ArrowRows:
    """ROUTE_VERSIONS, of clean events. With `carried` and `brokers`, the open rows of the run before of this table and
    of BROKER_VERSIONS, `clean` are the events since; the result then has the rows that are open now, and those that
    have ended since."""
    epochs = F.broadcast(_epochs(clean, brokers))
    rows = _dated(_rows(clean), epochs)
    if carried is not None:
        rows = rows.unionByName(_carried(carried))
    step = partial(_versions, to_arrow_schema(ROUTE_VERSIONS.stored_schema, timezone="UTC"))
    return ArrowRows(by_bucket(_limited(rows, epochs)), step)


def _versions(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What `by_bucket` leaves in a partition -> rows of the table, with the columns of its partitions."""
    held = table_of(batches)
    if held is None:
        return
    listed = held[TOPICS]
    (rows,) = held.drop_columns([TOPICS]).to_batches()
    topics = coded(pc.list_flatten(listed))
    texts = _as_kept(coded(pa.concat_arrays([rows["before"], rows["after"]])))
    changes = _topic_changes(rows, texts)
    row = np.repeat(np.arange(rows.num_rows), pc.list_value_length(listed).to_numpy())
    found_versions = versions(changes, topics.numbers, row)
    ends = {end: pa.concat_arrays([rows[name], rows[end]]) for name, end in ENDS.items()}
    end = np.where(found_versions.ended < 0, rows.num_rows + found_versions.last, found_versions.ended)
    order = _order(found_versions, rows, ends, end)
    numbers = dict(zip(QUEUES, _numbers(texts.values), strict=True))
    for i in range(0, len(order), AT_ONCE):
        some = order[i : i + AT_ONCE]
        topic, first, last = (pa.array(of[some]) for of in found_versions[:3])
        begun, ended = rows.take(first), {name: ends[name].take(pa.array(end[some])) for name in ends}
        data = pa.array(changes.after[found_versions.last[some]])
        columns = {
            **{name: rows[name].take(last) for name in (*BROKER, "epoch")},
            "topic": topics.values.take(topic),
            **{name: column.take(data) for name, column in numbers.items()},
            "from_id": _ids(begun["ms"], begun["n"]),
            "from_ms": begun["ms"],
            **{f"from_{name}": begun[name] for name in ACTED},
            **ended,
            "to_id": _ids(ended["to_ms"], ended["to_n"]),
            BUCKET: rows[BUCKET].take(last),
            "month": months(ended["to_ms"]),
        }
        yield pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)


def _topic_changes(rows: pa.RecordBatch, texts: Codes) -> TopicChanges:
    """Return the changes of rows; of `texts`, stored before and after, an empty one says that there was nothing."""
    before, after = np.split(texts.numbers, 2)
    return TopicChanges(
        broker=together(*(rows[name] for name in BROKER)),
        seq=rows["seq"].to_numpy(),
        place=rows["place"].to_numpy(),
        before=before,
        after=after,
        epoch=coded(rows["epoch"]).numbers,
        segment=rows["segment"].to_numpy(),
        holds=np.array([bool(text) for text in texts.values.to_pylist()])[after],
        is_checkpoint=_truths(rows["is_checkpoint"]),
        superseded=_truths(pc.equal(rows["to_cause"], EPOCH).fill_null(False)),
    )


def _order(
    found_versions: Versions, rows: pa.RecordBatch, ends: Mapping[str, pa.Array], end: Numbers
) -> Numbers:
    """Which versions to keep, all but those within one entry, in the order of the table's files."""
    from_ms, from_n = (rows[name].to_numpy()[found_versions.first] for name in ("ms", "n"))
    to_ms, to_n = (ends[name].fill_null(NEVER).to_numpy()[end] for name in ("to_ms", "to_n"))
    lasting = np.flatnonzero((to_ms != from_ms) | (to_n != from_n))
    month = to_ms.astype("datetime64[ms]").astype("datetime64[M]").astype(np.int64)
    bucket = rows[BUCKET].to_numpy()[found_versions.last]
    keys = (from_ms, found_versions.topic, month, bucket, to_ms == NEVER)
    return lasting[np.lexsort([key[lasting] for key in keys])]


def _as_kept(texts: Codes) -> Codes:
    """Return stored texts as their numbers are kept, so that what a run before has kept of one equals it."""
    kept = [
        ",".join("" if number is None else str(number) for number in _four(text)) if text else text
        for text in texts.values.to_pylist()
    ]
    again = coded(pa.array(kept, pa.utf8()))
    return Codes(again.numbers[texts.numbers], again.values)


def _numbers(texts: pa.Array) -> list[pa.Array]:
    """Return a column of stored texts for each of QUEUES, null where there is no such number."""
    read = [_four(text or "") for text in texts.to_pylist()]
    return [pa.array([row[i] for row in read], pa.int32()) for i in range(len(QUEUES))]


def _four(text: str) -> list[int | None]:
    """Return the numbers of a stored text, one for each of QUEUES."""
    parts = [*text.split(","), *[""] * len(QUEUES)]
    return [_number(part) for part in parts[: len(QUEUES)]]


def _number(text: str) -> int | None:
    try:
        number = int(text)
    except ValueError:
        return None
    return number if -INT_LIMIT <= number < INT_LIMIT else None


def _ids(ms: pa.Array, n: pa.Array) -> pa.Array:
    """Ids, null where there is no `n`."""
    return pa.StructArray.from_arrays([ms, n], names=["ms", "n"], mask=n.is_null())


def _truths(column: pa.Array) -> Truths:
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.bool_)


def _rows(clean: DataFrame) -> DataFrame:
    """A row for each of an entry; `epoch` where the entry names the broker."""
    is_checkpoint = checkpoints.is_topics_checkpoint()
    entries = clean.where((F.col("kind") == "topics_changed") | is_checkpoint).withColumn(
        "is_checkpoint", is_checkpoint
    )
    named = entries.withColumnRenamed("broker", "named").select(
        "*", F.posexplode("rows").alias("place", "row")
    )
    return named.select(
        *STREAM,
        "row.broker",
        "seq",
        "place",
        "row.before",
        "row.after",
        F.when(F.col("named") == F.col("row.broker"), F.col("epoch")).alias("epoch"),
        "segment",
        "is_checkpoint",
        *("id.ms", "id.n"),
        F.when(F.col("is_checkpoint"), "checkpoint").otherwise(F.col("cause")).alias("cause"),
        *("actor", "op"),
        *("span.first_seq", "span.until_ms", "span.until_cause"),
        "row.topics",
    )


def _carried(rows: DataFrame) -> DataFrame:
    """Open rows of the run before, as what was observed before all else."""
    nothing, none = F.lit(None).cast("string"), F.lit(0).cast("bigint")
    return rows.where(F.col("to_ms").isNull()).select(
        *BROKER,
        none.alias("seq"),
        F.lit(0).alias("place"),
        nothing.alias("before"),
        F.concat_ws(",", *(F.coalesce(F.col(name).cast("string"), F.lit("")) for name in QUEUES)).alias(
            "after"
        ),
        "epoch",
        none.alias("segment"),
        F.lit(False).alias("is_checkpoint"),
        *("from_id.ms", "from_id.n"),
        *(F.col(f"from_{name}").alias(name) for name in ACTED),
        none.alias("first_seq"),
        F.lit(None).cast("bigint").alias("until_ms"),
        nothing.alias("until_cause"),
        F.array("topic").alias("topics"),
    )


def _dated(rows: DataFrame, epochs: DataFrame) -> DataFrame:
    """With the `epoch` that the broker had, where an entry on several brokers does not say it."""
    asked = F.when(F.col("epoch").isNull(), F.col("broker"))
    held = epochs.select(
        *STREAM, F.col("broker").alias("asked"), F.col("epoch").alias("held"), "from_seq", "to_seq"
    )
    then = F.col("row.seq").between(F.col("held.from_seq"), F.col("held.to_seq"))
    same = [F.col(f"row.{name}") == F.col(f"held.{name}") for name in (*STREAM, "asked")]
    resolved = rows.withColumn("asked", asked).alias("row").join(held.alias("held"), [*same, then], "left")
    return resolved.select("row.*", "held.held").withColumn("epoch", F.coalesce("epoch", "held"))[
        [*rows.columns]
    ]


def _limited(rows: DataFrame, epochs: DataFrame) -> DataFrame:
    """With the columns of ENDS, how what a row reports ends if nothing changes it: with its epoch, or where history
    breaks off; all null if it does not."""
    ending = F.col("ending")
    in_time = ending["segment"] == F.col("segment")
    known = epochs.select(*BROKER, "epoch", "ending")
    ends = (
        F.when(in_time, ending["id"]["ms"]).otherwise(F.col("until_ms")),
        F.when(in_time, ending["id"]["n"]),
        F.when(in_time, EPOCH).otherwise(F.col("until_cause")),
        F.when(in_time, ending["actor"]),
    )
    changes = [name for name in rows.columns if name not in ("first_seq", "until_ms", "until_cause", TOPICS)]
    limits = (column.alias(name) for name, column in zip(ENDS.values(), ends, strict=True))
    return rows.join(known, [*BROKER, "epoch"], "left").select(*changes, *limits, TOPICS)


def _epochs(clean: DataFrame, brokers: DataFrame | None) -> DataFrame:
    """The epochs of each broker: `epoch`, held by entries from `from_seq` to `to_seq`, and `ending`: `id`, `segment`
    and `actor` of the first entry of the next one, null where there is none.

    One that was not seen to begin is taken to go back as far as history is whole."""
    changes = clean.where(F.col("kind").isin("broker_registered", "broker_removed", "checkpoint"))
    first = F.when(F.col("cause") == "first", F.col("seq")).otherwise(F.col("span.first_seq"))
    seen = changes.where(F.col("broker").isNotNull() & F.col("epoch").isNotNull()).select(
        *STREAM, "broker", "epoch", "seq", first.alias("from_seq"), "id", "segment", "actor"
    )
    if brokers is not None:
        none = F.lit(0).cast("bigint")
        no_actor = F.lit(None).cast("string").alias("actor")
        carried = brokers.where(F.col("to_ms").isNull() & F.col("epoch").isNotNull()).select(
            *STREAM,
            "broker",
            "epoch",
            none.alias("seq"),
            none.alias("from_seq"),
            F.col("from_id").alias("id"),
            none.alias("segment"),
            no_actor,
        )
        seen = seen.unionByName(carried)
    in_order = Window.partitionBy(*STREAM, "broker").orderBy("seq")
    another = ~F.col("epoch").eqNullSafe(F.lag("epoch").over(in_order))
    starts = seen.withColumn("another", another).where("another")
    return starts.select(
        *STREAM,
        "broker",
        "epoch",
        "from_seq",
        F.coalesce(F.lead("from_seq").over(in_order) - 1, F.lit(sys.maxsize)).alias("to_seq"),
        F.lead(F.struct("id", "segment", "actor")).over(in_order).alias("ending"),
    )
