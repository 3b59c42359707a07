"""Rows of the fault table as tests: with fewer brokers and lookups, and without Java."""

from pathlib import Path

from faults.table import ROWS
from faults.trial import tried

BROKERS = 20
CONNECTIONS = 16
"""Each topic is looked up more often than in the table all the same: fewer brokers have fewer topics."""
TIMEOUT_S = 180


def broken(name: str, folder: Path) -> tuple[str, ...]:
    """Return the promises that were broken in a run of that row."""
    (row,) = (row for row in ROWS if row.name == name)
    return tried(row, folder, brokers=BROKERS, java=False, connections=CONNECTIONS).broken
