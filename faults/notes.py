"""The messages between the judging process and processes of brokers."""

import ssl
from typing import Literal, Self, TypeAlias

import msgspec

from mqns.broker import BrokerConfig
from mqns.remoting.tls import tls_context
from testbed.certificates import Certificates

Kind: TypeAlias = Literal["registers", "registered", "failed", "unregisters", "unregistered"]


class Note(msgspec.Struct, frozen=True):
    """A request that a broker sends, or its reply, `at` seconds of the monotonic clock, which all processes share.

    `failed` is a registration without success, and `why`."""

    at: float
    broker: str
    kind: Kind
    why: str = ""


class Tls(msgspec.Struct, frozen=True):
    """Paths of the CA that a peer trusts, and of its own certificate and key."""

    trust: str
    certificate: str
    key: str

    @classmethod
    def of(cls, certificates: Certificates, subject: str = "client") -> Self:
        """Return those of a peer with the certificate of this subject."""
        folder = certificates.folder
        return cls(*(str(folder / name) for name in ("ca.pem", f"{subject}.pem", f"{subject}.key")))

    def context(self) -> ssl.SSLContext:
        """Return the context of its connections."""
        return tls_context(trust=self.trust, certificate=self.certificate, key=self.key)


class Spec(msgspec.Struct, frozen=True):
    """The brokers of a process: `steady` ones as long as it runs, `passing` ones that come and go."""

    steady: tuple[BrokerConfig, ...] = ()
    passing: tuple[BrokerConfig, ...] = ()
    start_within_s: float = 4.0
    tls: Tls | None = None
