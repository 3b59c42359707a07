"""Principals: which there are, what proves them, and tokens and revocations, which are kept in the store."""

from typing import Annotated, Final, Literal

from apiflask import APIBlueprint
from flask import Response, request
from pydantic import Field

from access.classes import AccessClass
from access.credentials import AclKey, CertificatePattern, TokenHash
from access.principal import Principal
from access.roles import Role
from access.tokens import new_token
from api.caller import actor_of
from api.guard import guard
from api.name_server import name_server, origin
from api.problems import Problem
from api.shapes import Answer, Body, Int64, Many, Written
from registry import access_tokens
from registry.access_tokens import DAY_MS, VALID_MOST_MS, VALID_MS, Grant, Token
from registry.errors import InvalidField

bp = APIBlueprint("access", __name__, url_prefix="/v1")
KEEP_MS: Final = DAY_MS
"""For how long a token that is rotated is good still, if not said."""

UNKNOWN: Final = "unknown"
"""In the entry of a revocation that is taken back, of what the access file has no more."""
Validity = Annotated[int, Field(ge=1, le=VALID_MOST_MS)]
CredentialId = Annotated[str, Field(min_length=1, max_length=512)]
RoleName = Literal["reader", "broker", "operator", "admin", "scraper"]
PrincipalName = Annotated[str, Field(pattern=f"^{access_tokens.PRINCIPAL_NAME.pattern}$")]


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


class CredentialAnswer(Answer):
    """What proves a principal, never a secret. `expiresMillis` is null without an end."""

    id: str
    kind: Literal["acl", "mtls", "token"]
    expires_millis: int | None
    revoked: bool


class PrincipalAnswer(Answer):
    name: str
    roles: tuple[Role, ...]
    limits: LimitsAnswer
    credentials: tuple[CredentialAnswer, ...]


class PrincipalsAnswer(Answer):
    """Those of the access file, with their tokens of the store; `tokens` are all of the store. `revoked` are ids of
    credentials and principals that the file may have still."""

    principals: tuple[PrincipalAnswer, ...]
    tokens: tuple["TokenAnswer", ...]
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
    def of(cls, token: Token) -> "TokenAnswer":
        return cls(
            token_id=token.id,
            principal=token.principal,
            roles=token.roles,
            created_millis=token.created_ms,
            expires_millis=token.expires_ms,
            by=token.by,
        )


class CreatedToken(TokenAnswer):
    """`token` is shown this once."""

    token: str


class TokenBody(Body):
    """A principal of the access file has its own roles and limits; `roles` are for others, or fewer rights."""

    principal: PrincipalName
    roles: Many[RoleName] | None = None
    valid_millis: Validity = VALID_MS


class RotationBody(Body):
    """For how long the old token is good beside the new one, and how long that is good."""

    keep_millis: Int64 = KEEP_MS
    valid_millis: Validity = VALID_MS


class RevocationBody(Body):
    credential: CredentialId


@bp.after_request
def keep_nowhere(response: Response) -> Response:
    """Have no cache keep a token, or what one proves."""
    response.headers["Cache-Control"] = "no-store"
    return response


@bp.get("/whoami")
@bp.output(Caller)
@bp.doc(operation_id="getCaller")
def whoami() -> Caller:
    """The caller of this request

    What a token proves, and which classes of requests the rules admit its bearer to."""
    proof, classes = guard().caller()
    principal = None if proof is None else proof.principal
    return Caller(
        actor=actor_of(request.environ),
        principal=None if principal is None else principal.name,
        proof="token" if proof is not None else None,
        roles=() if principal is None else tuple(sorted(principal.roles)),
        limits=None if principal is None else LimitsAnswer.of(principal),
        expires_millis=None if proof is None else _millis(proof.expires),
        classes=tuple(one.label for one in AccessClass if one & classes),
    )


@bp.get("/access/principals")
@bp.output(PrincipalsAnswer)
@bp.doc(operation_id="listPrincipals")
def principals() -> PrincipalsAnswer:
    """Principals, their credentials, and what is revoked"""
    server = name_server()
    revoked = server.run(access_tokens.revoked(server.keys))
    return PrincipalsAnswer(
        principals=tuple(_principal(one, revoked) for one in guard().principals()),
        tokens=tuple(map(TokenAnswer.of, server.run(access_tokens.read(server.keys)))),
        revoked=tuple(sorted(revoked)),
    )


