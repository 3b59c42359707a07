"""Readiness of one worker: what of its own it has not done for too long."""

from typing import Final

from registry.clock import LATE_MS
from worker.watch.stream_connection import StreamConnection
from worker.watch.ticker import Ticker

LATE_S: Final = LATE_MS / 1000
"""As `/readyz` has it of all workers together (registry.members)."""


def what_is_late(follower: StreamConnection, ticker: Ticker) -> str:
    """Return what is late and by how much, "" if nothing is."""
    unread_s, unwatched_s = follower.silent_for_s(), ticker.silent_for_s()
    late = []
    if unread_s > LATE_S:
        late.append(f"the event stream was not read for {unread_s:.1f} s")
    if unwatched_s > LATE_S:
        late.append(f"leases were not watched for {unwatched_s:.1f} s")
    return " and ".join(late)
