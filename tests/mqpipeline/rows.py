"""Tables of literal rows: what a test writes down and what it reads back."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.conversion import LocalDataToArrowConversion
from pyspark.sql.types import StructType

from mqpipeline.schemas import ROUTE_VERSIONS, Table
from mqpipeline.tables.route_versions import route_versions

Literal = Mapping[str, Any]


def frame(spark: SparkSession, table: Table, rows: Iterable[Literal]) -> DataFrame:
    """The rows as the table; a column that a row leaves out is null, one that the table lacks an error."""
    names = table.schema.fieldNames()
    listed: list[tuple[Any, ...]] = []
    for row in rows:
        assert set(row) <= set(names), f"{table.name} has no {sorted(set(row) - set(names))}"
        listed.append(tuple(row.get(name) for name in names))
    return as_frame(spark, listed, table.schema)


def as_frame(spark: SparkSession, rows: Sequence[Any], schema: StructType | str) -> DataFrame:
    """The rows as a part of the plan: from a list Spark makes a task in Python that runs whenever they are read."""
    of = StructType.fromDDL(schema) if isinstance(schema, str) else schema
    assert isinstance(of, StructType)
    if not rows:
        return spark.createDataFrame([], of)
    return spark.createDataFrame(LocalDataToArrowConversion.convert(list(rows), of, False), of)


def version_rows(*inputs: DataFrame) -> DataFrame:
    """The rows that `route_versions` makes of these."""
    return route_versions(*inputs).frame(ROUTE_VERSIONS)


def rows_of(found: DataFrame, *columns: str) -> set[tuple[Any, ...]]:
    """The rows of these columns; fails on a row that is there twice."""
    return distinct(found.select(*columns).collect())


def distinct(rows: Iterable[Sequence[Any]]) -> set[tuple[Any, ...]]:
    """The rows, of which no two may be equal."""
    listed = [_plain(row) for row in rows]
    found = set(listed)
    assert len(found) == len(listed), "rows are there twice"
    return found


def _plain(value: Any) -> Any:
    """Structs, arrays and maps as tuples, so that rows can be compared."""
    if isinstance(value, dict):
        return tuple(sorted((key, _plain(one)) for key, one in value.items()))
    if isinstance(value, (tuple, list)):
        return tuple(_plain(one) for one in value)
    return value
