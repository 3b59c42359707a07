"""A small blocking client: one TCP connection, commands or raw bytes out, commands in."""

import itertools
import select
import socket
import ssl
import struct
import time

from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.command import Command, SerializeType, encode
from rocketmq_remoting.frame import FrameReader
from testbed.sockets import far_end

OPAQUES = itertools.count(1000)
ANSWER_S = 5.0
V4_8_0 = 373
V5_3_3 = 479


class Closed(ConnectionError):
    """The server has closed the connection."""


class Connection:
    """One connection to a name server.

    `local` is its own `(ip, port)`, which is what the server sees as the peer's.
    """

    def __init__(
        self,
        port: int,
        *,
        host: str = "127.0.0.1",
        tls: ssl.SSLContext | None = None,
        first: bytes = b"",
        source: str = "",
        resumes: ssl.SSLSession | None = None,
    ) -> None:
        """Connect, from the address `source`; `first` is sent before anything else, also before a TLS handshake, which
        `resumes` an earlier one of the same context."""
        self._socket = socket.create_connection((host, port), ANSWER_S, (source, 0) if source else None)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.local: tuple[str, int] = self._socket.getsockname()
        if first:
            self._socket.sendall(first)
        if tls:
            self._socket = tls.wrap_socket(self._socket, session=resumes)
        self._reader = FrameReader()

    @property
    def tls_session(self) -> ssl.SSLSession | None:
        """Return what resumes the TLS session; over TLS 1.3 there is none before the first reply."""
        return self._socket.session if isinstance(self._socket, ssl.SSLSocket) else None

    @property
    def far_end(self) -> str:
        """Return the server's end, a file of the process that has accepted it."""
        return far_end(self._socket)

    def send(self, data: bytes) -> None:
        """Send raw bytes in one write."""
        self._socket.sendall(data)

    def send_command(self, command: Command) -> None:
        self.send(encode(command))

    def receive(self, within_s: float = ANSWER_S) -> Command:
        """Return the next command; raise Closed when the server closes, TimeoutError when nothing comes."""
        deadline = time.monotonic() + within_s
        while (command := self._reader.next_command()) is None:
            self._socket.settimeout(max(deadline - time.monotonic(), 0.001))
            try:
                data = self._socket.recv(1 << 16)
            except ConnectionResetError as reset:
                raise Closed from reset
            if not data:
                raise Closed
            self._reader.feed(data)
        return command

    def receive_raw(self) -> bytes:
        """Return the next frame as it came, which must be the only one."""
        self._socket.settimeout(ANSWER_S)
        raw = b""
        while len(raw) < 4 or len(raw) < 4 + int.from_bytes(raw[:4], "big"):
            data = self._socket.recv(1 << 16)
            if not data:
                raise Closed
            raw += data
        assert len(raw) == 4 + int.from_bytes(raw[:4], "big")
        return raw

    def ask(
        self,
        code: RequestCode | int,
        ext: dict[str, str] | None = None,
        body: bytes = b"",
        *,
        version: int = V4_8_0,
        serialize_type: SerializeType = SerializeType.JSON,
        within_s: float = ANSWER_S,
    ) -> Command:
        """Send a request and return its reply, which must be the next frame."""
        opaque = next(OPAQUES)
        self.send_command(
            Command(int(code), opaque, 0, version, ext=ext, body=body, serialize_type=serialize_type)
        )
        reply = self.receive(within_s)
        assert (reply.opaque, reply.flag) == (opaque, 1)
        return reply

    def send_oneway(
        self,
        code: RequestCode | int,
        ext: dict[str, str] | None = None,
        body: bytes = b"",
        *,
        version: int = V4_8_0,
    ) -> None:
        """Send a oneway request."""
        self.send_command(Command(int(code), next(OPAQUES), 2, version, ext=ext, body=body))

    def usable(self) -> bool:
        """Return whether the server still replies on this connection."""
        return self.ask(RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS).code == 0

    def silent(self, for_s: float = 0.2) -> bool:
        """Return whether no byte and no end comes for `for_s` seconds."""
        return self._reader.pending == 0 and not select.select([self._socket], [], [], for_s)[0]

    def closed(self, within_s: float = 3.0) -> bool:
        """Return whether the server closes in time without another byte after the last reply."""
        self._socket.settimeout(within_s)
        try:
            return self._reader.pending == 0 and self._socket.recv(1) == b""
        except ConnectionResetError:
            return True
        except TimeoutError:
            return False

    def close(self) -> None:
        self._socket.close()

    def reset(self) -> None:
        """Close with RST, as a crashed host's stack does."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._socket.close()
