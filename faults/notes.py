"""What is told between the process that judges and those that are brokers."""

import ssl
from typing import Literal, TypeAlias

import msgspec

from client.broker import BrokerConfig
from client.wire.tls import client_context

Kind: TypeAlias = Literal["registers", "registered", "failed", "unregisters", "unregistered"]


class Note(msgspec.Struct, frozen=True):
    """What a broker begins or has been answered, `at` seconds of the monotonic clock, which all processes share.

    `failed` is a registration that came to nothing, and `why`."""

    at: float
    broker: str
    kind: Kind
    why: str = ""


class Tls(msgspec.Struct, frozen=True):
    """Paths of what a peer trusts and of what it shows."""

    trust: str
    certificate: str
    key: str

    def context(self) -> ssl.SSLContext:
        """For its connections."""
        return client_context(trust=self.trust, certificate=self.certificate, key=self.key)


class Spec(msgspec.Struct, frozen=True):
    """What a process of brokers is to do: announce some as long as it runs, and have others come and go."""

    steady: tuple[BrokerConfig, ...] = ()
    passing: tuple[BrokerConfig, ...] = ()
    start_within_s: float = 4.0
    tls: Tls | None = None
