"""The life of a request, whatever brought it: admitted, answered by a cache or a handler, sent.

A lookup goes from here to `worker.cache.routes`, and if that has no reply for it through `worker.cache.filling`; a
repeated heartbeat or registration to `worker.cache.repeats`; all else to its handler (`worker.dispatch`).
"""

from collections.abc import Callable
from functools import partial
from typing import Final

import worker.handlers  # noqa: F401  fills the table of worker.dispatch
from access.classes import OPERATORS, REMOTING, AccessClass
from registry.options.catalogue import Options
from registry.routes import must_wait
from rocketmq_remoting.command import Command
from rocketmq_remoting.remoting_command import RESPONSE_FLAG
from rocketmq_remoting.version import V5_3_1
from worker import dispatch
from worker.arguments import FIELD_MOST, overlong
from worker.assembly import Assembly
from worker.cache.cached_requests import CachedRequests, RepeatCheck
from worker.cache.filling import Filling
from worker.cache.list_filling import ListFilling
from worker.cache.lists import LISTS, list_key
from worker.cache.repeats import Repeats
from worker.cache.views import GET_ROUTE, Key, cache_key
from worker.guard import ADMITTED, Verdict
from worker.handling import Handling
from worker.judging import Judging
from worker.peer import Peer
from worker.reply import Reply
from worker.transport.frame_memory import SMALL, request_bytes

STOP_WAIT_S: Final = 2.0
NEEDS: Final = {code: int(of_class) for code, of_class in REMOTING.items()}
"""`access.classes.REMOTING` as numbers, which are compared in a tenth of the time."""
OF_OPERATORS: Final = int(OPERATORS)
Assemble = Callable[[Options, str], Assembly]


