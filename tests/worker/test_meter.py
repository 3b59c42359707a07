"""The meter of a worker: how often it looks at the loop."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from tests.worker.scene import asynchronous
from worker import meter
from worker.transport.transports import Answered

READ = (0, 0, 100, 100, 300, 300)
"""Bytes that peers have sent, at one look after the other."""


@asynchronous
async def test_it_looks_seldom_while_no_peer_sends_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    looks, pauses, late = iter(READ), list[float](), list[float]()

    class Connections:
        @property
        def traffic(self) -> Answered:
            return Answered(next(looks))

    async def pause(every_s: float) -> float:
        pauses.append(every_s)
        if len(pauses) == len(READ):
            raise asyncio.CancelledError
        return every_s / 100

    monkeypatch.setattr(meter, "pause", pause)
    counters: Any = SimpleNamespace(loop_lag=SimpleNamespace(observe=late.append))
    metered: Any = SimpleNamespace(counters=counters)
    connections: Any = Connections()
    tls: Any = None
    with pytest.raises(asyncio.CancelledError):
        await meter.Meter("default", metered, connections, tls).run()
    seldom, often = meter.REST_EVERY_S, meter.LOOK_EVERY_S
    assert pauses == [seldom, seldom, often, seldom, often, seldom]
    assert late == [every_s / 100 for every_s in pauses[:-1]]
