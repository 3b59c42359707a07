"""What tasks say in a few lines of text each, of several frames in one job of Spark: to plan and schedule a job takes
longer than a few rows do."""

from collections.abc import Iterator, Mapping
from functools import reduce
from typing import Any, TypeVar

import msgspec
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

K = TypeVar("K", str, int)


def collected(lines: Mapping[K, DataFrame]) -> Iterator[tuple[K, str]]:
    """Yield the `json` of each row of the frames, with the key of its frame; those of a frame in no order."""
    if not lines:
        return
    named = [frame.select(F.lit(key).alias("key"), "json") for key, frame in lines.items()]
    for row in reduce(DataFrame.unionAll, named).collect():
        yield row["key"], row["json"]


def rows(frames: Mapping[str, DataFrame]) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of each frame by the names of their columns, in no order; structs and maps are dicts."""
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in frames}
    for name, line in collected({name: _as_lines(frame) for name, frame in frames.items()}):
        found[name].append(msgspec.json.decode(line))
    return found


def _as_lines(frame: DataFrame) -> DataFrame:
    """Return the rows as JSON, which would make text of NaN; no table has such a number."""
    return frame.select(F.to_json(F.struct(*frame.columns), {"ignoreNullFields": "false"}).alias("json"))
