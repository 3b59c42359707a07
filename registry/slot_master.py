"""Who serves a namespace on a Redis Cluster: its keys share a hash tag, so one slot and one master hold them all.

redis-py's pools for Sentinel have a manager that tells who is the master. Here the Cluster's own servers are asked.
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
from registry.store_url import Address

ASK: tuple[str, ...] = ("CLUSTER", "SLOTS")
Slots = Sequence[Any]
"""Its reply: `[first, last, [host, port, …], …]` of each range of slots, the master before its replicas."""


def slot_of(namespace: str) -> int:
    """The slot of all its keys."""
    return int(key_slot(Keys(namespace).prefix.encode()))


class _Servers:
    """Those of a Cluster that are known, the one that told us last before the others."""

    def __init__(self, slot: int, nodes: Iterable[Address]) -> None:
        self.slot = slot
        self.known = [*nodes]

    def learn(self, asked: Address, slots: Slots) -> Address | None:
        """The master of our slot, by what `asked` replied."""
        servers = [[_address(server, asked) for server in entry[2:]] for entry in slots]
        self.known = [*dict.fromkeys([asked, *(one for of in servers for one in of), *self.known])]
        for (first, last, *_), (master, *_) in zip(slots, servers, strict=True):
            if first <= self.slot <= last:
                return master
        return None


def _address(server: Sequence[Any], asked: Address) -> Address:
    """Without a host (`cluster-preferred-endpoint-type unknown-endpoint`) it is where we asked."""
    host, port = server[:2]
    return (host.decode() if isinstance(host, bytes) else host) or asked[0], port


class SlotMaster:
    """For `redis.sentinel.SentinelConnectionPool`; `settings` are those of a client that asks."""

    def __init__(self, slot: int, nodes: Iterable[Address], settings: dict[str, Any]) -> None:
        self._servers = _Servers(slot, nodes)
        self._settings = settings

    def discover_master(self, service_name: str) -> Address:
        """Raises MasterNotFoundError when no server can be asked or none knows."""
        for host, port in self._servers.known:
            try:
                with redis.Redis(host=host, port=port, **self._settings) as server:
                    slots = server.execute_command(*ASK)
            except (RedisError, OSError):
                continue
            if master := self._servers.learn((host, port), slots):
                return master
        raise redis.sentinel.MasterNotFoundError(f"of {service_name}")


class AsyncSlotMaster:
    """The same for `redis.asyncio.sentinel.SentinelConnectionPool`."""

    def __init__(self, slot: int, nodes: Iterable[Address], settings: dict[str, Any]) -> None:
        self._servers = _Servers(slot, nodes)
        self._settings = settings

    async def discover_master(self, service_name: str) -> Address:
        """Raises MasterNotFoundError when no server can be asked or none knows."""
        for host, port in self._servers.known:
            try:
                async with redis.asyncio.Redis(host=host, port=port, **self._settings) as server:
                    slots = await server.execute_command(*ASK)  # type: ignore[no-untyped-call]
            except (RedisError, OSError):
                continue
            if master := self._servers.learn((host, port), slots):
                return master
        raise redis.asyncio.sentinel.MasterNotFoundError(f"of {service_name}")

    async def aclose(self) -> None:
        """As `redis.asyncio.sentinel.Sentinel` has it; nothing is kept open here."""
