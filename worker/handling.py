"""Requests that a handler answers, and which are acknowledged once this worker's caches follow what they changed."""

from collections.abc import Callable
from functools import partial
from typing import Final

from registry.options.catalogue import Options
from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.command import Command
from rocketmq_remoting.remoting_command import ONEWAY_FLAG
from worker import dispatch
from worker.assembly import Assembly
from worker.cache.repeats import REGISTRATION, Repeats
from worker.guard import Verdict
from worker.peer import Peer
from worker.reply import Reply

__all__ = ["Handling"]

GET_KV_CONFIG: Final = int(RequestCode.GET_KV_CONFIG)
Answered = Callable[[Reply, Command, Peer], None]


class Handling:
    """The handled requests of one worker; `answered` gets each with its reply."""

    def __init__(self, parts: Assembly, repeats: Repeats, answered: Answered) -> None:
        self._parts = parts
        self._repeats = repeats
        self._answered = answered

    def answer(self, command: Command, peer: Peer, frame: bytes | None, verdict: Verdict) -> None:
        """Answer a request that the guard admits; `frame` is as `Service.handle` has it."""
        if command.code == GET_KV_CONFIG and not command.flag & ONEWAY_FLAG:
            peer.await_long()
        if not self._repeats.may_keep(command):
            frame = b""
        elif frame is None:
            frame = peer.frame()
        request = self._parts.request(command, peer, verdict)
        done = partial(self._handled, command, peer, frame, request.options, verdict)
        self._parts.second_try.begin(request, done)

    def _handled(
        self,
        command: Command,
        peer: Peer,
        frame: bytes,
        options: Options,
        verdict: Verdict,
        reply: Reply,
    ) -> None:
        if peer.registered:
            self._parts.closed.registered(peer)
            if command.code == REGISTRATION and not reply.code:
                self._parts.known_hosts.add(peer)
        if frame and self._parts.guard.holds(verdict):
            self._repeats.keep(
                frame, command, reply, peer, options, verdict.proof, for_bytes=verdict.is_for_bytes
            )
        if reply.event_id:
            self._parts.when_followed(reply.event_id, partial(self._followed, reply, command, peer))
        else:
            self._answered(reply, command, peer)

    def _followed(self, reply: Reply, command: Command, peer: Peer, is_there: bool) -> None:
        """Send a reply when this worker's cache has followed what the request changed.

        Where the store went away meanwhile, the change may be lost: an error is all that can be answered."""
        self._answered(reply if is_there else dispatch.STORE_AWAY, command, peer)
