"""Sending heartbeats to brokers, and telling them that a group leaves."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from client.addresses.syntax import split_address
from client.errors import AnswerError, ClientError
from client.heartbeats.calls import Heard, heartbeat, unregister_client
from client.heartbeats.members import Members
from client.routes.book import RouteBook
from client.routes.names import MASTER_ID
from client.timing import side_by_side
from client.wire.remoting_client import AsyncRemotingClient
from remoting.heartbeat import encode_heartbeat, fingerprint, without_subscriptions

log = logging.getLogger(__name__)

AT_ONCE: Final = 16
"""Brokers spoken to at a time: Java's client takes one after the other, so that each dead one costs all others 3 s."""
LOGGED_EACH: Final = 20
"""Rounds from one that is logged to the next."""


class Leaving(Struct, frozen=True):
    """A group that goes."""

    producer_group: str | None = None
    consumer_group: str | None = None


class _Beat(Struct, frozen=True):
    """One round: the body, and with `mark` (its fingerprint) the short form for who has seen it."""

    full: bytes
    short: bytes = b""
    mark: int | None = None


class Heart:
    """Beats for the members of one client, to the brokers in its book.

    `short_forms` (Java's useHeartbeatV2): brokers of 5.x that have had all subscriptions get the groups only."""

    def __init__(
        self,
        remoting: AsyncRemotingClient,
        members: Members,
        book: RouteBook,
        client_id: str,
        *,
        short_forms: bool = False,
        timeout_s: float = 3.0,
    ) -> None:
        self._remoting = remoting
        self._members = members
        self._book = book
        self._client_id = client_id
        self._short_forms = short_forms
        self._timeout_s = timeout_s
        self._beating = asyncio.Lock()
        self._rounds = 0
        self._versions: dict[str, int] = {}
        self._marks: dict[str, int] = {}

    @property
    def versions(self) -> Mapping[str, int]:
        """Broker address -> the version in its last answer (remoting.version)."""
        return dict(self._versions)

    async def beat(self) -> bool:
        """Tell every broker that is concerned. False, and nothing done, while another beat goes on."""
        if self._beating.locked():
            log.warning("%s: a heartbeat is skipped, since another goes on", self._client_id)
            return False
        await self.beat_anew()
        return True

    async def beat_anew(self) -> None:
        """The same, after the one that may be going on: for groups that are new or changed."""
        async with self._beating:
            beat = self._next_beat()
            if beat is not None:
                await side_by_side(lambda address: self._tell(address, beat), self._concerned(), AT_ONCE)
                self._round_is_over()

    async def leave(self, groups: Sequence[Leaving]) -> None:
        """Tell every broker, masters and slaves, that these groups go; errors are logged."""
        async with self._beating:
            await side_by_side(lambda address: self._take_leave(address, groups), self._all(), AT_ONCE)

    def connected(self, host: str, port: int) -> None:
        """There is a new connection to a broker, which by that knows nothing of us any more."""
        for address in [address for address in self._marks if split_address(address) == (host, port)]:
            del self._marks[address]

    def forget_gone(self) -> None:
        """Keep nothing of brokers that are in the book no more."""
        there = set(self._all())
        self._versions = {address: version for address, version in self._versions.items() if address in there}
        self._marks = {address: mark for address, mark in self._marks.items() if address in there}

    def _next_beat(self) -> _Beat | None:
        data = self._members.heartbeat(self._client_id)
        if data is None:
            log.debug("%s: no heartbeat, since there is no producer and no consumer", self._client_id)
            return None
        if not self._short_forms:
            return _Beat(encode_heartbeat(data))
        mark = fingerprint(data)
        marked = replace(data, heartbeat_fingerprint=mark)
        return _Beat(encode_heartbeat(marked), encode_heartbeat(without_subscriptions(marked)), mark)

    def _concerned(self) -> list[str]:
        """All brokers for consumers; masters for producers alone."""
        if self._members.consumers:
            return self._all()
        tables = self._book.addresses.values()
        return list(dict.fromkeys(table[MASTER_ID] for table in tables if MASTER_ID in table))

    def _all(self) -> list[str]:
        tables = self._book.addresses.values()
        return list(dict.fromkeys(address for table in tables for address in table.values()))

    async def _tell(self, address: str, beat: _Beat) -> None:
        try:
            if beat.mark is not None and self._marks.get(address) == beat.mark:
                heard = await self._send(address, beat.short)
                if not heard.wants_full_form and self._marks.get(address) == beat.mark:
                    return
            heard = await self._send(address, beat.full)
        except ClientError as error:
            self._marks.pop(address, None)
            log.warning("%s: a heartbeat failed: %s", self._client_id, error)
            return
        self._marks.pop(address, None)
        if beat.mark is not None and heard.knows_short_forms and not heard.wants_full_form:
            self._marks[address] = beat.mark

    async def _send(self, address: str, body: bytes) -> Heard:
        heard = await self._remoting.ask(address, heartbeat(body), timeout_s=self._timeout_s)
        self._versions[address] = heard.version
        return heard

    async def _take_leave(self, address: str, groups: Sequence[Leaving]) -> None:
        self._marks.pop(address, None)
        for group in groups:
            call = unregister_client(
                self._client_id, producer_group=group.producer_group, consumer_group=group.consumer_group
            )
            try:
                await self._remoting.ask(address, call, timeout_s=self._timeout_s)
            except AnswerError as error:
                log.warning("%s: not unregistered: %s", self._client_id, error)
            except ClientError as error:
                log.warning("%s: not unregistered: %s", self._client_id, error)
                return  # nor would it hear of the others

    def _round_is_over(self) -> None:
        if self._rounds % LOGGED_EACH == 0:
            log.info("%s: heartbeat to %d brokers", self._client_id, len(self._concerned()))
        self._rounds += 1
