"""Connections to whoever is the master now, found anew at each connect; for redis-py's Sentinel pools.

redis-py's own ask who is the master only when the pool connects them: one that breaks under a command is connected
again, by the command's retry, to the server that was the master.
"""

from typing import Any

import redis
import redis.asyncio
from redis.asyncio.sentinel import MasterNotFoundError as AsyncMasterNotFoundError
from redis.asyncio.sentinel import SentinelManagedConnection as AsyncManaged
from redis.exceptions import MovedError
from redis.sentinel import MasterNotFoundError
from redis.sentinel import SentinelManagedConnection as Managed


def _nobody(connection: Managed | AsyncManaged) -> redis.ConnectionError:
    """In the place of redis-py's text, which tells every setting of every Sentinel."""
    return redis.ConnectionError(
        f"nobody tells who is the master of {connection.connection_pool.service_name}"
    )


class MasterConnection(Managed):
    """Ends when a reply tells that the slot is another server's, so that the retry goes there."""

    def connect(self) -> None:
        redis.Connection.connect(self)  # type: ignore[no-untyped-call]  # asks below

    def connect_check_health(self, *args: Any, **options: Any) -> None:
        if not self._sock:
            try:
                self.host, self.port = self.connection_pool.get_master_address()
            except MasterNotFoundError:
                raise _nobody(self) from None
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
                raise _nobody(self) from None
        await super().connect_check_health(*args, **options)

    async def read_response(self, *args: Any, **options: Any) -> Any:
        try:
            return await super().read_response(*args, **options)
        except MovedError as error:
            await self.disconnect()
            raise redis.ConnectionError(f"the slot has another master: {error}") from error


class AsyncMasterSSLConnection(AsyncMasterConnection, redis.asyncio.SSLConnection):
    """Over TLS."""
