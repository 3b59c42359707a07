"""What callers prove: that they are a principal, by a signature, a certificate or a token."""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from tests.guarded.names import allows, matches_certificate
from tests.guarded.signing import verified
from tests.guarded.world import Certificate, Names, Principal, Secret, WireRequest, World

ROLES: Final[Mapping[str, set[str]]] = {
    "reader": {"read"},
    "broker": {"read", "broker"},
    "operator": {"read", "admin", "audit"},
    "admin": {"read", "broker", "admin", "config", "audit", "metrics"},
    "scraper": {"metrics"},
}
TOKEN: Final = re.compile(r"mqns_([a-z0-9]{8})_[A-Za-z0-9_-]{43}")


class Proof(NamedTuple):
    """A principal that a caller has proved to be."""

    kind: str
    name: str
    principal: Principal

    @property
    def actor(self) -> str:
        return f"{self.kind}:{self.name}"

    @property
    def of_roles(self) -> set[str]:
        """The classes of its roles."""
        return set[str]().union(*(ROLES[role] for role in self.principal.roles))

    def classes(self, names: Mapping[str, Names]) -> set[str]:
        """The classes of its roles, without those in which its limits do not have these names."""
        classes = self.of_roles
        limited = {"broker", "admin"} | ({"read"} if self.principal.limit_reads else set())
        allowed = all(
            allows(patterns, names.get(kind, ())) for kind, patterns in self.principal.limits.items()
        )
        return classes if allowed else classes - limited


class Bad:
    """A credential that is known, and proves nothing: wrong, over, revoked, or of two principals."""


BAD: Final = Bad()


def by_signature(world: World, request: WireRequest) -> Proof | Bad | None:
    """Return what the signature of a request proves, None without a key that is known."""
    key = request.fields.get("AccessKey", "")
    for name, principal in world.principals.items():
        if key and key in principal.keys:
            good = any(
                not _is_over(secret, world) and verified(request.fields, request.body, secret.text)
                for secret in principal.keys[key]
            )
            revoked = world.revoked & {f"acl:{key}", f"principal:{name}"}
            return Proof("acl", name, principal) if good and not revoked else BAD
    return None


def by_certificate(world: World, certificate: Certificate | None) -> Proof | Bad | None:
    """By its URIs, else by its DNS names; by its common name where it has neither."""
    if certificate is None:
        return None
    has_others = certificate.uris or certificate.dns
    kinds: tuple[tuple[str, tuple[str, ...]], ...] = (
        ("uri", certificate.uris),
        ("dns", tuple(name.lower() for name in certificate.dns)),
        ("cn", () if has_others or certificate.cn is None else (certificate.cn,)),
    )
    for kind, shown in kinds:
        matching = [
            (name, pattern)
            for name, principal in world.principals.items()
            for pattern in principal.certificates
            if any(matches_certificate(pattern, kind, one) for one in shown)
        ]
        if matching:
            names = {name for name, _ in matching}
            ids = {f"principal:{name}" for name in names} | {without_case(pattern) for _, pattern in matching}
            if len(names) > 1 or world.revoked & ids or certificate.ends <= world.now:
                return BAD
            name = matching[0][0]
            return Proof("mtls", name, world.principals[name])
    return None


def by_token(world: World, text: str) -> Proof | Bad:
    """One that is not known is bad, too: no other server has tokens of this form."""
    form = TOKEN.fullmatch(text.strip())
    if form is None:
        return BAD
    token_id = form[1]
    known = {
        one: (name, principal, token)
        for name, principal in world.principals.items()
        for one, token in principal.tokens.items()
    }
    for one, stored in world.stored.items():
        of_file = world.principals.get(stored.principal)
        if stored.roles is not None:
            limits = (of_file.limits, of_file.limit_reads) if of_file else ({}, False)
            of_file = Principal(stored.roles, *limits)
        if of_file is not None:
            known.setdefault(one, (stored.principal, of_file, stored.token))
    if token_id not in known:
        return BAD
    name, principal, token = known[token_id]
    revoked = world.revoked & {f"token:{token_id}", f"principal:{name}"}
    if token.text != text.strip() or _is_over(token, world) or revoked:
        return BAD
    return Proof("token", name, principal)


def without_case(credential: str) -> str:
    """Return the id of a credential as it is kept: DNS names have no case."""
    return credential.lower() if credential.startswith("dns:") else credential


def _is_over(secret: Secret, world: World) -> bool:
    return secret.ends is not None and secret.ends <= world.now
