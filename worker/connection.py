"""One accepted connection: bytes of the socket to commands for the service, and its answers back.

At its start a connection may carry a PROXY header, then its first byte tells TLS from plain frames. Input is
taken in turns of bounded work, and not at all while much is unanswered or unread, so that no peer can make a
worker hold more than a bounded part of its memory or keep the others waiting."""

import asyncio
import logging
from collections.abc import Callable
from enum import Enum
from math import inf
from time import perf_counter
from typing import Final, Protocol, cast

import msgspec

from remoting.frame import FrameError, FrameReader
from remoting.remoting_command import ONEWAY_FLAG, RESPONSE_FLAG, Command
from worker.known_frames import Due, KnownFrames
from worker.long_frames import LONG, LongFrames
from worker.peer import NONE_REGISTERED, Frames, Peer
from worker.proxy_protocol import ProxyError, read_proxy_header
from worker.rationed_log import RationedLog
from worker.tls import ServerTls, TlsMode, TlsUnusable
from worker.tls_session import TlsError, TlsSession

__all__ = ["Connection", "Dispatch", "Limits", "Owner"]

log = logging.getLogger(__name__)
rationed = RationedLog(log)

TURN_COMMANDS: Final = 256
TURN_S: Final = 0.001
"""Commands of one connection, and time for them, before the others have their turn."""
UNANSWERED_MOST: Final = 1024
UNANSWERED_BYTES_MOST: Final = 32 << 20
"""Requests handed over and not answered, and bytes of their bodies, beyond which no more are read."""
UNREAD_MOST: Final = 256 << 10
"""Bytes of answers not yet taken by the peer's system beyond which no more requests are read."""
TLS_HANDSHAKE: Final = 0x16


class Dispatch(Protocol):
    """What answers the requests: `worker.service.Service`."""

    long_frames: LongFrames

    def handle(self, command: Command, peer: Peer) -> None: ...
    def known(self) -> KnownFrames | None: ...
    def known_of(self, peer: Peer) -> KnownFrames | None: ...
    def ask_again(self, due: Due, peer: Peer) -> None: ...
    def connected(self, peer: Peer) -> None: ...  # its address may change until the first command
    def disconnected(self, peer: Peer, *, shutting_down: bool) -> None: ...


class Limits(msgspec.Struct, frozen=True):
    """Bounds of each connection of a worker, and of their number."""

    idle_s: float
    """Seconds without a byte read or written after which a connection is closed; 0 is never."""
    connections: int
    """How many at once; 0 is any number."""
    unread_bytes: int
    """A peer is cut off when it has left more than so many bytes of answers unread and another is due."""
    opening_s: float = 10.0
    """Seconds for a PROXY header or a TLS handshake, once begun."""
    closing_s: float = 5.0
    """Seconds for a peer to take the last answers of a connection that is closed."""


class Owner(Protocol):
    """What all connections of a worker share: `worker.connections.Connections`."""

    limits: Limits
    service: Dispatch
    tls: ServerTls
    proxy_protocol: bool
    time: Callable[[], float]
    soon: Callable[[Callable[[], None]], object]

    def joined(self, connection: "Connection") -> None: ...
    def lost(self, connection: "Connection") -> None: ...


class Stage(Enum):
    """How far a connection's start has come."""

    PROXY = "PROXY header"
    FIRST_BYTE = "first byte"
    HANDSHAKE = "TLS handshake"
    OPEN = "frames"


