"""Waiting for a change that a redis-namesrv sends, in place of a time."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from mqns.changes.stream import ChangeStream
from mqns.cli.exit_codes import message_of
from mqns.errors import ClientError

__all__ = ["Pause", "until_changed"]

QUIET_S = 30.0
"""How long no change is waited for: what is not recorded, such as a server that is away, has to be seen, too."""
SEEN_S = 1.0
"""By when all workers show a change: the one that is asked may be behind the one that sends it."""
STEP_S = 0.5

Pause = Callable[[], Awaitable[None]]


class _Changes:
    """What has been sent, and until when to wait for more."""

    def __init__(self, stream: ChangeStream, otherwise: Pause) -> None:
        self._stream = stream
        self._otherwise = otherwise
        self._changed = asyncio.Event()
        self._look_again = False

    async def follow(self) -> None:
        async for _ in self._stream.messages():
            self._changed.set()

    async def pause(self) -> None:
        if not self._stream.connected:
            await _first(self._otherwise(), self._changed.wait())
            self._changed.clear()
            return
        clock = asyncio.get_running_loop().time
        end = clock() + (SEEN_S if self._look_again else QUIET_S)
        while self._stream.connected and not self._changed.is_set() and clock() < end:
            with suppress(TimeoutError):
                async with asyncio.timeout(min(STEP_S, end - clock())):
                    await self._changed.wait()
        self._look_again = self._changed.is_set()
        self._changed.clear()


async def _first(*these: Awaitable[object]) -> None:
    """Wait for one of these, and cancel the others."""
    tasks = [asyncio.ensure_future(one) for one in these]
    _, left = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in left:
        task.cancel()


@asynccontextmanager
async def until_changed(
    stream: ChangeStream, otherwise: Pause, report: Callable[[str], None]
) -> AsyncIterator[Pause]:
    """Yield what waits until something has changed since it was called last, or for half a minute; a second later it
    is time to look once more. `otherwise` is awaited while no changes are sent, and for good if the server refuses,
    which is reported."""
    changes = _Changes(stream, otherwise)

    async def follow() -> None:
        try:
            await changes.follow()
        except ClientError as error:
            report(f"{message_of(error)}; asked again and again instead")

    following = asyncio.create_task(follow())
    try:
        yield changes.pause
    finally:
        following.cancel()
