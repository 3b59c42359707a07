"""A landed table as release 0.1 wrote it: folders of batches, and positions in `_progress.json`."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.pandas.types import to_arrow_schema

from mqpipeline.schemas import Table

Row = dict[str, Any]


def write_folder(
    root: Path, table: Table, day: str, first: int, last: int, rows: Iterable[Row], name: str
) -> Path:
    """Files of a day; one of several batches has `_SUCCESS`, as Spark writes it."""
    folder = root / table.name / f"day={day}" / f"batches={first:012d}-{last:012d}"
    folder.mkdir(parents=True, exist_ok=True)
    schema = to_arrow_schema(table.schema, timezone="UTC")
    listed = pa.Table.from_pylist([{**dict.fromkeys(schema.names), **row} for row in rows], schema)
    pq.write_table(listed, folder / name, compression="zstd", store_schema=False)
    if first != last:
        (folder / "_SUCCESS").touch()
    return folder


def write_positions(root: Path, table: Table, batch: int, **streams: Row) -> None:
    """`<root>/<table>/_progress.json`, of streams by namespace."""
    named = {
        f"ns:{{{namespace}}}:{table.name}": {"namespace": namespace, **position}
        for namespace, position in streams.items()
    }
    (root / table.name).mkdir(parents=True, exist_ok=True)
    (root / table.name / "_progress.json").write_text(json.dumps({"batch": batch, "streams": named}))
