"""A connection of somebody who means ill."""

import socket

from remoting.codes import RequestCode
from remoting.command import Command
from remoting.version import CURRENT
from tests.harness.connection import Connection

CLOSED_S = 15.0
"""A handshake that was begun may take 10 s."""


class Attacker(Connection):
    """One that says half of what it should, and looks on."""

    def end(self) -> None:
        """Say that no more comes; answers may still."""
        self._socket.shutdown(socket.SHUT_WR)

    def rest(self) -> bytes:
        """All that still comes before the server closes; TimeoutError when it does not."""
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
        """The answer, of one of these codes and with a remark of one line if it is a refusal."""
        self._socket.settimeout(within_s)
        self.send_command(Command(int(code), 7, version=CURRENT, ext=ext, body=body))
        answer = self.receive(within_s)
        assert (answer.opaque, answer.flag) == (7, 1)
        assert answer.code in codes, answer.remark
        assert answer.code != 1 or len((answer.remark or "").splitlines()) == 1
        return answer
