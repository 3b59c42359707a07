"""The event stream as tables and reports: PySpark, from a laptop to a cluster.

Imports nothing of the name server. What the two share: the event stream (docs/events.md), the keys of the served
reports (mqpipeline/serving/names.py) and two job queues (mqpipeline/job_queue.py).
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mqpipeline.analysis import Lake

__all__ = ["open"]


def open(warehouse: str) -> "Lake":  # as files are opened
    """Return the tables of a warehouse, a folder or a URL, as the newest run left them (mqpipeline/analysis.py)."""
    from mqpipeline.analysis import open_lake

    return open_lake(warehouse)