class Service:
    """Answers requests over one store; lives on one event loop. The one object that the transport talks to."""

    def __init__(self, options: Options, worker_id: str, assembly: Assemble = Assembly) -> None:
        self.parts = assembly(options, worker_id)
        self.frame_memory = self.parts.frame_memory
        self.known_hosts = self.parts.known_hosts
        self._filling = Filling(self.parts, self._answered)
        self._lists = ListFilling(self.parts, self._answered)
        self._repeats = Repeats(self.parts, self.handle)
        self._handling = Handling(self.parts, self._repeats, self._answered)
        self._judging = Judging(self.parts, self._answer)
        self._draining = False
        self.metered = self.parts
        self.counters = self.parts.counters
        self._answering = self.parts.answering
        self._guard = self.parts.guard
        self.failures = self._guard.failures
        self.comes_back = self.parts.closed.comes_back
        self.when_rights_change = self._guard.when_changed
        self.when_rights_change(self._forget_rights)

    async def start(self) -> None:
        """Begin to follow and to tick; return after the first tick, or soon if the store is away."""
        await self.parts.start()

    def handle(self, command: Command, peer: Peer, frame: bytes | None = None) -> None:
        """Answer one request through `peer.send`, at once if it can be done without the store.

        `frame` is given of one that is not the last that `peer` has."""
        if command.flag & RESPONSE_FLAG:
            return  # this side sends no requests
        command = self._answering.readable(command)
        needs = NEEDS.get(command.code, 0)
        if needs and (not needs & peer.rights or needs & OF_OPERATORS or self._guard.is_signed(command)):
            self._judging.judge(command, peer, AccessClass(needs), frame)
        else:
            self._answer(command, peer, frame)

    def _answer(self, command: Command, peer: Peer, frame: bytes | None, verdict: Verdict = ADMITTED) -> None:
        """Answer a request that the rules admit."""
        if self._draining and peer.go_away and command.version > V5_3_1:
            self._answering.send(dispatch.GO_AWAY, command, peer)
            return
        parts = self.parts
        key = cache_key(command, parts.options)
        if parts.standstill.lasts() and (key is not None or list_key(command) is not None):
            self._put_off(command, peer, frame)
            return
        cached = None if key is None or parts.stale.is_over() else parts.routes.get(key)
        if (cached is None or cached.code) and self._must_wait(command):
            self._answering.send(dispatch.NOT_READY, command, peer)
        elif key is not None and cached is not None:
            self._hit(key, cached, command, peer, frame, verdict)
        elif (size := request_bytes(command)) > FIELD_MOST and (field := overlong(command)) is not None:
            self._answering.send(
                dispatch.failure(f"{field} has more than {FIELD_MOST} characters", "field"), command, peer
            )
        elif (refusal := parts.admission.admit(command.code, peer)) is not None:
            self.counters.refused(parts.admission.class_of(command.code).label)
            self._answering.send(refusal, command, peer)
        else:
            self._answering.begin(command)
            parts.admins.see(command.code, peer)
            if size > SMALL:
                parts.frame_memory.reserve(command, size, self.known_hosts.knows(peer))
            if key is not None:
                self._filling.answer(key, command, peer)
            elif (asked := list_key(command)) is not None:
                self._lists.answer(asked, command, peer)
            else:
                self._handling.answer(command, peer, frame, verdict)

    def cached(self) -> CachedRequests | None:
        """Return the cached requests while they may be answered, else None."""
        parts = self.parts
        may_not = self._draining or parts.standstill.lasts() or not parts.follower.connected
        return None if may_not else parts.routes.requests

    def cached_for(self, peer: Peer) -> CachedRequests | None:
        """As `cached`, with the registrations that came over this connection."""
        cached = self.cached()
        if cached is not None:
            self._repeats.registrations.set_connection(peer.id, self.parts.options)
        return cached

    def check_repeat(self, check: RepeatCheck, peer: Peer) -> None:
        """Answer a cached heartbeat or registration, at once or if the store confirms its reply."""
        self._repeats.check(check, peer)

    def connected(self, peer: Peer) -> None:
        """Note an accepted connection: nothing is recorded before it registers a broker."""

    def identified(self, peer: Peer) -> None:
        """Note that the next bytes of a connection are frames: PROXY header and TLS handshake are over."""
        self._guard.identified(peer)

    def disconnected(self, peer: Peer, *, shutting_down: bool) -> None:
        """Release a connection that has ended."""
        self.parts.admins.discard(peer)
        self._guard.shown.remove(peer)
        self.parts.closed.closed(peer, shutting_down=shutting_down)

    def end_announcing(self) -> None:
        """Announce this worker's address no more: it makes way."""
        self.parts.announcer.end()

    def begin_drain(self) -> None:
        """Answer with GO_AWAY from now on, if enableShutdownGracefully says so."""
        self._draining = self.parts.options.enable_shutdown_gracefully

    async def stop(self) -> None:
        """Answer what is under way, for a short while, and close the connections to the store."""
        await self.parts.admission.idle(STOP_WAIT_S)
        await self.parts.stop([*self._filling.tasks])

    def _put_off(self, command: Command, peer: Peer, frame: bytes | None) -> None:
        """Answer once the store was asked what this worker missed."""
        if command.code in LISTS:
            peer.await_long()
        frame = peer.frame() if frame is None else frame
        self.parts.standstill.when_over(partial(self.handle, command, peer, frame))

    def _hit(
        self, key: Key, cached: Reply, command: Command, peer: Peer, frame: bytes | None, verdict: Verdict
    ) -> None:
        if not self.parts.follower.connected:
            self.counters.stale_serves += 1
        elif not cached.code and verdict.is_for_bytes:
            frame = peer.frame() if frame is None else frame
            self.parts.routes.keep_request(key, frame, command, proven=verdict.by_bytes)
        self._answering.send_cached(cached, command, peer)

    def _answered(self, reply: Reply, command: Command, peer: Peer) -> None:
        self._answering.end(reply, command, peer)
        self.parts.admission.release(command.code, peer)
        self.frame_memory.release(command)

    def _forget_rights(self) -> None:
        """Have each request judged again: what was answered by its bytes may be of a caller that has no right now."""
        self.parts.routes.requests.clear()
        self.parts.registrations.clear()

    def _must_wait(self, command: Command) -> bool:
        """Return whether the service is too young for this request (RocketMQ's needWaitForService)."""
        return command.code == GET_ROUTE and must_wait(self.parts.options, self.parts.ticker.service_age_s)
