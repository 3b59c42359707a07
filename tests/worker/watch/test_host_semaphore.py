"""A semaphore that hosts share."""

import asyncio

import pytest

from tests.worker.scene import asynchronous
from worker.watch import host_semaphore
from worker.watch.host_semaphore import HostSemaphore


async def run_others() -> None:
    """Let all tasks run that can."""
    for _ in range(3):
        await asyncio.sleep(0)


class Callers:
    """Who asked for the semaphore, and in which order they got it."""

    def __init__(self, most: int) -> None:
        self.semaphore = HostSemaphore(most)
        self.acquired: list[str] = []
        self.refused: list[str] = []

    async def ask(self, host: str, key: str) -> "asyncio.Task[None]":
        task = asyncio.create_task(self._acquire(host, key))
        await run_others()
        return task

    async def release(self, host: str) -> None:
        self.semaphore.release(host)
        await run_others()

    async def _acquire(self, host: str, key: str) -> None:
        (self.acquired if await self.semaphore.acquire(host, key) else self.refused).append(key)


@asynchronous
async def test_the_next_is_of_the_host_that_holds_it_least() -> None:
    callers = Callers(2)
    for key in ("a1", "a2", "a3", "a4", "b1", "b2"):
        await callers.ask(key[0], key)
    assert callers.acquired == ["a1", "a2"]
    for host in ("a", "b", "a"):
        await callers.release(host)
    assert callers.acquired == ["a1", "a2", "b1", "a3", "b2"]


@asynchronous
async def test_who_is_asked_for_again_waits_once() -> None:
    callers = Callers(1)
    for key in ("a1", "a2", "a2", "a2"):
        await callers.ask("a", key)
    assert callers.refused == ["a2", "a2"]
    await callers.release("a")
    assert callers.acquired == ["a1", "a2"]


@asynchronous
async def test_of_a_host_only_so_many_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_semaphore, "WAITING_MOST", 2)
    callers = Callers(1)
    for key in ("a1", "a2", "a3", "a4", "b1"):
        await callers.ask(key[0], key)
    assert callers.refused == ["a4"]
    for host in ("a", "b", "a"):
        await callers.release(host)
    assert callers.acquired == ["a1", "b1", "a2", "a3"]


@asynchronous
async def test_who_is_cancelled_leaves_it_to_the_next() -> None:
    callers = Callers(1)
    await callers.ask("a", "a1")
    waiting = await callers.ask("a", "a2")
    acquiring = await callers.ask("a", "a3")
    await callers.ask("a", "a4")
    waiting.cancel()
    callers.semaphore.release("a")  # it is a3's, which is cancelled before it runs
    acquiring.cancel()
    await asyncio.wait((waiting, acquiring))
    await run_others()
    assert callers.acquired == ["a1", "a4"]
    await callers.release("a")
    assert await callers.semaphore.acquire("b", "b1")
