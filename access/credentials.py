"""Credentials: by which a principal is known. Times are Unix seconds; None is no end.

The `id` of one is how it is revoked: `acl:<access key>`, `token:<id>`, or a certificate pattern as it is written, one
of DNS names in lower case."""

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

import msgspec

from access.patterns import Pattern
from registry.secret import Secret

__all__ = [
    *("BOUNDS", "AclKey", "AclSecret", "CertificateKind", "CertificatePattern", "TokenHash"),
    *("id_as_kept", "is_over"),
]

CertificateKind: TypeAlias = Literal["uri", "dns", "cn"]
BOUNDS: Final[Mapping[CertificateKind, str]] = {"uri": "/", "dns": ".", "cn": "."}
"""By kind of name in a certificate: the character that `*` does not pass."""


class AclSecret(msgspec.Struct, frozen=True):
    """A secret of an ACL key; `name` is that of its file."""

    name: str
    secret: Secret
    expires: float | None = None


class AclKey(msgspec.Struct, frozen=True):
    """An access key, and its secrets: two while they are rotated."""

    access_key: str
    secrets: tuple[AclSecret, ...]

    @property
    def id(self) -> str:
        return f"acl:{self.access_key}"

    @property
    def expires(self) -> float | None:
        """When the last of its secrets ends."""
        ends = [secret.expires for secret in self.secrets if secret.expires is not None]
        return max(ends) if len(ends) == len(self.secrets) else None

    def id_of(self, secret: AclSecret) -> str:
        """Return the id under which the uses of a secret are noted: that of the key, and the name of its file."""
        return f"{self.id}#{secret.name}"


class CertificatePattern(msgspec.Struct, frozen=True):
    """Names of certificates, of one kind."""

    kind: CertificateKind
    pattern: Pattern

    @classmethod
    def of(cls, text: str) -> "CertificatePattern":
        """Return what `uri:spiffe://…/broker/*` is, or one of `dns:` or `cn:`. Raises ValueError."""
        for kind, bound in BOUNDS.items():
            if text.startswith(f"{kind}:") and text != f"{kind}:":
                name = text.removeprefix(f"{kind}:")
                if kind != "cn" and not name.isascii():
                    raise ValueError("URIs and DNS names are ASCII, a domain of other letters as xn--…")
                return cls(kind, Pattern.of(name.lower() if kind == "dns" else name, bound))
        raise ValueError("a pattern begins with uri:, dns: or cn:, and has a name behind it")

    @property
    def id(self) -> str:
        return f"{self.kind}:{self.pattern.text}"


class TokenHash(msgspec.Struct, frozen=True):
    """A bearer token, of which the SHA-256 is known, in hexadecimal."""

    token_id: str
    digest: Secret
    expires: float | None = None

    @property
    def id(self) -> str:
        return f"token:{self.token_id}"


def id_as_kept(text: str) -> str:
    """Return the id that a text names, in which DNS names may have any case."""
    return text.lower() if text.startswith("dns:") else text


def is_over(expires: float | None, now: float) -> bool:
    """Return whether a time has come."""
    return expires is not None and expires <= now
