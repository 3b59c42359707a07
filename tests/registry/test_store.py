"""How connections to the store are made."""

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from registry.store.connect import REPLY_TIMEOUT_S, connect, connect_async, connect_follower, connect_queue
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
