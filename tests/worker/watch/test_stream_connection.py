"""What the log says of a stream that cannot be read."""

import asyncio
from contextlib import suppress

import pytest
import redis.asyncio

from tests.logged import logged
from worker.watch.stream_connection import StreamConnection


class Silent(StreamConnection):
    """A stream that times out, once."""

    failed = False

    async def _catch_up(self, store: redis.asyncio.Redis) -> None:
        if not self.failed:
            self.failed = True
            raise TimeoutError

    async def _read(self, store: redis.asyncio.Redis) -> object:
        return await asyncio.Event().wait()

    def _broken(self) -> None:
        pass


def test_a_timeout_without_a_text_has_a_cause(caplog: pytest.LogCaptureFixture) -> None:
    async def follow() -> None:
        stream = Silent(redis.asyncio.Redis)
        task = asyncio.create_task(stream.run())
        assert await stream.following(60)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    asyncio.run(follow())
    assert logged(caplog) == [
        "the event stream cannot be followed: TimeoutError; retries within 0.25 s",
        "the event stream is followed again",
    ]
