"""How many partitions rows are put in, and what is in one."""

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from mqpipeline.partitions import enough_for, partitions_of, table_of


@pytest.mark.parametrize(("rows", "made"), [(0, 2), (20, 2), (21, 3), (100, 10)])
def test_as_many_as_there_is_to_hold_and_never_fewer_than_chosen(
    spark: SparkSession, rows: int, made: int
) -> None:
    assert partitions_of(spark.range(1)) == 2
    with enough_for(spark, rows, each=10):
        assert partitions_of(spark.range(1)) == made
    assert partitions_of(spark.range(1)) == 2


def test_the_choice_outlives_a_failure(spark: SparkSession) -> None:
    with pytest.raises(ZeroDivisionError), enough_for(spark, 100, each=10):
        raise ZeroDivisionError
    assert partitions_of(spark.range(1)) == 2


def test_all_rows_of_a_partition() -> None:
    some, none = pa.RecordBatch.from_pydict({"a": ["x", None]}), pa.RecordBatch.from_pydict({"a": ["y"]})[:0]
    rows = table_of([some, none, some])
    assert rows is not None
    assert rows["a"].to_pylist() == ["x", None, "x", None]
    assert rows["a"].num_chunks == 1
    assert table_of([none]) is None
    assert table_of([]) is None
