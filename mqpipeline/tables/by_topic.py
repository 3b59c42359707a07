"""Repartitions rows that name many topics each by the buckets of these topics."""

from collections.abc import Iterable, Iterator
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import IntegerType, StructType

from mqpipeline.partitions import partitions_of
from mqpipeline.schemas import ROUTE_BUCKETS, route_bucket

TOPICS, BUCKET = "topics", "bucket"


def by_bucket(rows: DataFrame) -> DataFrame:
    """The rows, whose last column is `topics array<string>`, with `bucket int` behind it: a row for each bucket that
    topics of it are in, with those alone. All of a bucket are in one partition, so that what a row says besides is
    moved once for many topics."""
    spread = StructType([*rows.schema.fields]).add(BUCKET, IntegerType())
    cut = partial(cut_up, to_arrow_schema(spread, timezone="UTC"))
    return rows.mapInArrow(cut, spread).repartitionById(min(partitions_of(rows), ROUTE_BUCKETS), BUCKET)


def cut_up(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Batches of rows, with `topics` among their columns -> batches of `schema`, which ends with these and the bucket.

    A row without topics is in none."""
    for batch in batches:
        listed = batch.column(TOPICS)
        rows, topics = pc.list_parent_indices(listed), listed.flatten()
        if topics.null_count:
            rows, topics = rows.filter(topics.is_valid()), topics.filter(topics.is_valid())
        if not len(topics):
            continue
        distinct = topics.cast(pa.binary()).dictionary_encode()
        buckets = np.array([route_bucket(topic) for topic in distinct.dictionary.to_pylist()])
        places = rows.to_numpy() * ROUTE_BUCKETS + buckets[distinct.indices.to_numpy()]
        order = np.argsort(places, kind="stable")
        places = places[order]
        begins = np.flatnonzero(np.diff(places, prepend=-1))
        offsets = pa.array(np.append(begins, len(places)), pa.int32())
        kind = schema.field(TOPICS).type
        lists = pa.ListArray.from_arrays(offsets, topics.take(pa.array(order)), type=kind)
        others = batch.drop_columns([TOPICS]).take(pa.array(places[begins] // ROUTE_BUCKETS))
        bucket = pa.array(places[begins] % ROUTE_BUCKETS, pa.int32())
        yield pa.RecordBatch.from_arrays([*others.columns, lists, bucket], schema=schema)
