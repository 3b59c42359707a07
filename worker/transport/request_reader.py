"""Received bytes of one connection to requests for the service, in time slices of bounded work.

Input is paused while a slice has left some over, while much or what may be long is unanswered, while much is unread,
and while a frame waits for memory: no peer can make a worker hold more than a bounded part of its memory, or keep the
others waiting."""

from time import perf_counter
from typing import Final, Protocol

from rocketmq_remoting.frame import FrameReader
from rocketmq_remoting.remoting_command import ONEWAY_FLAG, RESPONSE_FLAG
from worker.cache.cached_requests import RepeatCheck
from worker.peer import Via
from worker.transport.cached_answers import cached_answers
from worker.transport.frame_memory import LONG
from worker.transport.intake import Intake, IntakeConnection
from worker.transport.opening import Opening, Stage
from worker.transport.reply_writer import ReplyWriter
from worker.transport.time_slices import SLICE_S

__all__ = ["SLICE_COMMANDS", "UNREAD_MOST", "RequestReader"]

SLICE_COMMANDS: Final = 256
"""Commands of one connection before the others are served."""
FIRST_COMMANDS: Final = 16
"""Commands that are handed over at once while other slices wait: few peers have more to ask."""
UNREAD_MOST: Final = 256 << 10
"""Bytes of replies not yet taken by the peer's system beyond which no more requests are read."""


class ReadConnection(IntakeConnection, Protocol):
    """The connection that is read: `worker.transport.connection.Connection`."""

    address: str
    active_at: float
    deadline: float
    direct: bool
    via: Via

    def check_repeats(self, checks: list[RepeatCheck]) -> None: ...
    def fail(self, error: Exception) -> None: ...
    def write_replies(self) -> None: ...
    def close_if_done(self) -> None: ...


