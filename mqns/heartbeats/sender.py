"""Sending heartbeats to brokers, and unregistering groups."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from mqns.addresses.syntax import split_address
from mqns.errors import ClientError, ResponseError
from mqns.heartbeats.calls import HeartbeatReply, heartbeat, unregister_client
from mqns.heartbeats.groups import ClientGroups
from mqns.names import MASTER_ID
from mqns.remoting.remoting_client import AsyncRemotingClient
from mqns.routes.table import TopicRouteTable
from mqns.tasks import run_concurrently
from rocketmq_remoting.heartbeat import encode_heartbeat, fingerprint, without_subscriptions

log = logging.getLogger(__name__)

CONCURRENT_BROKERS: Final = 16
"""Brokers that get a heartbeat at a time. Java's client sends one by one, so each dead broker delays the others 3 s."""
LOG_EVERY: Final = 20
"""Heartbeats per log line."""


class GroupUnregistration(Struct, frozen=True):
    """A group to unregister; one of both is set."""

    producer_group: str | None = None
    consumer_group: str | None = None


class _HeartbeatBody(Struct, frozen=True):
    """The full body; with a `fingerprint` also the short body, for brokers that have the full one."""

    full: bytes
    short: bytes = b""
    fingerprint: int | None = None


class HeartbeatSender:
    """Sends heartbeats with the groups of one client to the brokers in its route table.

    `short_heartbeats` (Java's useHeartbeatV2): brokers of 5.x that have all subscriptions get the groups only."""

    def __init__(
        self,
        remoting: AsyncRemotingClient,
        groups: ClientGroups,
        routes: TopicRouteTable,
        client_id: str,
        *,
        short_heartbeats: bool = False,
        timeout_s: float = 3.0,
    ) -> None:
        self._remoting = remoting
        self._groups = groups
        self._routes = routes
        self._client_id = client_id
        self._short_heartbeats = short_heartbeats
        self._timeout_s = timeout_s
        self._sending = asyncio.Lock()
        self._sent = 0
        self._versions: dict[str, int] = {}
        self._fingerprints: dict[str, int] = {}

    @property
    def versions(self) -> Mapping[str, int]:
        """Broker address -> the version in its last response (rocketmq_remoting.version)."""
        return dict(self._versions)

    async def send(self) -> bool:
        """Send a heartbeat to all brokers. False, with nothing sent, while another one is in progress."""
        if self._sending.locked():
            log.warning(
                "%s: heartbeat skipped: the previous one is still in progress; see which brokers do not respond",
                self._client_id,
            )
            return False
        await self.send_now()
        return True

    async def send_now(self) -> None:
        """Send a heartbeat after the one in progress, if any: for new or changed groups."""
        async with self._sending:
            body = self._body()
            if body is not None:
                await run_concurrently(
                    lambda address: self._send_to(address, body), self._recipients(), CONCURRENT_BROKERS
                )
                self._log_sent()

    async def unregister(self, groups: Sequence[GroupUnregistration]) -> None:
        """Unregister groups at every broker, masters and slaves; errors are logged."""
        async with self._sending:
            await run_concurrently(
                lambda address: self._unregister_at(address, groups), self._all_brokers(), CONCURRENT_BROKERS
            )

    def connected(self, host: str, port: int) -> None:
        """Send a full heartbeat next over a new connection: the broker dropped the groups with the old one."""
        for address in [address for address in self._fingerprints if split_address(address) == (host, port)]:
            del self._fingerprints[address]

    def remove_unknown_brokers(self) -> None:
        """Drop the versions and fingerprints of brokers that are not in the route table."""
        known = set(self._all_brokers())
        self._versions = {address: version for address, version in self._versions.items() if address in known}
        self._fingerprints = {
            address: value for address, value in self._fingerprints.items() if address in known
        }

    def _body(self) -> _HeartbeatBody | None:
        data = self._groups.heartbeat(self._client_id)
        if data is None:
            log.debug("%s: no heartbeat: the client has no group", self._client_id)
            return None
        if not self._short_heartbeats:
            return _HeartbeatBody(encode_heartbeat(data))
        data = replace(data, heartbeat_fingerprint=fingerprint(data))
        return _HeartbeatBody(
            encode_heartbeat(data), encode_heartbeat(without_subscriptions(data)), data.heartbeat_fingerprint
        )

    def _recipients(self) -> list[str]:
        """Return all brokers if there are consumer groups, else the masters."""
        if self._groups.consumers:
            return self._all_brokers()
        tables = self._routes.addresses.values()
        return list(dict.fromkeys(table[MASTER_ID] for table in tables if MASTER_ID in table))

    def _all_brokers(self) -> list[str]:
        tables = self._routes.addresses.values()
        return list(dict.fromkeys(address for table in tables for address in table.values()))

    async def _send_to(self, address: str, body: _HeartbeatBody) -> None:
        try:
            if body.fingerprint is not None and self._fingerprints.get(address) == body.fingerprint:
                reply = await self._send(address, body.short)
                if not reply.needs_full and self._fingerprints.get(address) == body.fingerprint:
                    return
            reply = await self._send(address, body.full)
        except ClientError as error:
            self._fingerprints.pop(address, None)
            log.warning("%s: heartbeat failed: %s; the next one retries", self._client_id, error)
            return
        self._fingerprints.pop(address, None)
        if body.fingerprint is not None and reply.supports_short and not reply.needs_full:
            self._fingerprints[address] = body.fingerprint

    async def _send(self, address: str, body: bytes) -> HeartbeatReply:
        reply = await self._remoting.call(address, heartbeat(body), timeout_s=self._timeout_s)
        self._versions[address] = reply.version
        return reply

    async def _unregister_at(self, address: str, groups: Sequence[GroupUnregistration]) -> None:
        self._fingerprints.pop(address, None)
        for group in groups:
            call = unregister_client(
                self._client_id, producer_group=group.producer_group, consumer_group=group.consumer_group
            )
            try:
                await self._remoting.call(address, call, timeout_s=self._timeout_s)
            except ResponseError as error:
                log.warning(
                    "%s: not unregistered: %s; the group expires at the broker", self._client_id, error
                )
            except ClientError as error:
                log.warning(
                    "%s: not unregistered: %s; the group expires at the broker", self._client_id, error
                )
                return  # a broker that does not respond would delay the other groups too

    def _log_sent(self) -> None:
        if self._sent % LOG_EVERY == 0:
            log.info("%s: heartbeat to %d brokers", self._client_id, len(self._recipients()))
        self._sent += 1