@bp.post("/access/tokens")
@bp.input(TokenBody)
@bp.output(CreatedToken)
@bp.doc(operation_id="createToken", responses=[404])
def create_token(json_data: TokenBody) -> CreatedToken:
    """Create a bearer token

    It is shown this once: the store has its SHA-256."""
    if json_data.roles is None and guard().principals().get(json_data.principal) is None:
        detail = f"no principal {json_data.principal!r} in the access file, so roles are needed"
        raise Problem(404, "principal-not-found", detail, field="principal")
    if json_data.roles is not None and not json_data.roles:
        raise InvalidField("roles", "has at least one")
    server, made = name_server(), new_token()
    roles = None if json_data.roles is None else tuple(sorted(json_data.roles))
    grant = Grant(made.id, made.digest, json_data.principal, roles, json_data.valid_millis)
    token = server.run(access_tokens.create(server.keys, grant, origin()))
    return _created(token, made.token.reveal())


@bp.post("/access/tokens/<token_id>/rotate")
@bp.input(RotationBody)
@bp.output(CreatedToken)
@bp.doc(operation_id="rotateToken", responses=[404])
def rotate_token(token_id: str, json_data: RotationBody) -> CreatedToken:
    """Create a token beside another one, which it is to replace"""
    server, made = name_server(), new_token()
    grant = Grant(made.id, made.digest, "", None, json_data.valid_millis)
    token = server.run(access_tokens.rotate(server.keys, token_id, grant, json_data.keep_millis, origin()))
    if token is None:
        raise Problem(404, "token-not-found", f"no token {token_id!r} in the store")
    return _created(token, made.token.reveal())


@bp.post("/access/revocations")
@bp.input(RevocationBody)
@bp.output(Written)
@bp.doc(operation_id="revokeCredential", responses=[404])
def revoke(json_data: RevocationBody) -> Written:
    """Revoke a credential or a principal, by its id

    Each worker follows within a second, whatever the access file says. A token of the store is gone for good."""
    server, credential = name_server(), json_data.credential
    principal = _principal_of(credential)
    if principal is None:
        raise Problem(404, "credential-not-found", f"no credential or principal {credential!r}")
    return Written.of(server.run(access_tokens.revoke(server.keys, credential, principal, origin())))


@bp.delete("/access/revocations/<path:credential>")
@bp.output(Written)
@bp.doc(operation_id="restoreCredential")
def restore(credential: str) -> Written:
    """Take a revocation back

    Without one it changes nothing."""
    server = name_server()
    principal = _principal_of(credential) or UNKNOWN
    return Written.of(server.run(access_tokens.restore(server.keys, credential, principal, origin())))


def _created(token: Token, text: str) -> CreatedToken:
    return CreatedToken(**TokenAnswer.of(token).model_dump(), token=text)


def _principal_of(credential: str) -> str | None:
    """Return the name of the principal that a credential proves, or whose id this is."""
    server = name_server()
    for token in server.run(access_tokens.read(server.keys)):
        if credential == f"{access_tokens.TOKEN}{token.id}":
            return token.principal
    for principal in guard().principals():
        if credential == principal.id or any(credential == one.id for one in _credentials(principal)):
            return principal.name
    return None


def _credentials(principal: Principal) -> tuple[AclKey | CertificatePattern | TokenHash, ...]:
    return (*principal.keys, *principal.certificates, *principal.tokens)


def _principal(principal: Principal, revoked: frozenset[str]) -> PrincipalAnswer:
    return PrincipalAnswer(
        name=principal.name,
        roles=tuple(sorted(principal.roles)),
        limits=LimitsAnswer.of(principal),
        credentials=tuple(
            _credential(one, not revoked.isdisjoint((principal.id, one.id)))
            for one in _credentials(principal)
        ),
    )


def _credential(one: AclKey | CertificatePattern | TokenHash, revoked: bool) -> CredentialAnswer:
    """An access key ends with the last of its secrets."""
    if isinstance(one, CertificatePattern):
        return CredentialAnswer(id=one.id, kind="mtls", expires_millis=None, revoked=revoked)
    if isinstance(one, TokenHash):
        return CredentialAnswer(id=one.id, kind="token", expires_millis=_millis(one.expires), revoked=revoked)
    ends = [secret.expires for secret in one.secrets]
    last = None if None in ends else max(end for end in ends if end is not None)
    return CredentialAnswer(id=one.id, kind="acl", expires_millis=_millis(last), revoked=revoked)


def _millis(expires: float | None) -> int | None:
    return None if expires is None else int(expires * 1000)