class RequestReader:
    """Hands the requests of one connection to the service; the replies go through `replies`."""

    __slots__ = (
        "_connection",
        "_frames",
        "_opening",
        "_replies",
        "_slice_due",
        "intake",
    )

    def __init__(self, connection: ReadConnection, replies: ReplyWriter) -> None:
        self._connection = connection
        self._replies = replies
        self._opening: Opening | None = Opening(connection.owner)
        self._frames = FrameReader()
        self._slice_due = False
        self.intake = Intake(connection, replies.transport)
        """Whether more is read."""

    @property
    def last_frame(self) -> bytes:
        """The frame of the request that is being handed over."""
        return self._frames.last_frame

    @property
    def stage(self) -> Stage:
        """How far the opening has come."""
        return Stage.FRAMES if self._opening is None else self._opening.stage

    def receive(self, data: bytes) -> None:
        """Take received bytes, and hand over the requests in them. Raises what the opening, TLS or frames raise."""
        if self._connection.direct and not self._replies.paused:
            data = self._uncached(data)
            if not data:
                self.intake.incomplete(0, 0)
                return
        plain = data if self._opening is None and self._replies.tls is None else self._plain(data)
        if plain:
            self._frames.feed(plain)
            self._run_slice(FIRST_COMMANDS if self._connection.owner.time_slices.waiting else SLICE_COMMANDS)

    def schedule_slice(self) -> None:
        """Have another slice soon if requests wait and nothing keeps them waiting."""
        if self.intake.paused and not (self._slice_due or self._replies.paused or self._replies.many_due):
            self._slice_due = True
            self._connection.owner.time_slices.add(self._next_slice)

    def _uncached(self, data: bytes) -> bytes:
        """Return what is left of `data` after the cached requests at its start."""
        blocks, length = self._cached(data, 0, UNREAD_MOST)
        if answers := b"".join(blocks):
            self._replies.write_plain(answers)
        return data[length:] if length else data

    def _answer_cached(self) -> None:
        """Answer the cached requests that come next: many peers may have asked for what one of them had read."""
        data, first = self._frames.rest()
        if first < len(data):
            most = max(UNREAD_MOST - self._replies.buffered_bytes, 0)
            blocks, length = self._cached(data, first, most)
            self._frames.skip(length)
            self._replies.add_cached(blocks)

    def _cached(self, data: bytes, first: int, most: int) -> tuple[list[bytes], int]:
        """Return the replies to the cached requests from `first` on, and their length; have repeats checked."""
        connection = self._connection
        cached = connection.owner.service.cached_for(connection)
        if cached is None:
            return [], 0
        blocks, length, checks = cached_answers(
            cached, data, connection.active_at, most, first, connection.rights
        )
        if checks:
            connection.check_repeats(checks)
        return blocks, length

    def _plain(self, data: bytes) -> bytes:
        opening, tls = self._opening, self._replies.tls
        try:
            if opening is not None:
                return self._open(opening, data)
            return tls.receive(data) if tls is not None else data
        finally:  # an alert explains a failure to the peer
            self._replies.write_tls()

    def _open(self, opening: Opening, data: bytes) -> bytes:
        try:
            plain = opening.receive(data)
        finally:
            self._replies.tls = opening.tls
            # A header has 64 KiB at most, and counts as a frame does; nearly all are too short to count.
            begun = opening.begun_bytes
            self.intake.incomplete(LONG if begun else 0, begun)
        if opening.header is not None:
            self._connection.owner.introduced(self._connection, opening.header.source)
            opening.header = None
        self._connection.deadline = opening.deadline
        if opening.stage is Stage.HANDSHAKE:
            self._connection.owner.handshakes.begin(self._connection)
        if opening.stage is Stage.FRAMES:
            self._connection.owner.handshakes.end(self._connection)
            self._opening = None
            self._connection.owner.asked += 1
            self._connection.owner.service.identified(self._connection)
        return plain

    def _next_slice(self) -> None:
        self._slice_due = False
        if self._connection.closed:
            return
        self._connection.active_at = self._connection.owner.time()
        try:
            if not self._replies.paused:
                self._answer_cached()
            self._run_slice(SLICE_COMMANDS)
        except Exception as error:
            self._connection.fail(error)

    def _run_slice(self, most: int) -> None:
        """Hand over what has arrived, for one time slice, and write the replies."""
        connection, replies = self._connection, self._replies
        if replies.paused:
            self.intake.pause()
            self._count_what_waits()
            return
        replies.gathering = True  # those of this slice leave together at its end
        self._hand_over(most)
        if connection.closed:
            return
        connection.write_replies()
        connection.direct = replies.tls is None and not (
            self.intake.paused or self._frames.pending or replies.paused or replies.many_due
        )
        self.schedule_slice()
        connection.close_if_done()

    def _hand_over(self, most: int) -> None:
        connection, replies, intake = self._connection, self._replies, self.intake
        frames = self._frames
        next_command = frames.next_command
        handle = self._connection.owner.service.handle
        until = perf_counter() + SLICE_S
        for _ in range(most):
            command = next_command()
            if command is None:
                intake.resume()
                break
            if intake.counted:
                intake.incomplete(0, 0)
            flag = command.flag
            if flag & RESPONSE_FLAG:
                continue
            unanswered = replies.unanswered
            if not flag & ONEWAY_FLAG:
                replies.unanswered += 1
                replies.unanswered_bytes += frames.last_length
            handle(command, connection)
            if connection.closed:
                return
            if replies.unanswered == unanswered:
                self._answer_cached()
            if replies.buffered_bytes >= UNREAD_MOST or replies.many_due or perf_counter() >= until:
                intake.pause()
                break
        else:
            intake.pause()
        frames.drop_consumed()
        self._count_what_waits()

    def _count_what_waits(self) -> None:
        """Have what has arrived and is not handed over counted: of an incomplete frame, or long."""
        wanted, pending = self._frames.wanted, self._frames.pending
        if not wanted and pending > LONG:
            wanted = pending
        if wanted or self.intake.counted:
            self.intake.incomplete(wanted, pending)
