"""Connections to the current master, looked up at each connect; for redis-py's Sentinel pools.

redis-py's own connections look the master up only when the pool connects them: one that breaks under a command is
connected again, by the command's retry, to the former master.
"""

from typing import Any

import redis
import redis.asyncio
from redis.asyncio.sentinel import MasterNotFoundError as AsyncMasterNotFoundError
from redis.asyncio.sentinel import SentinelManagedConnection as AsyncManaged
from redis.exceptions import MovedError
from redis.sentinel import MasterNotFoundError
from redis.sentinel import SentinelManagedConnection as Managed


def _unknown_master(connection: Managed | AsyncManaged) -> redis.ConnectionError:
    """Return an error in place of redis-py's, whose text shows every setting of every Sentinel."""
    return redis.ConnectionError(
        f"no Sentinel or server knows the master of {connection.connection_pool.service_name}"
    )


class MasterConnection(Managed):
    """A connection that breaks when the slot has moved (MOVED), so that the retry goes to its new master."""

    def connect(self) -> None:
        redis.Connection.connect(self)  # type: ignore[no-untyped-call]  # looks the master up below

    def connect_check_health(self, *args: Any, **options: Any) -> None:
        if not self._sock:
            try:
                self.host, self.port = self.connection_pool.get_master_address()
            except MasterNotFoundError:
                raise _unknown_master(self) from None
        super().connect_check_health(*args, **options)

    def read_response(self, *args: Any, **options: Any) -> Any:
        try:
            return super().read_response(*args, **options)
        except MovedError as error:
            self.disconnect()  # type: ignore[no-untyped-call]
            raise redis.ConnectionError(f"the slot has another master: {error}") from error


class MasterSSLConnection(MasterConnection, redis.SSLConnection):
    """Over TLS."""


class AsyncMasterConnection(AsyncManaged):
    """The same for an event loop."""

    async def connect(self) -> None:
        await redis.asyncio.Connection.connect(self)  # type: ignore[no-untyped-call]

    async def connect_check_health(self, *args: Any, **options: Any) -> None:
        if not self.is_connected:
            try:
                self.host, self.port = await self.connection_pool.get_master_address()
            except AsyncMasterNotFoundError:
                raise _unknown_master(self) from None
        await super().connect_check_health(*args, **options)

    async def read_response(self, *args: Any, **options: Any) -> Any:
        try:
            return await super().read_response(*args, **options)
        except MovedError as error:
            await self.disconnect()
            raise redis.ConnectionError(f"the slot has another master: {error}") from error


class AsyncMasterSSLConnection(AsyncMasterConnection, redis.asyncio.SSLConnection):
    """Over TLS."""
