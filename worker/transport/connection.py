"""One accepted connection: what the transport, the service and the table of connections call.

`request_reader` makes requests of received bytes and bounds what is read, `reply_writer` gathers and writes the
replies. Here is the life of the connection: open, idle, closing, disconnected."""

import asyncio
import logging
from math import inf
from sys import intern
from typing import Final, Protocol, cast

from access.standing import UNKNOWN
from rocketmq_remoting.errors import FrameError
from worker.cache.cached_requests import RepeatCheck
from worker.logs.rate_limited_log import RateLimitedLog
from worker.peer import NONE_REGISTERED, Frames, Via, host_of
from worker.transport.ends import End
from worker.transport.host_limit import HostFull
from worker.transport.opening import Stage
from worker.transport.owner import Owner
from worker.transport.proxy_protocol import ProxyError
from worker.transport.reply_writer import ReplyWriter
from worker.transport.request_reader import UNREAD_MOST, RequestReader
from worker.transport.tls import TlsUnusable
from worker.transport.tls_session import TlsError, TlsSession

__all__ = ["IDLE", "Connection"]

log = logging.getLogger(__name__)
rate_limited = RateLimitedLog(log)

IDLE: Final = "idle"


class ConnectionOwner(Owner, Protocol):
    """The table of connections, called at each one's start and end."""

    bytes_read: int

    def opened(self, connection: "Connection") -> None: ...
    def ended(self, end: End) -> None: ...
    def unreadable(self, reason: str) -> None: ...
    def disconnected(self, connection: "Connection") -> None: ...


