"""All principals of a process, and what proves that a caller is one (docs/access.md)."""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple, Protocol, Self, TypeVar

from access.certificates import CertificateNames
from access.credentials import AclKey, CertificateKind, CertificatePattern, TokenHash, is_over
from access.limits import UNLIMITED
from access.principal import Principal, StoredToken
from access.proof import AmbiguousCertificate, BadCredential, ExpiredCredential, Proof, ProofKind
from access.tokens import id_of, proves
from rocketmq_remoting.acl_signature import ACCESS_KEY, verifies

__all__ = ["DuplicateCredential", "End", "Principals"]


class DuplicateCredential(ValueError):
    """Two principals have the same credential, or one has it twice."""


class End(NamedTuple):
    """That a credential of a principal is over, since this Unix second."""

    principal: str
    credential: str
    expires: float


class Principals:
    """Looked up by what a caller shows; never changed, only replaced.

    A lookup returns None where nothing of the kind is known: the caller is anonymous then."""

    def __init__(self, principals: Iterable[Principal] = ()) -> None:
        """Raises DuplicateCredential."""
        self._by_name = {principal.name: principal for principal in principals}
        self._keys: dict[str, tuple[Principal, AclKey]] = {}
        self._tokens: dict[str, tuple[Principal, TokenHash]] = {}
        self._certificates: dict[str, tuple[Principal, CertificatePattern]] = {}
        for principal in self:
            _enter(self._keys, principal, principal.keys)
            _enter(self._tokens, principal, principal.tokens)
            _enter(self._certificates, principal, principal.certificates)
        entries = self._certificates.values()
        self._many = [(principal, one) for principal, one in entries if not one.pattern.is_exact]
        self._revoked: frozenset[str] = frozenset()
        self._expiries = self._sorted_expiries()

    def __len__(self) -> int:
        return len(self._by_name)

    def __iter__(self) -> Iterator[Principal]:
        return iter(self._by_name.values())

    def get(self, name: str) -> Principal | None:
        """Return the principal of that name."""
        return self._by_name.get(name)

    def owner_of(self, credential: str) -> str | None:
        """Return the name of the principal that a credential proves, or whose own id this is."""
        ids = ((one.name, {one.id, *(proof.id for proof in one.credentials)}) for one in self)
        return next((name for name, known in ids if credential in known), None)

    def by_signature(self, fields: Mapping[str, str], body: bytes, now: float) -> Proof | None:
        """Return the proof that a signed request gives, None without a known access key. Raises BadCredential.

        A MiB of body takes 0.6 ms for each secret of the key, without the GIL."""
        entry = self._keys.get(f"acl:{fields.get(ACCESS_KEY, '')}")
        if entry is None:
            return None
        principal, key = entry
        self._refuse_revoked(principal, key.id)
        for secret in sorted(key.secrets, key=lambda secret: is_over(secret.expires, now)):
            if verifies(fields, body, secret.secret.reveal()):
                if is_over(secret.expires, now):
                    raise ExpiredCredential(f"{key.id_of(secret)} of principal {principal.name} is over")
                return Proof("acl", principal, key.id_of(secret), secret.expires)
        raise BadCredential(
            f"{key.id} of principal {principal.name}: no secret in force gives this signature"
        )

    def by_token(self, text: str, now: float) -> Proof | None:
        """Return the proof that a bearer token gives, None if its id is not known. Raises BadCredential."""
        token_id = id_of(text)
        entry = self._tokens.get(f"token:{token_id}")
        if entry is None:
            return None
        principal, token = entry
        if not proves(text, token):
            raise BadCredential(f"{token.id} of principal {principal.name}: another token has this id")
        self._refuse_revoked(principal, token.id)
        if is_over(token.expires, now):
            raise ExpiredCredential(f"{token.id} of principal {principal.name} is over")
        return Proof("token", principal, token.id, token.expires)

    def by_certificate(self, names: CertificateNames, now: float) -> Proof | None:
        """Return the proof that a verified certificate gives, None if no principal matches: by its URIs, else its DNS
        names, by its common name where it has neither. Raises BadCredential, AmbiguousCertificate."""
        entries = self._matching("uri", names.uris) or self._matching("dns", names.dns)
        if not entries and names.cn is not None:
            entries = self._matching("cn", (names.cn,))
        if not entries:
            return None
        if len({principal.name for principal, _ in entries}) > 1:
            matched = {principal.name: pattern.id for principal, pattern in entries}
            both = " and ".join(f"{pattern} of principal {name}" for name, pattern in sorted(matched.items()))
            raise AmbiguousCertificate(f"the certificate matches {both}")
        principal, pattern = entries[0]
        self._refuse_revoked(principal, *(one.id for _, one in entries))
        if is_over(names.not_after, now):
            raise ExpiredCredential(f"the certificate of principal {principal.name} is over")
        return Proof("mtls", principal, pattern.id, names.not_after)

    def next_expiry(self, now: float, *kinds: ProofKind) -> float | None:
        """Return the first end of an ACL secret or a token behind `now`, of these kinds or of all, revoked ones too."""
        following = []
        for kind, times in self._expiries.items():
            at = bisect_right(times, now)
            if at < len(times) and (not kinds or kind in kinds):
                following.append(times[at])
        return min(following, default=None)

    def ended(self, since: float, until: float) -> Iterator[End]:
        """Yield secrets of ACL keys and tokens whose end came between these times, if they are not revoked."""
        for of, key in self._keys.values():
            for secret in key.secrets:
                end = secret.expires
                if end is not None and since <= end <= until and not self._is_revoked(of, key.id):
                    yield End(of.name, key.id_of(secret), end)
        for of, token in self._tokens.values():
            end = token.expires
            if end is not None and since <= end <= until and not self._is_revoked(of, token.id):
                yield End(of.name, token.id, end)

    def first_ends(self, now: float) -> Mapping[ProofKind, float | None]:
        """Return when the first ACL key and the first token end behind `now`, of those that are not revoked. A key ends
        with the last of its secrets."""
        ends: Mapping[ProofKind, list[float | None]] = {
            "acl": [key.expires for of, key in self._keys.values() if not self._is_revoked(of, key.id)],
            "token": [one.expires for of, one in self._tokens.values() if not self._is_revoked(of, one.id)],
        }
        return {
            kind: min((end for end in of_kind if end is not None and end > now), default=None)
            for kind, of_kind in ends.items()
        }

    def without(self, revoked: Collection[str]) -> Self:
        """Return these principals with exactly these ids revoked, of credentials and of principals.

        What is revoked stays known: it is bad, not anonymous."""
        copy = self._copy()
        copy._revoked = frozenset(revoked)
        return copy

    def with_tokens(self, tokens: Iterable[StoredToken]) -> Self:
        """Return these principals with more tokens. Of two with one id the first counts, behind those of principals
        themselves. One without roles, whose principal is not known, is left out."""
        copy = self._copy()
        copy._tokens = dict(self._tokens)
        for stored in tokens:
            principal = self.get(stored.principal)
            if stored.roles is not None:
                limits = principal.limits if principal else UNLIMITED
                principal = Principal(stored.principal, stored.roles, limits)
            if principal is not None:
                copy._tokens.setdefault(stored.token.id, (principal, stored.token))
        copy._expiries = copy._sorted_expiries()
        return copy

    def _copy(self) -> Self:
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        return copy

    def _refuse_revoked(self, principal: Principal, *credentials: str) -> None:
        if self._is_revoked(principal, *credentials):
            raise BadCredential(f"{credentials[0]} of principal {principal.name} is revoked")

    def _is_revoked(self, principal: Principal, *credentials: str) -> bool:
        return bool(self._revoked) and not self._revoked.isdisjoint((principal.id, *credentials))

    def _matching(
        self, kind: CertificateKind, names: Iterable[str]
    ) -> list[tuple[Principal, CertificatePattern]]:
        exact = [self._certificates[of] for name in names if (of := f"{kind}:{name}") in self._certificates]
        many = [
            (principal, one)
            for principal, one in self._many
            if one.kind == kind and any(map(one.pattern.matches, names))
        ]
        return exact + many

    def _sorted_expiries(self) -> Mapping[ProofKind, list[float]]:
        secrets = (secret.expires for _, key in self._keys.values() for secret in key.secrets)
        tokens = (token.expires for _, token in self._tokens.values())
        return {
            "acl": sorted(expires for expires in secrets if expires is not None),
            "token": sorted(expires for expires in tokens if expires is not None),
        }


class _HasId(Protocol):
    @property
    def id(self) -> str: ...


T = TypeVar("T", bound=_HasId)


def _enter(table: dict[str, tuple[Principal, T]], principal: Principal, credentials: Iterable[T]) -> None:
    for credential in credentials:
        before, _ = table.setdefault(credential.id, (principal, credential))
        if table[credential.id][1] is not credential:
            names = dict.fromkeys((before.name, principal.name))
            raise DuplicateCredential(f"{credential.id} is of principal {' and '.join(names)} more than once")
