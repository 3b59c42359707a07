"""Repeated heartbeats and registrations: the cached reply is sent if its stamp is valid, or the store confirms it, or
has written what changed."""

import asyncio
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Final

from access.proof import Proof
from registry.options.catalogue import Options
from registry.registration.decision import Done
from registry.registration.registered import Registered
from registry.registration.straight import Change
from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.command import Command, decode
from worker import dispatch
from worker.assembly import Assembly
from worker.cache.cached_registrations import FRAME_LONGEST, WAITING_MOST, CachedRegistration
from worker.cache.cached_requests import RepeatCheck
from worker.handlers.registration import reply_of
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
        its signature proved: that its caller may ask it; `for_bytes`: so may the same bytes over any connection."""
        if reply.renewal is None:
            return
        if command.code == REGISTRATION:
            if reply.event_id and len(frame) > WAITING_MOST:
                return  # what is so long and changes is never repeated from here
            self.registrations.keep(frame, command, reply, self._renewals, peer.id, options, proof)
        elif for_bytes:
            self._requests.keep(frame, command, reply, self._renewals, proven=proof is not None)

    def check(self, check: RepeatCheck, peer: Peer) -> None:
        """Answer a repeated request. The class of heartbeats is that of all that are admitted here."""
        now, cached, renewal = self._clock(), check.cached, check.cached.renewal
        if check.change is None and cached.is_valid(now):
            self._requests.answered(cached)
            peer.send(b"".join(cached.reply_to(check.opaque)))
        elif renewal is None or self._class.admit(peer) is not None:
            loop = asyncio.get_running_loop()
            loop.call_soon(self._handle, decode(check.frame[4:]), peer, check.frame)
        elif check.change is not None:
            proof = check.cached.proof if isinstance(check.cached, CachedRegistration) else None
            item = check.change.writing.item(self._parts.origin(peer, proof or peer.standing.proof))
            self._driver.ask(item, partial(self._written, check, check.change, peer, perf_counter()))
        else:
            until = now + renewal.good_for_s
            checked = partial(
                self._checked, check, peer, perf_counter(), self._renewals.generation, until, renewal.reply
            )
            self._driver.ask(renewal.item, checked)

    def _written(self, check: RepeatCheck, change: Change, peer: Peer, began: float, reply: object) -> None:
        """Take the store's reply to a change: what was not written goes the long way.

        What was is not carried out again: it would undo what the broker has registered since."""
        cached = check.cached
        done = change.written(reply)
        if done is None:
            self.registrations.drop(cached)
            self._class.give_back(peer)
            self._handle(decode(check.frame[4:]), peer, check.frame)
            return
        if (
            isinstance(cached, CachedRegistration)
            and cached.renewal is not None
            and cached.renewal.reply[-1] == done.order_table
        ):
            self.registrations.changed(cached, change)
            acknowledge = partial(self._acknowledge, check, change, done.outcome, peer, began)
        else:
            self.registrations.drop(cached)
            command = decode(check.frame[4:])
            self._parts.answering.begin(command)
            acknowledge = partial(self._answer_with_order_topics, command, done, peer)
        self._parts.when_followed(done.event_id, acknowledge)

    def _answer_with_order_topics(self, command: Command, done: Done, peer: Peer, is_there: bool) -> None:
        """Answer a change that this worker's caches follow, and that found other order topics than the cached reply
        has."""
        self._class.give_back(peer)
        registered = Registered.of(done.master, done.order_table, outcome=done.outcome)
        reply = reply_of(registered, self._parts.options, self._parts.registration_cache)
        self._parts.answering.end(reply if is_there else dispatch.STORE_AWAY, command, peer)

    def _acknowledge(
        self, check: RepeatCheck, change: Change, outcome: str, peer: Peer, began: float, is_there: bool
    ) -> None:
        """Answer a change that this worker's caches follow."""
        self._class.give_back(peer)
        if not is_there:
            self._parts.answering.send(dispatch.STORE_AWAY, decode(check.frame[4:]), peer)
            return
        peer.send(b"".join(check.cached.reply_to(check.opaque)))
        self._parts.counters.changed(outcome, change.body_bytes, perf_counter() - began)

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