class Connection(asyncio.Protocol):
    """A `worker.peer.Peer`."""

    __slots__ = (
        "_choked",
        "_early",
        "_ended",
        "_flush_due",
        "_held",
        "_long",
        "_out",
        "_out_bytes",
        "_owner",
        "_reader",
        "_stage",
        "_tls",
        "_transport",
        "_turn_due",
        "_unanswered",
        "_unanswered_bytes",
        "_unread_seen",
        "address",
        "closed",
        "direct",
        "due",
        "id",
        "leaving",
        "registered",
        "seen",
    )

    def __init__(self, id: str, address: str, owner: Owner) -> None:
        self.id = id
        self.address = address
        self.registered = NONE_REGISTERED
        self.leaving = False
        self.closed = False
        self.seen = owner.time()
        """When bytes went last, either way (seconds of the loop's clock)."""
        self.due = inf
        """When a start or an end under way must be over."""
        self._owner = owner
        self._transport: asyncio.Transport | None = None
        self._stage = Stage.PROXY if owner.proxy_protocol else Stage.FIRST_BYTE
        self._early = b""  # of a PROXY header
        self._tls: TlsSession | None = None
        self._reader: FrameReader | None = None
        self._out: list[bytes] = []
        self._out_bytes = 0
        self._flush_due = False
        self._turn_due = False
        self._held = False  # input waits
        self._long = False  # it begins a long frame
        self._choked = False  # the transport has more than enough
        self.direct = False
        """Whether the next bytes begin a plain frame, and nothing keeps it from being answered at once."""
        self._ended = False  # the peer sends no more
        self._unanswered = 0
        self._unanswered_bytes = 0
        self._unread_seen = 0

    # -- the transport calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are none by class
        self._transport.set_write_buffer_limits(high=UNREAD_MOST)
        self._owner.joined(self)

    def data_received(self, data: bytes) -> None:
        self.seen = self._owner.time()
        try:
            if self.direct and not self._choked:
                data = self._unknown(data)
                if not data:
                    return
            plain = data if self._stage is Stage.OPEN and self._tls is None else self._opened(data)
            if plain and self._reader is not None:
                self._reader.feed(plain)
                self._turn()
            if self._tls is not None and self._tls.ended:
                self.eof_received()
        except Exception as error:
            self._failed(error)

    def wants(self, length: int) -> None:
        """A frame of so many bytes has begun, of which more are needed; 0 when there is none, or it is whole.

        Reads on, as far as it is a long one, when there is room for it."""
        if self._long is (length > LONG):
            return
        self._long = not self._long
        if not self._long:
            self._owner.service.long_frames.end(self)
        elif not self._owner.service.long_frames.begin(self, length) and self._transport is not None:
            self._transport.pause_reading()

    def read_on(self) -> None:
        """There is room for the long frame that has begun."""
        if self._transport is not None and not (self.closed or self._ended):
            self._transport.resume_reading()

    def ask_again(self, due: list[Due]) -> None:
        """Requests known by their bytes, which the store has to be asked for; called by who found them."""
        self._unanswered += len(due)
        self.direct = not self._much_unanswered
        for one in due:
            self._owner.service.ask_again(one, self)

    def eof_received(self) -> bool:
        """Whether to stay open: a peer that has said all it had to say may still wait for answers."""
        self._ended = True
        self._end_if_done()
        return not self.closed

    def pause_writing(self) -> None:
        self._choked = True

    def resume_writing(self) -> None:
        self._choked = False
        self._go_on()

    def connection_lost(self, exc: Exception | None) -> None:
        self.direct, self.closed = False, True
        self._transport = self._tls = self._reader = None
        self._out.clear()
        self.wants(0)
        self._owner.lost(self)

    # -- the service calls

    def frame(self) -> bytes:
        """See `Peer`."""
        return self._reader.last_frame if self._reader is not None else b""

    def send(self, frame: Frames) -> None:
        """Answer one request; see `Peer`."""
        if self.closed:
            return
        if isinstance(frame, tuple):
            self._out.extend(frame)
            self._out_bytes += sum(map(len, frame))
        else:
            self._out.append(frame)
            self._out_bytes += len(frame)
        if self._unanswered:
            self._unanswered -= 1
            if not self._unanswered:
                self._unanswered_bytes = 0
        if not self._flush_due:
            self._flush_due = True
            self._owner.soon(self._flush)

    def close(self, reason: str) -> None:
        """Close once what was sent has gone out; see `Peer`."""
        self.direct = False
        if self.closed:
            return
        self._write()
        if self.closed or self._transport is None:
            return
        self.closed = True
        log.debug("connection %s of %s closed: %s", self.id, self.address, reason)
        self.due = self._owner.time() + self._owner.limits.closing_s
        if self._tls is not None:
            self._transport.write(self._tls.farewell())
        self._transport.close()

    # -- the table of connections calls

    @property
    def busy(self) -> bool:
        """Whether requests wait for answers, or answers for the peer."""
        return self._unanswered > 0 or self._out_bytes > 0 or self._unread > 0

    def overdue(self, now: float) -> str | None:
        """Why this has to end now, if it has to: silence, or a start or an end that takes too long."""
        if now >= self.due:
            return "not gone in time" if self.closed else f"unfinished {self._stage.value}"
        idle_s = self._owner.limits.idle_s
        if not idle_s or now - self.seen < idle_s:
            return None
        if (unread := self._unread) != self._unread_seen:  # the peer does take what was written long ago
            self._unread_seen = unread
            self.seen = now
            return None
        return "idle"

    def abort(self, reason: str) -> None:
        """End at once, whatever has not gone out."""
        rationed.warning("connection %s of %s cut off: %s", self.id, self.address, reason)
        self.direct, self.closed = False, True
        if self._transport is not None:
            self._transport.abort()

    # -- inside

    @property
    def _unread(self) -> int:
        return self._transport.get_write_buffer_size() if self._transport is not None else 0

    def _opened(self, data: bytes) -> bytes:
        """The plain bytes of frames in `data`; what comes before them takes the stage on."""
        if self.closed:
            return b""
        if self._stage is Stage.PROXY:
            data = self._early + data
            header = read_proxy_header(data)
            if header is None:
                self._early = data
                self._bound()
                return b""
            self._early = b""
            self.address = header.source or self.address
            data = data[header.length :]
            self._stage, self.due = Stage.FIRST_BYTE, inf
        if self._stage is Stage.FIRST_BYTE:
            if not data:
                return b""
            self._take_first_byte(data[0])
        if self._tls is None:
            return data
        try:
            plain = self._tls.receive(data)
        finally:  # an alert explains the failure to the peer
            if self._transport is not None and (outgoing := self._tls.outgoing()):
                self._transport.write(outgoing)
        if self._tls.established and self._stage is Stage.HANDSHAKE:
            self._stage, self.due = Stage.OPEN, inf
        return plain

    def _take_first_byte(self, byte: int) -> None:
        tls = self._owner.tls
        self._reader = FrameReader()
        if byte != TLS_HANDSHAKE:
            if tls.mode is TlsMode.ENFORCING:
                raise TlsUnusable("plain, and TLS is required")
            self._stage = Stage.OPEN
            return
        if tls.mode is TlsMode.DISABLED:
            raise TlsUnusable("TLS, which is disabled")
        self._tls = tls.session()
        self._stage = Stage.HANDSHAKE
        self._bound()

    def _bound(self) -> None:
        if self.due == inf:
            self.due = self._owner.time() + self._owner.limits.opening_s

    def _unknown(self, data: bytes) -> bytes:
        """What is left of `data` after the requests at its start that are known by their bytes."""
        known = self._owner.service.known_of(self)
        if known is None:
            return data
        answers, length, due = known.answers(data, self.seen, UNREAD_MOST)
        if answers and self._transport is not None:
            self._transport.write(b"".join(answers))
        if due:
            self.ask_again(due)
        return data[length:] if length else data

    def _turn(self) -> None:
        """Hand over what has arrived, as far as this connection's turn goes, and write the answers."""
        reader, handle = self._reader, self._owner.service.handle
        if reader is None or self.closed:
            return
        if self._choked:
            self._hold()
            return
        self._flush_due = True  # the answers of this turn leave together at its end
        until = perf_counter() + TURN_S
        for _ in range(TURN_COMMANDS):
            command = reader.next_command()
            if command is None:
                if self._held:
                    self._release()
                break
            if self._long:
                self.wants(0)
            flag = command.flag
            if flag & RESPONSE_FLAG:
                continue
            if not flag & ONEWAY_FLAG:
                self._unanswered += 1
                self._unanswered_bytes += len(command.body)
            handle(command, self)
            if self.closed:
                return
            if self._out_bytes >= UNREAD_MOST or self._much_unanswered or perf_counter() >= until:
                self._hold()
                break
        else:
            self._hold()
        self.wants(reader.wanted)
        if not self._held:
            reader.let_go()
        self._flush_due = False
        self._write()
        self.direct = self._tls is None and not (self._held or reader.pending or self._much_unanswered)
        if self._held:
            self._go_on()
        if self._ended:
            self._end_if_done()

    @property
    def _much_unanswered(self) -> bool:
        return self._unanswered >= UNANSWERED_MOST or self._unanswered_bytes >= UNANSWERED_BYTES_MOST

    def _next_turn(self) -> None:
        self._turn_due = False
        self.seen = self._owner.time()
        try:
            self._turn()
        except Exception as error:
            self._failed(error)

    def _go_on(self) -> None:
        """Have another turn if input waits and need not."""
        if self._held and not (self._turn_due or self._choked or self._much_unanswered):
            self._turn_due = True
            self._owner.soon(self._next_turn)

    def _hold(self) -> None:
        if not self._held and self._transport is not None:
            self._held = True
            if not self._ended:
                self._transport.pause_reading()

    def _release(self) -> None:
        if self._held and self._transport is not None:
            self._held = False
            if not self._ended:
                self._transport.resume_reading()

    def _flush(self) -> None:
        """Write what was sent outside a turn."""
        self._flush_due = False
        self.seen = self._owner.time()
        try:
            self._write()
        except TlsError as error:
            self._failed(error)
        self._go_on()
        self._end_if_done()

    def _write(self) -> None:
        transport, out = self._transport, self._out
        if not out or self.closed or transport is None:
            return
        if transport.get_write_buffer_size() > self._owner.limits.unread_bytes:
            self.abort("too much left unread")
            return
        data = out[0] if len(out) == 1 else b"".join(out)
        out.clear()
        self._out_bytes = 0
        transport.write(data if self._tls is None else self._tls.encrypt(data))

    def _end_if_done(self) -> None:
        if self._ended and not self._unanswered and not self._held:
            self.close("the peer closed")

    def _failed(self, error: Exception) -> None:
        """Close because of what the peer sent, or of a fault of ours."""
        if isinstance(error, FrameError | ProxyError | TlsError | TlsUnusable):
            rationed.warning("connection %s of %s closed: %s", self.id, self.address, error)
            self.close(str(error))
        else:
            rationed.warning("connection %s of %s met a fault of ours", self.id, self.address, error=error)
            self.abort("a fault of ours")
