"""TLS of one connection: cipher text in, plain text out. No socket, no clock."""

import ssl
from contextlib import suppress
from typing import Final

from access.certificates import CertificateNames, names_of_peer

__all__ = ["TlsError", "TlsSession"]

CERT_HAS_EXPIRED: Final = 10
"""X509_V_ERR_CERT_HAS_EXPIRED of OpenSSL."""
HELLO_MOST: Final = 16 << 10
"""Bytes of a ClientHello: OpenSSL takes memory for all that one announces, up to 128 KiB, with its first bytes."""
OVERHEAD_MOST: Final = 64 << 10
"""Bytes of handshakes and other messages of TLS itself: each makes the server work and answer, and is no request."""
TEXT_WEIGHT: Final = 4
"""Bytes that a byte of plain text may take on its way: a short frame in records of its own takes two or three."""
_HEAD_BYTES: Final = 9  # of a record, and of the message in it
_CLIENT_HELLO: Final = 1
_BLOCK_BYTES: Final = 256 * 1024


class TlsError(Exception):
    """The TLS session has failed; `outgoing` may return an alert for the peer. `result` is how it is counted."""

    def __init__(self, error: Exception) -> None:
        super().__init__(_reason(error))
        self.result = "expired" if getattr(error, "verify_code", 0) == CERT_HAS_EXPIRED else "denied"


class TlsSession:
    """The server's end of a TLS connection that begins with the first byte received."""

    __slots__ = ("_head", "_incoming", "_outgoing", "_overhead", "_ssl", "ended", "established")

    def __init__(self, context: ssl.SSLContext) -> None:
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._ssl = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._head: bytes | None = b""  # of the ClientHello, until it is whole
        self._overhead = 0
        self.established = False
        """Whether the handshake is done."""
        self.ended = False
        """Whether the peer said that it will send no more."""

    def receive(self, data: bytes) -> bytes:
        """Return the plain text in what was received, often none; afterwards `outgoing` may have to be sent.

        Raises TlsError."""
        if self._head is not None:
            self._head += data
            if len(self._head) < _HEAD_BYTES:
                return b""
            data, self._head = self._head, None
            _check_hello(data)
        plain = self._decrypt(data)
        self._overhead = max(0, self._overhead + len(data) - TEXT_WEIGHT * len(plain))
        if self._overhead > OVERHEAD_MOST:
            raise TlsError(ValueError(f"over {OVERHEAD_MOST} bytes that are no text"))
        return plain

    def _decrypt(self, data: bytes) -> bytes:
        self._incoming.write(data)
        plain = []
        try:
            if not self.established:
                self._ssl.do_handshake()
                self.established = True
            while block := self._ssl.read(_BLOCK_BYTES):
                plain.append(block)
            self.ended = True
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self.ended = True
        except (ssl.SSLError, OSError) as error:
            raise TlsError(error) from error
        return b"".join(plain)

    @property
    def certificate(self) -> CertificateNames | None:
        """The names of the peer's certificate, None where none was shown and verified. Raises UnreadableCertificate."""
        return names_of_peer(self._ssl)

    @property
    def has_certificate(self) -> bool:
        """Whether the peer has shown a certificate, which was verified."""
        return self._ssl.getpeercert(binary_form=True) is not None

    def outgoing(self) -> bytes:
        """Return what is to be sent now: handshake messages, an alert."""
        return self._outgoing.read()

    def encrypt(self, plain: bytes) -> bytes:
        """Return what to send so that the peer reads `plain`. Only once the handshake is done; raises TlsError."""
        try:
            self._ssl.write(plain)
        except (ssl.SSLError, OSError) as error:
            raise TlsError(error) from error
        return self._outgoing.read()

    def close_notify(self) -> bytes:
        """Return the close_notify alert, to be sent last; nothing where the handshake was not done."""
        with suppress(ssl.SSLError, ValueError, OSError):  # the peer's own alert is not waited for
            self._ssl.unwrap()
        return self._outgoing.read()


def _check_hello(head: bytes) -> None:
    """Raise TlsError for a ClientHello that is too long, or whose head lies in several records; whether it is one at
    all is for OpenSSL to say."""
    is_cut = int.from_bytes(head[3:5]) < len(head[5:9])
    if is_cut or (head[5] == _CLIENT_HELLO and int.from_bytes(head[6:9]) > HELLO_MOST):
        raise TlsError(ValueError(f"a ClientHello of over {HELLO_MOST} bytes"))


def _reason(error: Exception) -> str:
    reason = getattr(error, "reason", None) or str(error)
    detail = getattr(error, "verify_message", None)
    return f"{reason}: {detail}" if detail else str(reason)
