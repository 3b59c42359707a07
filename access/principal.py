"""A principal: a name with roles, limits and credentials."""

from collections.abc import Iterator
from typing import Self

import msgspec

from access.credentials import AclKey, CertificatePattern, TokenHash
from access.limits import UNLIMITED, Limits
from access.roles import Role
from registry.access_tokens import Token

__all__ = ["Principal", "StoredToken"]


class Principal(msgspec.Struct, frozen=True):
    """What it may ask, and how it is known."""

    name: str
    roles: frozenset[Role]
    limits: Limits = UNLIMITED
    keys: tuple[AclKey, ...] = ()
    certificates: tuple[CertificatePattern, ...] = ()
    tokens: tuple[TokenHash, ...] = ()

    @property
    def id(self) -> str:
        """By which all of its credentials are revoked at once."""
        return f"principal:{self.name}"

    @property
    def credentials(self) -> Iterator[AclKey | CertificatePattern | TokenHash]:
        """Yield all of its credentials."""
        yield from self.keys
        yield from self.certificates
        yield from self.tokens

    @property
    def classes(self) -> int:
        """The classes of its roles as a number, a bit each."""
        bits = 0
        for role in self.roles:
            bits |= role.classes
        return bits


class StoredToken(msgspec.Struct, frozen=True):
    """A token that is stored elsewhere than with its principal.

    With `roles` it has these instead of its principal's, whose limits it has all the same; the principal need not be
    known otherwise then."""

    principal: str
    token: TokenHash
    roles: frozenset[Role] | None = None

    @classmethod
    def of(cls, token: Token) -> Self | None:
        """Return a token of the store; None for one with a role that this release does not know."""
        try:
            roles = None if token.roles is None else frozenset(map(Role, token.roles))
        except ValueError:
            return None
        return cls(token.principal, TokenHash(token.id, token.digest, token.expires_ms / 1000), roles)
