"""A connection of a malicious client."""

import socket

from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.command import Command
from rocketmq_remoting.version import CURRENT
from testbed.connection import Connection

CLOSED_S = 15.0
"""A TLS handshake may take 10 s."""


class Attacker(Connection):
    """A connection that sends incomplete or malformed data."""

    def end(self) -> None:
        """Close the sending half; replies may still come."""
        self._socket.shutdown(socket.SHUT_WR)

    def rest(self) -> bytes:
        """Return all bytes before the server closes; TimeoutError when it does not close."""
        self._socket.settimeout(CLOSED_S)
        came = b""
        try:
            while data := self._socket.recv(1 << 16):
                came += data
        except ConnectionResetError:
            pass
        return came

    def ask_patiently(
        self, code: RequestCode, ext: dict[str, str], body: bytes, within_s: float, codes: tuple[int, ...]
    ) -> Command:
        """Return the reply, which must have one of these codes, and a remark of one line with code 1."""
        self._socket.settimeout(within_s)
        self.send_command(Command(int(code), 7, version=CURRENT, ext=ext, body=body))
        reply = self.receive(within_s)
        assert (reply.opaque, reply.flag) == (7, 1)
        assert reply.code in codes, reply.remark
        assert reply.code != 1 or len((reply.remark or "").splitlines()) == 1
        return reply
