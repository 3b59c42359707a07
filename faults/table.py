"""All rows, in the order in which they run."""

from typing import Any

from faults.row import Row
from faults.rows import stores, workers

ROWS: tuple[Row[Any], ...] = (*workers.ROWS, *stores.ROWS)
