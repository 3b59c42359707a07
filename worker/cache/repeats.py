"""Repeated heartbeats and registrations: the cached reply is sent if its stamp is valid, or the store confirms it."""

import asyncio
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Final

from access.proof import Proof
from registry.options.catalogue import Options
from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.command import Command, decode
from worker.assembly import Assembly
from worker.cache.cached_registrations import FRAME_LONGEST, CachedRegistration
from worker.cache.cached_requests import RepeatCheck
from worker.peer import Peer
from worker.reply import Reply

HEARTBEAT: Final = int(RequestCode.BROKER_HEARTBEAT)
REGISTRATION: Final = int(RequestCode.REGISTER_BROKER)
REPEATED: Final = frozenset((HEARTBEAT, int(RequestCode.QUERY_DATA_VERSION), REGISTRATION))


class Repeats:
    """Answers repeated requests of one worker; `handle` gets a request whose reply the store does not confirm, with its
    frame."""

    def __init__(self, parts: Assembly, handle: Callable[[Command, Peer, bytes], None]) -> None:
        self._parts = parts
        self._clock = parts.clock
        self._class = parts.admission.class_of(HEARTBEAT)
        self._driver = parts.driver
        self._handle = handle
        self._renewals = parts.registration_cache.renewals
        self._requests = parts.routes.requests
        self.registrations = parts.registrations

    def may_keep(self, command: Command) -> bool:
        """Return whether the reply to a request may be one to cache."""
        return command.code in REPEATED and len(command.body) <= FRAME_LONGEST

    def keep(
        self,
        frame: bytes,
        command: Command,
        reply: Reply,
        peer: Peer,
        options: Options,
        proof: Proof | None,
        *,
        for_bytes: bool,
    ) -> None:
        """Cache the reply that a request got under these options, if all it did was to renew a lease. `proof` is what
        its signature proved: that its caller may ask it; `for_bytes`: so may the same bytes over other connections."""
        if reply.renewal is None:
            return
        if command.code == REGISTRATION:
            self.registrations.keep(frame, command, reply, self._renewals, peer.id, options, proof)
        elif for_bytes:
            self._requests.keep(frame, command, reply, self._renewals, proven=proof is not None)

    def check(self, check: RepeatCheck, peer: Peer) -> None:
        """Answer a repeated request. The class of heartbeats is that of all that are admitted here."""
        now, cached, renewal = self._clock(), check.cached, check.cached.renewal
        if cached.is_valid(now):
            self._requests.answered(cached)
            peer.send(b"".join(cached.reply_to(check.opaque)))
        elif renewal is None or self._class.admit(peer) is not None:
            loop = asyncio.get_running_loop()
            loop.call_soon(self._handle, decode(check.frame[4:]), peer, check.frame)
        else:
            until = now + renewal.good_for_s
            checked = partial(
                self._checked, check, peer, perf_counter(), self._renewals.generation, until, renewal.reply
            )
            self._driver.ask(renewal.item, checked)

    def _checked(
        self,
        check: RepeatCheck,
        peer: Peer,
        began: float,
        generation: int,
        until: float,
        expected: object,
        reply: object,
    ) -> None:
        cached = check.cached
        self._class.give_back(peer)
        if reply == expected:
            cached.renew(generation, until)
            self._requests.answered(cached)
            peer.send(b"".join(cached.reply_to(check.opaque)))
            self._parts.counters.confirmed(cached.code, perf_counter() - began)
        else:
            (self.registrations if isinstance(cached, CachedRegistration) else self._requests).drop(cached)
            self._handle(decode(check.frame[4:]), peer, check.frame)
