"""Requests that the guard has to judge, until it has: they hold memory, and their replies may end connections."""

from collections.abc import Callable
from functools import partial

from access.classes import AccessClass
from rocketmq_remoting.remoting_command import Command
from worker.assembly import Assembly
from worker.guard import LONG_BODY, Verdict
from worker.peer import Peer
from worker.transport.frame_memory import request_bytes

__all__ = ["Judging"]

Admitted = Callable[[Command, Peer, bytes | None, Verdict], None]


class Judging:
    """The judged requests of one worker; `admitted` gets those that are not refused, each with its frame."""

    def __init__(self, parts: Assembly, admitted: Admitted) -> None:
        self._parts = parts
        self._admitted = admitted

    def judge(self, command: Command, peer: Peer, needs: AccessClass, frame: bytes | None) -> None:
        """Judge a request that needs one of these classes; `frame` is as `Service.handle` has it."""
        if len(command.body) > LONG_BODY:
            frame = peer.frame() if frame is None else frame
            held, known = request_bytes(command) + len(frame), self._parts.known_hosts.knows(peer)
            self._parts.frame_memory.reserve(command, held, known)
        self._parts.guard.judge(command, peer, needs, partial(self._judged, command, peer, frame))

    def _judged(self, command: Command, peer: Peer, frame: bytes | None, verdict: Verdict) -> None:
        self._parts.frame_memory.release(command)
        if verdict.refusal is None:
            self._admitted(command, peer, frame, verdict)
            return
        self._parts.answering.send(verdict.refusal, command, peer)
        if verdict.ends:
            peer.close("too many bad proofs came from its host")
