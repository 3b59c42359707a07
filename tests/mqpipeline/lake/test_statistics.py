"""What the log says of a file: every row of it is within."""

import json
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from mqpipeline.lake.statistics import Statistics

LARGE = st.integers(-(1 << 63), (1 << 63) - 1)
ROWS = st.lists(st.tuples(st.none() | LARGE, st.none() | st.text()), max_size=20)
SCHEMA = pa.schema([("number", pa.int64()), ("text", pa.utf8())])


@given(st.lists(ROWS, max_size=4))
def test_every_row_passes_its_files_bounds(batches: list[list[tuple[int | None, str | None]]]) -> None:
    statistics = Statistics(SCHEMA.names)
    for rows in batches:
        listed = [dict(zip(SCHEMA.names, row, strict=True)) for row in rows]
        statistics.add(pa.RecordBatch.from_pylist(listed, SCHEMA))
    said: dict[str, Any] = json.loads(statistics.json())
    all_rows = [row for rows in batches for row in rows]
    assert said["numRecords"] == statistics.rows == len(all_rows)
    for at, name in enumerate(SCHEMA.names):
        values = [row[at] for row in all_rows if row[at] is not None]
        assert said["nullCount"][name] == len(all_rows) - len(values)
        assert (name in said["minValues"]) == (name in said["maxValues"]) == bool(values)
        for value in values:
            # by code points, as UTF-8 sorts too
            assert said["minValues"][name] <= value <= said["maxValues"][name]
