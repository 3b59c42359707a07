"""Commands sent together over an asynchronous client, and their replies.

As redis-py's `Pipeline`, without what that does beside: a task for what is sent, a timer for each reply, and figures
that are read nowhere here took it twice as long."""

import asyncio
import builtins
from collections.abc import Sequence
from functools import partial
from typing import Any

import redis.asyncio
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ResponseError, TimeoutError

from registry.store.connect import REPLY_TIMEOUT_S

__all__ = ["execute", "read_stream"]

Commands = Sequence[tuple[Any, ...]]


async def execute(
    store: redis.asyncio.Redis, commands: Commands, within_s: float = REPLY_TIMEOUT_S
) -> list[Any]:
    """Return the replies as the client's methods return them; in place of a refused command's its ResponseError.

    The client's retry holds for all together. Raises RedisError and OSError where replies are missing; TimeoutError
    where they have not come after `within_s` seconds."""
    pool = store.connection_pool
    connection = await pool.get_connection()  # type: ignore[no-untyped-call]
    try:
        replies: list[Any] = await connection.retry.call_with_retry(
            partial(_replies, connection, commands, within_s), lambda _: connection.disconnect()
        )
    finally:
        await pool.release(connection)
    callbacks = store.response_callbacks
    for i, ((name, *_), reply) in enumerate(zip(commands, replies, strict=True)):
        if name in callbacks and not isinstance(reply, ResponseError):
            replies[i] = callbacks[name](reply)
    return replies


async def read_stream(
    store: redis.asyncio.Redis, key: str, after: str, count: int, block_ms: int | None, within_s: float
) -> list[tuple[str, dict[str, str]]]:
    """Return the entries of a stream behind this id, at most so many; with `block_ms` wait so long for the first.

    Raises as `execute`, and ResponseError."""
    waiting = () if block_ms is None else ("BLOCK", block_ms)
    command = ("XREAD", "COUNT", count, *waiting, "STREAMS", key, after)
    (reply,) = await execute(store, (command,), within_s)
    if isinstance(reply, ResponseError):
        raise reply
    return [entry for _, entries in reply or () for entry in entries]


async def _replies(connection: AbstractConnection, commands: Commands, within_s: float) -> list[Any]:
    replies: list[Any] = []
    try:
        async with asyncio.timeout(within_s):
            await connection.send_packed_command(connection.pack_commands(commands))
            for _ in commands:
                try:
                    replies.append(await connection.read_response())
                except ResponseError as error:
                    replies.append(error)
    except builtins.TimeoutError:
        await connection.disconnect(nowait=True)
        raise TimeoutError(f"no reply of the store within {within_s:g} s") from None
    return replies
