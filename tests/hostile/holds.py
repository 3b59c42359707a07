"""Measures how long one registration blocks the event loop of its worker, for valid and malformed bodies.

`python -m tests.hostile.holds` prints for each body its size, the time from the request to the reply, and the longest
time between two iterations of the loop meanwhile: what another connection may have to wait. The store is a
Redis of its own. A hold is also given as processor time of the loop's thread, which other work on the machine does not
lengthen.
"""

import asyncio
import tempfile
import time
from pathlib import Path

import uvloop
from msgspec import Struct

from mqnamesrv.store import EmbeddedStore, programs
from registry.drivers import AsyncDriver
from registry.keys import Keys
from registry.plans import Origin
from registry.registration.register import Registration, register
from registry.store.connect import connect, connect_async
from tests.hostile.bodies import Case, cases

SLOW_SCRIPT_US = 5000


class Held(Struct, frozen=True):
    """The measured times in ms."""

    outcome: str
    took: float
    hold: float
    hold_cpu: float


async def measured(case: Case, body: bytes, url: str) -> Held:
    """Register on an empty store while another task measures each iteration of the loop."""
    driver = AsyncDriver(connect_async(url))

    async def outcome_of(body: bytes) -> str:
        registration = Registration(
            "c1", "b1", "127.0.0.1:10911", 0, version=case.version, compressed=case.compressed, body=body
        )
        try:
            await driver.run(register(Keys(), registration, Origin("op", "wire:127.0.0.1:1")))
        except Exception as error:  # the outcome is printed beside its time
            return f"{type(error).__name__}: {error}"[:60]
        return "registered"

    await outcome_of(b"" if case.registered is None else case.registered())
    longest = longest_cpu = 0.0
    working = True

    async def iterate() -> None:
        nonlocal longest, longest_cpu
        wall, cpu = time.monotonic(), time.thread_time()
        while working:
            await asyncio.sleep(0)
            now, now_cpu = time.monotonic(), time.thread_time()
            longest, longest_cpu = max(longest, now - wall), max(longest_cpu, now_cpu - cpu)
            wall, cpu = now, now_cpu

    if case.registered is None:
        with connect(url) as store:
            store.flushall()
    iterations = asyncio.create_task(iterate())
    await asyncio.sleep(0)
    began = time.monotonic()
    outcome = await outcome_of(body)
    took = time.monotonic() - began
    await asyncio.sleep(0)
    working = False
    await iterations
    await driver.close()
    return Held(outcome, took * 1000, longest * 1000, longest_cpu * 1000)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = EmbeddedStore(Path(folder), next(iter(programs().values())), keep=False)
        store.start()
        try:
            print(
                f"{'body':42} {'bytes':>10} {'took ms':>9} {'hold ms':>8} {'cpu ms':>8}  outcome; scripts over 5 ms"
            )
            for case in cases():
                body = case.body()
                with connect(store.url) as client:
                    client.flushall()
                    client.config_set("slowlog-log-slower-than", SLOW_SCRIPT_US)
                    client.slowlog_reset()
                    held = uvloop.run(measured(case, body, store.url))
                    slow = [
                        f"{entry['command'][:20]!r} {entry['duration'] / 1000:.1f}"
                        for entry in client.slowlog_get(20)
                        if b"FLUSHALL" not in bytes(entry["command"])
                    ]
                print(
                    f"{case.name:42} {len(body):>10} {held.took:>9.1f} {held.hold:>8.1f} {held.hold_cpu:>8.1f}"
                    f"  {held.outcome} {' '.join(slow)}",
                    flush=True,
                )
        finally:
            store.stop()


if __name__ == "__main__":
    main()
