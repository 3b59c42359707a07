"""A TLS client and the server's session, joined in memory."""

import ssl

from worker.transport.tls_session import TlsSession


class TlsPair:
    """Moves what either end has to send to the other."""

    def __init__(self, client: ssl.SSLContext, session: TlsSession) -> None:
        self.session = session
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.client = client.wrap_bio(
            self._incoming, self._outgoing, server_side=False, server_hostname="server"
        )

    def to_server(self, cut: int = 0) -> bytes:
        """Everything the client has to send, in pieces of `cut` bytes if not 0; the plain text it carried."""
        data = self._outgoing.read()
        pieces = [data[at : at + cut] for at in range(0, len(data), cut)] if cut else [data]
        plain = b"".join(self.session.receive(piece) for piece in pieces)
        self._incoming.write(self.session.outgoing())
        return plain

    def to_client(self, data: bytes) -> bytes:
        """The plain text the client reads of `data`."""
        self._incoming.write(data)
        plain = b""
        try:
            while piece := self.client.read(1 << 16):
                plain += piece
        except ssl.SSLWantReadError:
            pass
        return plain

    def shake_hands(self, cut: int = 0) -> None:
        """The whole handshake; raises what goes wrong at either end."""
        for _ in range(4):
            try:
                self.client.do_handshake()
                self.to_server(cut)
                return
            except ssl.SSLWantReadError:
                self.to_server(cut)
        raise AssertionError("no end of the handshake")
