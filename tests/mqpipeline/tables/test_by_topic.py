"""Rows cut up by the buckets of their topics."""

import random

import pyarrow as pa
import pytest

from mqpipeline.schemas import ROUTE_BUCKETS, route_bucket
from mqpipeline.tables.by_topic import cut_up

SCHEMA = pa.schema([("what", pa.string()), ("topics", pa.list_(pa.string())), ("bucket", pa.int32())])
Row = tuple[str | None, list[str | None] | None]
MANY: list[str | None] = [f"T{i}" for i in range(500)]
CASES: dict[str, list[Row]] = {
    "none": [],
    "no topics": [("a", []), ("b", None), ("c", [None])],
    "one": [("a", ["T"])],
    "any text": [(None, ["T", "", "%RETRY%ü", "\U0001f600", "\0", "T" * 127])],
    "twice": [("a", ["T", "T"]), ("a", ["T"])],
    "many": [("a", MANY), ("b", []), ("c", [*MANY[:7], None]), ("d", MANY)],
}


@pytest.mark.parametrize("name", CASES)
def test_nothing_is_lost_or_misplaced(name: str) -> None:
    rows = CASES[name]
    random.Random(1).shuffle(rows)
    reported, listed = [row[0] for row in rows], pa.array([row[1] for row in rows], pa.list_(pa.string()))
    batch = pa.RecordBatch.from_arrays([pa.array(reported, pa.string()), listed], ["what", "topics"])
    found = [row for made in cut_up(SCHEMA, [batch, batch.slice(0, 0)]) for row in made.to_pylist()]
    assert all(row["topics"] for row in found)
    assert all(route_bucket(topic.encode()) == row["bucket"] for row in found for topic in row["topics"])
    pairs = sorted((str(row["what"]), topic) for row in found for topic in row["topics"])
    assert pairs == sorted(
        (str(what), topic) for what, topics in rows for topic in topics or [] if topic is not None
    )
    assert len(found) <= ROUTE_BUCKETS * len(rows)


def test_a_part_of_a_batch() -> None:
    """Arrow's slices share their lists with the whole."""
    whole = pa.RecordBatch.from_pydict({"what": ["a", "b", "c"], "topics": [["T1"], ["T2", "T3"], ["T4"]]})
    found = [row for made in cut_up(SCHEMA, [whole.slice(1, 1)]) for row in made.to_pylist()]
    assert {(row["what"], topic) for row in found for topic in row["topics"]} == {("b", "T2"), ("b", "T3")}
