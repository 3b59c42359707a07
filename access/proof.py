"""What proves that a caller is a principal, and what only seems to."""

from typing import Literal, TypeAlias

import msgspec

from access.principal import Principal

__all__ = ["AmbiguousCertificate", "BadCredential", "ExpiredCredential", "Proof", "ProofKind"]

ProofKind: TypeAlias = Literal["acl", "token", "mtls"]


class BadCredential(Exception):
    """A credential that is known, and does not prove what it names: wrong, over or revoked. The text has no secret.

    `result` is how it is counted, in `security_events_total`."""

    result = "denied"


class ExpiredCredential(BadCredential):
    """One that would prove what it names if it were not over."""

    result = "expired"


class AmbiguousCertificate(BadCredential):
    """A certificate that two principals match: an operator has to change their patterns."""


class Proof(msgspec.Struct, frozen=True):
    """That a caller is a principal: by which credential, and until when, in Unix seconds.

    `credential` is its id, of an ACL key with the name of the secret's file behind `#`: what was used last."""

    kind: ProofKind
    principal: Principal
    credential: str
    expires: float | None = None

    @property
    def actor(self) -> str:
        """What events name as their actor."""
        return f"{self.kind}:{self.principal.name}"