class Connection(asyncio.Protocol):
    """A `worker.peer.Peer`."""

    __slots__ = (
        *("_replies", "_requests", "active_at", "address", "closed", "deadline", "direct", "go_away"),
        *("host", "id", "owner", "registered", "rights", "standing", "via"),
    )

    _replies: ReplyWriter  # once it is open

    def __init__(self, id: str, address: str, owner: "ConnectionOwner") -> None:
        self.id, self.address = id, address
        self.host = intern(host_of(address))
        self.registered, self.rights, self.standing, self.via = NONE_REGISTERED, 0, UNKNOWN, Via.DIRECT
        self.go_away = self.closed = False
        self.active_at = owner.time()
        """When bytes went last, either way (seconds of the loop's clock)."""
        self.deadline = inf
        """When an opening or a close under way must be over."""
        self.direct = False
        """Whether the next bytes begin a plain frame, and nothing keeps it from being answered at once."""
        self.owner = owner
        self._requests: RequestReader | None = None  # before it is open, and when it is disconnected

    # -- the transport calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport = cast(asyncio.Transport, transport)  # uvloop's have no such base class
        transport.set_write_buffer_limits(high=UNREAD_MOST)
        self._replies = ReplyWriter(transport, self.owner.reply_memory, self)
        self._requests = RequestReader(self, self._replies)
        self.owner.opened(self)

    def data_received(self, data: bytes) -> None:
        if self.closed or self._requests is None:
            return
        self.active_at = self.owner.time()
        self.owner.bytes_read += len(data)
        try:
            self._requests.receive(data)
            if (tls := self._replies.tls) is not None and tls.ended:
                self.eof_received()
        except Exception as error:
            self.fail(error)

    def incomplete(self, length: int, received: int) -> None:
        """See `Intake.incomplete`."""
        if self._requests is not None:
            self._requests.intake.incomplete(length, received)

    def check_repeats(self, checks: list[RepeatCheck]) -> None:
        """Have the store asked about repeated requests; called by what found them."""
        self._replies.expect([check.frame for check in checks])
        self.direct = not self._replies.many_due
        for check in checks:
            self.owner.service.check_repeat(check, self)

    def eof_received(self) -> bool:
        """Return whether to stay open: the peer may still wait for replies."""
        if self._requests is not None:
            self._requests.intake.ended = True
        self.close_if_done()
        return not self.closed or self._replies.busy

    def pause_writing(self) -> None:
        self._replies.choke()

    def resume_writing(self) -> None:
        self._replies.unchoke()
        self._write_on()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(End.PEER)
        self.owner.asked -= not self.unasked
        self.incomplete(0, 0)
        self._requests = None
        self._replies.end()
        self.owner.disconnected(self)

    # -- the service calls

    def frame(self) -> bytes:
        """See `Peer`."""
        return self._requests.last_frame if self._requests is not None else b""

    @property
    def tls(self) -> TlsSession | None:
        """See `Peer`."""
        return self._replies.tls

    def send(self, frame: Frames) -> None:
        """Answer one request; see `Peer`."""
        if self.closed:
            return
        replies = self._replies
        replies.add(frame)
        if not replies.gathering:
            replies.gathering = True
            self.owner.call_soon(self._flush)

    def await_long(self) -> None:
        """See `Peer`."""
        self._replies.long_due = True

    def close(self, reason: str, end: End = End.ERROR) -> None:
        """Close once what was sent has gone out; see `Peer`."""
        self.direct = False
        if not self.closed:
            self.write_replies()
        if self.closed:
            return
        self._end(end)
        log.debug("connection %s of %s closed: %s", self.id, self.address, reason)
        self.deadline = self.owner.time() + self.owner.limits.closing_s
        self._replies.close()

    # -- the table of connections calls

    @property
    def busy(self) -> bool:
        """Whether requests wait for replies, or replies for the peer."""
        return self._replies.busy

    @property
    def unasked(self) -> bool:
        """Whether not a byte of a request has come: from a peer that has just connected, it is on its way."""
        return self._requests is not None and self._requests.stage is not Stage.FRAMES

    def overdue(self, now: float) -> str | None:
        """Return why this has to end now, if it has to: silence, or an opening or a close that takes too long."""
        if now >= self.deadline:
            return "not gone in time" if self.closed else f"unfinished {_stage_of(self._requests)}"
        if 0 < self.owner.limits.idle_s <= now - self.active_at:
            if not self._replies.progressed():
                return IDLE
            self.active_at = now
        return None

    def abort(self, reason: str, end: End = End.SLOW) -> None:
        """End at once, whatever has not gone out; nothing in `reason` is the peer's, each is logged now and then."""
        rate_limited.warning(
            f"connection %s of %s cut off: {reason}; a client connects again by itself", self.id, self.address
        )
        self._end(end)
        if self._requests is not None:
            self._replies.abort()

    # -- the request reader calls

    def write_replies(self) -> None:
        """Write what was sent; end if the peer has left too much unread."""
        self._replies.gathering = False
        try:
            if not (self.closed or self._replies.write(self.owner.limits.unread_bytes)):
                self.abort("too much left unread")
        except TlsError as error:
            self.fail(error)
        if self._replies.paused:
            self.direct = False  # what is answered at once would come between the pieces of a reply
            self._write_on()

    def close_if_done(self) -> None:
        """Close if the peer sends no more and has all its replies."""
        intake = None if self._requests is None else self._requests.intake
        if intake is not None and intake.ended and not (intake.paused or self._replies.unanswered):
            self.close("the peer closed", End.PEER)

    def fail(self, error: Exception) -> None:
        """Close because of what the peer sent, or of a fault of this server."""
        if _is_the_peers(error, self):
            self.close(str(error), _end_by(error))
        else:
            self.abort("a fault of this server", End.ERROR)

    # -- inside

    def _end(self, end: End) -> None:
        self.direct = False
        if not self.closed:
            self.closed = True
            self.owner.ended(end)

    def _write_on(self) -> None:
        """Write what was put off, as far as the peer takes it, and go on with its requests once all is written."""
        try:
            if self._replies.write_on():
                self.owner.call_soon(self._write_on)
        except TlsError as error:
            self.fail(error)
        if self._requests is not None:
            self._requests.schedule_slice()

    def _flush(self) -> None:
        """Write what was sent outside a slice."""
        self.active_at = self.owner.time()
        self.write_replies()
        if self._requests is not None:
            self._requests.schedule_slice()
        self.close_if_done()


def _stage_of(requests: RequestReader | None) -> str:
    return "close" if requests is None else requests.stage.value


def _end_by(error: Exception) -> End:
    if isinstance(error, TlsError | TlsUnusable):
        return End.TLS
    return End.LIMIT if isinstance(error, HostFull) else End.ERROR


def _is_the_peers(error: Exception, connection: Connection) -> bool:
    """Log and count why a connection fails; return whether its peer is the cause."""
    if isinstance(error, FrameError):
        connection.owner.unreadable(error.reason)
    if isinstance(error, TlsError | TlsUnusable) and connection.unasked:
        connection.owner.service.counters.security.add("tls", getattr(error, "result", "denied"))
    if isinstance(error, FrameError | ProxyError | TlsError | TlsUnusable | HostFull):
        rate_limited.warning(
            "connection %s of %s closed: %s; find out what connects from there",
            connection.id,
            connection.address,
            error,
        )
        return True
    rate_limited.warning(
        "connection %s of %s met a fault of this server; report it",
        connection.id,
        connection.address,
        error=error,
    )
    return False
