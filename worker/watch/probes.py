"""Probes of brokers' addresses: whether connections are accepted there."""

import asyncio
from enum import StrEnum
from typing import Final

from worker import outgoing
from worker.outgoing import Endpoint

__all__ = ["Probe", "probe", "probe_twice"]

SECOND_PROBE_S: Final = 0.25
"""A dying process may still have its port when its connections are gone."""


class Probe(StrEnum):
    """What a probe of a broker's address saw, as metrics have it."""

    REACHABLE = "reachable"
    REFUSED = "refused"
    SILENT = "silent"


async def probe(to: Endpoint, timeout_s: float) -> Probe:
    """Return whether connections are accepted there."""
    try:
        async with asyncio.timeout(timeout_s):
            writer = await outgoing.open_connection(to)
    except TimeoutError:
        return Probe.SILENT
    except OSError:
        return Probe.REFUSED
    writer.close()
    return Probe.REACHABLE


async def probe_twice(to: Endpoint, timeout_s: float) -> Probe:
    """Return the same, but of an address that accepts what it does a moment later."""
    if (first := await probe(to, timeout_s)) is not Probe.REACHABLE:
        return first
    await asyncio.sleep(SECOND_PROBE_S)
    return await probe(to, timeout_s)
