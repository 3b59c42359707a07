"""All rows, in the order in which they run."""

from typing import Any

from faults.row import Row
from faults.rows import (
    balancer,
    brokers,
    certificates,
    clocks,
    enforced,
    networks,
    stores,
    topologies,
    workers,
)

ROWS: tuple[Row[Any], ...] = (
    *workers.ROWS,
    *stores.ROWS,
    *networks.ROWS,
    *balancer.ROWS,
    *brokers.ROWS,
    *clocks.ROWS,
    *certificates.ROWS,
    *topologies.ROWS,
    *enforced.ROWS,
)
