"""What a connection may carry before its first frame: a PROXY header, then a TLS handshake. No socket."""

from enum import Enum
from math import inf
from typing import Final

from registry.options.tls import TlsMode
from worker.transport.owner import Owner
from worker.transport.proxy_protocol import ProxyHeader, read_proxy_header
from worker.transport.tls import TlsUnusable
from worker.transport.tls_session import TlsSession

__all__ = ["Opening", "Stage"]

TLS_HANDSHAKE: Final = 0x16


class Stage(Enum):
    """How far an opening has come."""

    PROXY = "PROXY header"
    FIRST_BYTE = "first byte"
    HANDSHAKE = "TLS handshake"
    FRAMES = "frames"


class Opening:
    """Takes received bytes until the first of a frame; from then on they are plain, or the TLS session's."""

    __slots__ = ("_begun", "_owner", "deadline", "header", "stage", "tls")

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._begun = b""  # of a PROXY header, incomplete
        self.stage = Stage.PROXY if owner.proxy_protocol else Stage.FIRST_BYTE
        self.deadline = inf
        """When the header or the handshake that has begun must be whole (seconds of the loop's clock)."""
        self.header: ProxyHeader | None = None
        """The PROXY header, if one has come."""
        self.tls: TlsSession | None = None
        """The session, from the first byte of its handshake; its `outgoing` is to be sent."""

    @property
    def begun_bytes(self) -> int:
        """Bytes that have come of a PROXY header, while it is incomplete."""
        return len(self._begun)

    def receive(self, data: bytes) -> bytes:
        """Return the plain bytes of frames in `data`. Raises ProxyError, TlsError, TlsUnusable."""
        if self.stage is Stage.PROXY:
            data = self._begun + data
            header = read_proxy_header(data)
            if header is None:
                self._begun = data
                self._start_deadline()
                return b""
            self._begun = b""
            self.header = header if header.length else None
            self._set_stage(Stage.FIRST_BYTE)
            data = data[header.length :]
        if self.stage is Stage.FIRST_BYTE:
            if not data:
                return b""
            self._take_first_byte(data[0])
        if self.tls is None:
            return data
        plain = self.tls.receive(data)
        if self.tls.established:
            self._set_stage(Stage.FRAMES)
        return plain

    def _take_first_byte(self, byte: int) -> None:
        mode = self._owner.tls.mode
        if byte != TLS_HANDSHAKE:
            if mode is TlsMode.ENFORCING:
                raise TlsUnusable("plain, and TLS is required")
            self._set_stage(Stage.FRAMES)
            return
        if mode is TlsMode.DISABLED:
            raise TlsUnusable("TLS, which is disabled")
        self.tls = self._owner.tls.session()
        self._set_stage(Stage.HANDSHAKE)
        self._start_deadline()

    def _start_deadline(self) -> None:
        if self.deadline == inf:
            self.deadline = self._owner.time() + self._owner.limits.opening_s

    def _set_stage(self, stage: Stage) -> None:
        self.stage = stage
        self.deadline = inf
