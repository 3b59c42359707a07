"""What the log says of a file's rows, so that readers leave out files that have none they want."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc


class Statistics:
    """Statistics of rows that are added: how many there are, and of some columns least, greatest and nulls."""

    def __init__(self, columns: Sequence[str]) -> None:
        self._rows = 0
        self._nulls = dict.fromkeys(columns, 0)
        self._least: dict[str, Any] = {}
        self._most: dict[str, Any] = {}

    @property
    def rows(self) -> int:
        """How many there are."""
        return self._rows

    def add(self, rows: pa.RecordBatch | pa.Table) -> None:
        """Count these too."""
        self._rows += len(rows)
        for name in self._nulls:
            column = rows[name]
            self._nulls[name] += column.null_count
            bounds = pc.min_max(column)
            if bounds["min"].is_valid:
                least, most = bounds["min"].as_py(), bounds["max"].as_py()
                self._least[name] = min(self._least.get(name, least), least)
                self._most[name] = max(self._most.get(name, most), most)

    def agree(self, rows: int | None, least: Mapping[str, Any], most: Mapping[str, Any]) -> bool:
        """Return whether what a log says is so. It may lack something, and other writers shorten texts."""
        return (
            rows in (None, self._rows)
            and all(_is_least(least.get(name), value) for name, value in self._least.items())
            and all(_is_most(most.get(name), value) for name, value in self._most.items())
        )

    def json(self) -> str:
        """Return them as Delta's protocol has them (Per-file Statistics)."""
        of_file = {
            "numRecords": self._rows,
            "minValues": self._least,
            "maxValues": self._most,
            "nullCount": self._nulls,
        }
        return msgspec.json.encode(of_file).decode()


def _is_least(said: Any, value: Any) -> bool:
    return said in (None, value) or (isinstance(said, str) and said <= value)


def _is_most(said: Any, value: Any) -> bool:
    return said in (None, value) or (isinstance(said, str) and said >= value)
