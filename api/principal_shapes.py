"""Shapes of principals, tokens and revocations over HTTP."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from access.credentials import AclKey, CertificatePattern, TokenHash
from access.principal import Principal
from access.roles import Role
from api.shapes import Answer, Body, Int64, Many
from registry import access_tokens
from registry.access_changes import DAY_MS
from registry.access_tokens import VALID_MOST_MS, VALID_MS, Token

KEEP_MS: Final = DAY_MS
"""For how long a token that is rotated is good still, if not said."""
MINUTE_MS: Final = 60_000

Credential = AclKey | CertificatePattern | TokenHash
Minutes = Mapping[str, int]
"""When credentials were used last, by their ids (Unix minutes)."""
Validity = Annotated[int, Field(ge=1, le=VALID_MOST_MS)]
CredentialId = Annotated[str, Field(min_length=1, max_length=512)]
RoleName = Literal["reader", "broker", "operator", "admin", "scraper"]


def _principal_name(text: str) -> str:
    if not access_tokens.PRINCIPAL_NAME.fullmatch(text):
        raise PydanticCustomError("principal_name", access_tokens.PRINCIPAL_FORM)
    return text


PrincipalName = Annotated[
    str,
    AfterValidator(_principal_name),
    Field(json_schema_extra={"pattern": f"^{access_tokens.PRINCIPAL_NAME.pattern}$"}),
]


class LimitsAnswer(Answer):
    """Patterns of names, null where all are allowed."""

    clusters: tuple[str, ...] | None
    brokers: tuple[str, ...] | None
    topics: tuple[str, ...] | None
    kv: tuple[str, ...] | None
    limit_reads: bool

    @classmethod
    def of(cls, principal: Principal) -> "LimitsAnswer":
        limits = principal.limits
        clusters, brokers, topics, kv = (
            None if patterns is None else patterns.texts
            for patterns in (limits.clusters, limits.brokers, limits.topics, limits.kv)
        )
        return cls(clusters=clusters, brokers=brokers, topics=topics, kv=kv, limit_reads=limits.limit_reads)


class Caller(Answer):
    """The caller of this request: `principal` is null of an anonymous one; `classes` are those of requests that the
    rules admit it to over HTTP, within its limits."""

    actor: str
    principal: str | None
    proof: Literal["token"] | None
    roles: tuple[Role, ...]
    limits: LimitsAnswer | None
    expires_millis: int | None
    classes: tuple[str, ...]


class SecretAnswer(Answer):
    """A secret of an ACL key, by the name of its file."""

    file: str
    expires_millis: int | None
    last_used_millis: int | None


class CredentialAnswer(Answer):
    """What proves a principal, never a secret. `expiresMillis` is null without an end, `lastUsedMillis` of one that has
    proved nothing yet; `secrets` are of an ACL key, which ends with the last of them."""

    id: str
    kind: Literal["acl", "mtls", "token"]
    expires_millis: int | None
    last_used_millis: int | None
    revoked: bool
    secrets: tuple[SecretAnswer, ...]

    @classmethod
    def of(cls, one: Credential, used: Minutes, *, revoked: bool) -> "CredentialAnswer":
        kind: Literal["acl", "mtls", "token"] = "acl"
        secrets: tuple[SecretAnswer, ...] = ()
        expires, last_used = None, _used_millis(one.id, used)
        if isinstance(one, CertificatePattern):
            kind = "mtls"
        elif isinstance(one, TokenHash):
            kind, expires = "token", millis_of(one.expires)
        else:
            secrets = tuple(
                SecretAnswer(
                    file=secret.name,
                    expires_millis=millis_of(secret.expires),
                    last_used_millis=_used_millis(one.id_of(secret), used),
                )
                for secret in one.secrets
            )
            expires = millis_of(one.expires)
            last_used = max((at for secret in secrets if (at := secret.last_used_millis)), default=None)
        return cls(
            id=one.id,
            kind=kind,
            expires_millis=expires,
            last_used_millis=last_used,
            revoked=revoked,
            secrets=secrets,
        )


class PrincipalAnswer(Answer):
    name: str
    roles: tuple[Role, ...]
    limits: LimitsAnswer
    credentials: tuple[CredentialAnswer, ...]

    @classmethod
    def of(cls, principal: Principal, revoked: frozenset[str], used: Minutes) -> "PrincipalAnswer":
        return cls(
            name=principal.name,
            roles=tuple(sorted(principal.roles)),
            limits=LimitsAnswer.of(principal),
            credentials=tuple(
                CredentialAnswer.of(one, used, revoked=not revoked.isdisjoint((principal.id, one.id)))
                for one in principal.credentials
            ),
        )


class PrincipalsAnswer(Answer):
    """Those of the access file, with their tokens of the store; `tokens` are all of the store. `revoked` are ids of
    credentials and principals that the file may have still."""

    principals: tuple[PrincipalAnswer, ...]
    tokens: tuple["ListedToken", ...]
    revoked: tuple[str, ...]


class TokenAnswer(Answer):
    """A token of the store. `roles` are its own, null those of its principal; `by` is the actor that created it."""

    token_id: str
    principal: str
    roles: tuple[str, ...] | None
    created_millis: int
    expires_millis: int
    by: str

    @classmethod
    def of(cls, token: Token, /, **more: Any) -> Self:
        return cls(
            token_id=token.id,
            principal=token.principal,
            roles=token.roles,
            created_millis=token.created_ms,
            expires_millis=token.expires_ms,
            by=token.by,
            **more,
        )


class ListedToken(TokenAnswer):
    """`lastUsedMillis` is null of one that has proved nothing yet."""

    last_used_millis: int | None

    @classmethod
    def listed(cls, token: Token, used: Minutes) -> "ListedToken":
        return cls.of(token, last_used_millis=_used_millis(f"{access_tokens.TOKEN}{token.id}", used))


class CreatedToken(TokenAnswer):
    """`token` is shown this once; of a dry run it is empty, and `tokenId` names none."""

    token: str


class TokenBody(Body):
    """A principal of the access file has its own roles and limits; `roles` are for others, or fewer rights."""

    principal: PrincipalName
    roles: Many[RoleName] | None = None
    valid_millis: Validity = VALID_MS


class RotationBody(Body):
    """For how long the old token is good beside the new one, and how long that is good: as long as the old one was
    created for, if not said."""

    keep_millis: Int64 = KEEP_MS
    valid_millis: Validity | None = None


class RevocationBody(Body):
    credential: CredentialId


def millis_of(expires: float | None) -> int | None:
    """Return a time in Unix ms."""
    return None if expires is None else int(expires * 1000)


def _used_millis(credential: str, used: Minutes) -> int | None:
    minute = used.get(credential)
    return None if minute is None else minute * MINUTE_MS
