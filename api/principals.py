"""Principals: which there are, what proves them, and tokens and revocations, which are kept in the store."""

from http import HTTPStatus

from apiflask import APIBlueprint
from flask import Response, request

from access.classes import AccessClass
from access.credentials import id_as_kept
from access.tokens import new_token
from api.caller import actor_of
from api.dry_run import dry_run
from api.guard import guard
from api.name_server import name_server, origin
from api.principal_shapes import (
    Caller,
    CreatedToken,
    LimitsAnswer,
    ListedToken,
    PrincipalAnswer,
    PrincipalsAnswer,
    RevocationBody,
    RotationBody,
    TokenBody,
    millis_of,
)
from api.problems import Problem
from api.shapes import Written
from registry import access_tokens, access_uses
from registry.access_tokens import Grant, Token
from registry.errors import InvalidField

bp = APIBlueprint("access", __name__, url_prefix="/v1")


@bp.after_request
def keep_nowhere(response: Response) -> Response:
    """Have no cache keep a token, or what one proves."""
    response.headers["Cache-Control"] = "no-store"
    return response


@bp.after_request
def count_at_once(response: Response) -> Response:
    """Have what was acknowledged here count here from now on; other processes follow within a second."""
    if request.method != "GET" and response.status_code == HTTPStatus.OK:
        guard().changed()
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
        expires_millis=None if proof is None else millis_of(proof.expires),
        classes=tuple(one.label for one in AccessClass if one & classes),
    )


@bp.get("/access/principals")
@bp.output(PrincipalsAnswer)
@bp.doc(operation_id="listPrincipals")
def principals() -> PrincipalsAnswer:
    """Principals, their credentials, when these were used last, and what is revoked"""
    server = name_server()
    revoked = server.run(access_tokens.revoked(server.keys))
    used = server.run(access_uses.uses(server.keys))
    tokens = server.run(access_tokens.read(server.keys))
    return PrincipalsAnswer(
        principals=tuple(PrincipalAnswer.of(one, revoked, used) for one in guard().principals()),
        tokens=tuple(ListedToken.listed(token, used) for token in tokens),
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
    server, credential = name_server(), id_as_kept(json_data.credential)
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
    server, credential = name_server(), id_as_kept(credential)
    principal = _principal_of(credential) or access_tokens.UNKNOWN
    return Written.of(server.run(access_tokens.restore(server.keys, credential, principal, origin())))


def _created(token: Token, text: str) -> CreatedToken:
    return CreatedToken.of(token, token=text if dry_run() is None else "")


def _principal_of(credential: str) -> str | None:
    """Return the name of the principal that a credential proves, or whose id this is."""
    server = name_server()
    for token in server.run(access_tokens.read(server.keys)):
        if credential == f"{access_tokens.TOKEN}{token.id}":
            return token.principal
    return guard().principals().owner_of(credential)
