"""The master of a namespace on a Redis Cluster: its keys share a hash tag, so one slot and one master hold them all.

redis-py's pools for Sentinel have a manager that finds the master. The managers here ask the Cluster's own servers.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import redis
import redis.asyncio
import redis.asyncio.sentinel
import redis.sentinel
from redis.crc import key_slot
from redis.exceptions import RedisError

from registry.keys import Keys
from registry.store.url import Address

ASK: tuple[str, ...] = ("CLUSTER", "SLOTS")
Slots = Sequence[Any]
"""Its reply: `[first, last, [host, port, …], …]` of each range of slots, the master before its replicas."""


def slot_of(namespace: str) -> int:
    """Return the slot of all keys of a namespace."""
    return int(key_slot(Keys(namespace).prefix.encode()))


class _Servers:
    """The known servers of a Cluster; the one that replied last comes first."""

    def __init__(self, slot: int, nodes: Iterable[Address]) -> None:
        self.slot = slot
        self.nodes = [*nodes]

    def update(self, asked: Address, slots: Slots) -> Address | None:
        """Update the servers from the reply of `asked`; return the master of the slot, or None."""
        servers = [[_address(server, asked) for server in entry[2:]] for entry in slots]
        self.nodes = [
            *dict.fromkeys([asked, *(address for group in servers for address in group), *self.nodes])
        ]
        for (first, last, *_), (master, *_) in zip(slots, servers, strict=True):
            if first <= self.slot <= last:
                return master
        return None


def _address(server: Sequence[Any], asked: Address) -> Address:
    """Return a server's address; without a host (`unknown-endpoint`) it is that of `asked`."""
    host, port = server[:2]
    return (host.decode() if isinstance(host, bytes) else host) or asked[0], port


class SlotMaster:
    """Manager for `redis.sentinel.SentinelConnectionPool`; `settings` are those of the asking client."""

    def __init__(self, slot: int, nodes: Iterable[Address], settings: dict[str, Any]) -> None:
        self._servers = _Servers(slot, nodes)
        self._settings = settings

    def discover_master(self, service_name: str) -> Address:
        """Return the master's address. Raises MasterNotFoundError when no server replies with one."""
        for host, port in self._servers.nodes:
            try:
                with redis.Redis(host=host, port=port, **self._settings) as server:
                    slots = server.execute_command(*ASK)
            except (RedisError, OSError):
                continue
            if master := self._servers.update((host, port), slots):
                return master
        raise redis.sentinel.MasterNotFoundError(f"of {service_name}")


class AsyncSlotMaster:
    """Manager for `redis.asyncio.sentinel.SentinelConnectionPool`."""

    def __init__(self, slot: int, nodes: Iterable[Address], settings: dict[str, Any]) -> None:
        self._servers = _Servers(slot, nodes)
        self._settings = settings

    async def discover_master(self, service_name: str) -> Address:
        """Return the master's address. Raises MasterNotFoundError when no server replies with one."""
        for host, port in self._servers.nodes:
            try:
                async with redis.asyncio.Redis(host=host, port=port, **self._settings) as server:
                    slots = await server.execute_command(*ASK)  # type: ignore[no-untyped-call]
            except (RedisError, OSError):
                continue
            if master := self._servers.update((host, port), slots):
                return master
        raise redis.asyncio.sentinel.MasterNotFoundError(f"of {service_name}")

    async def aclose(self) -> None:
        """Close nothing: the interface of `redis.asyncio.sentinel.Sentinel` without open connections."""
