"""How connections to the store are made."""

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import uvloop
from redis.exceptions import ConnectionError, TimeoutError

import mqpipeline.job_queue
import registry.store.connect as connect_module
from mqnamesrv.store import EmbeddedStore
from registry.store.connect import REPLY_TIMEOUT_S, connect, connect_async, connect_follower, connect_queue
from registry.store.pipeline import execute
from testbed.redis_servers import HOST, Server, free_ports, running

GIVEN_UP_MS = REPLY_TIMEOUT_S * 1000


def option(connection: socket.socket) -> int:
    return connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)


async def _of(make: Callable[[str], Any], url: str) -> int:
    async with make(url) as store:
        connection = await store.connection_pool.get_connection()
        found = option(connection._writer.get_extra_info("socket"))
        await store.connection_pool.release(connection)
        return found


@pytest.mark.parametrize("make", [connect, connect_queue, connect_async, connect_follower])
def test_what_was_given_up_is_not_delivered_later(make: Callable[[str], Any], tmp_path: Path) -> None:
    """The kernel, too, gives up what is not acknowledged in time."""
    [port] = free_ports(1)
    url = f"redis://{HOST}:{port}"
    with running(Server(tmp_path, port, {"port": port})):
        if make in (connect_async, connect_follower):
            assert asyncio.run(_of(make, url)) == GIVEN_UP_MS
        else:
            with make(url) as store:
                assert option(store.connection_pool.get_connection()._sock) == GIVEN_UP_MS


@pytest.mark.parametrize("make", [connect_async, connect_follower])
def test_a_connection_that_is_reset_at_once_is_an_outage(make: Callable[[str], Any], tmp_path: Path) -> None:
    """Whatever the loop's transport says of it; other faults are none."""
    [port] = free_ports(1)

    async def reset(connection: Any) -> None:
        connection._writer.transport.abort()
        await asyncio.sleep(0.01)

    def faulty(_: object) -> None:
        raise RuntimeError("a fault")

    async def request() -> None:
        async with make(f"redis://{HOST}:{port}") as client:
            pool = client.connection_pool
            connection = await pool.get_connection()
            await reset(connection)
            with pytest.raises(ConnectionError):
                await connection.send_command("PING")
            other = pool.make_connection()
            await other.connect()
            other._writer.writelines = faulty
            with pytest.raises(RuntimeError, match="a fault"):
                await other.send_command("PING")
            await other.disconnect()

            class Reset(pool.connection_class):  # type: ignore[misc,name-defined]
                async def _connect(self) -> None:
                    await super()._connect()
                    await reset(self)

            pool.connection_class = Reset
            with pytest.raises(ConnectionError):
                await client.ping()

    with running(Server(tmp_path, port, {"port": port})):
        uvloop.run(request())


def test_a_server_that_accepts_and_is_silent_is_tried_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request is refused in the time of a reply: redis-py connects twice, for as long each time."""
    monkeypatch.setattr(connect_module, "REPLY_TIMEOUT_S", 0.2)
    accepted = []

    async def request() -> None:
        path = str(tmp_path / "silent.sock")
        silent = await asyncio.start_unix_server(lambda *streams: accepted.append(streams), path)
        async with silent, connect_async(f"unix://{path}") as store:
            with pytest.raises(TimeoutError, match="connecting"):
                await store.ping()
            assert not store.connection_pool._available_connections[0].is_connected
            for _, writer in accepted:
                writer.close()  # from Python 3.12 on the server waits for its connections to end

    asyncio.run(request())
    assert len(accepted) == 1


class Interrupted(float):
    """A number whose `repr` raises, as any does where a signal's handler raises in it."""

    def __repr__(self) -> str:
        raise InterruptedError


@pytest.mark.parametrize("make", [connect, connect_queue, mqpipeline.job_queue.connect_queue])
def test_a_signal_while_a_number_is_packed_is_an_error(make: Callable[[str], Any]) -> None:
    """It was a SIGSEGV: hiredis takes what `repr` returned for text."""
    connection = make("redis://127.0.0.1:1").connection_pool.make_connection()
    assert b"".join(connection.pack_command("SET x", 1, 0.5, b"b")).count(b"\r\n") == 11
    with pytest.raises(InterruptedError):
        connection.pack_command("SET", "x", Interrupted())


@pytest.mark.parametrize("more", ["", "?protocol=2", "?protocol=3", "?legacy_responses=false"])
def test_replies_have_the_same_shapes_whatever_the_url_says(more: str, store: EmbeddedStore) -> None:
    commands = ("XADD", "s", "1-1", "a", "b"), ("XREAD", "STREAMS", "s", "0"), ("HGETALL", "none")
    replies = ["1-1", [["s", [("1-1", {"a": "b"})]]], {}]

    async def follow() -> list[Any]:
        async with connect_follower(store.url + more) as client:
            return await execute(client, commands)

    assert asyncio.run(follow()) == replies
    with connect(store.url + more) as client:
        assert [client.execute_command(*command) for command in commands[1:]] == replies[1:]
