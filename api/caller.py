"""The caller of a request over HTTP: where it comes from, what it proves, and what events and remarks name it."""

from typing import TYPE_CHECKING, Final

from access.caller import Caller, caller_at
from access.proof import Proof
from api.trusted_proxies import FORWARDED

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

__all__ = [
    "SESSION",
    "TOKEN_HEADER",
    "actor_of",
    "caller_of",
    "client_in",
    "is_bearer",
    "keep_proof",
    "proof_in",
    "token_in",
]

BEARER: Final = "bearer "
TOKEN_HEADER: Final = "HTTP_AUTHORIZATION"
"""As WSGI names it."""
PROOF: Final = "namesrv.proof"
SESSION: Final = "namesrv.session"
"""Which session the token of a request is from, where it is that of the console's cookie: one that is over is no
guess."""


def token_in(environ: "WSGIEnvironment") -> str | None:
    """Return the text of a request's Authorization that is to be a token; None without one, "" of another scheme."""
    text: str | None = environ.get(TOKEN_HEADER)
    if text is None:
        return None
    return text[len(BEARER) :].strip(" \t") if is_bearer(text) else ""


def is_bearer(authorization: str) -> bool:
    """Return whether an Authorization bears a token, and not what a proxy's own users prove themselves with."""
    return authorization.lower().startswith(BEARER)


def keep_proof(environ: "WSGIEnvironment", proof: Proof) -> None:
    """Note what the token of a request proves."""
    environ[PROOF] = proof


def proof_in(environ: "WSGIEnvironment") -> Proof | None:
    """Return what the token of a request was found to prove."""
    proof: Proof | None = environ.get(PROOF)
    return proof


def caller_of(environ: "WSGIEnvironment") -> Caller:
    """Return the caller of a request, which has passed `api.trusted_proxies`: without that no loopback counts."""
    return caller_at("http", environ.get("REMOTE_ADDR", ""), forwarded=environ.get(FORWARDED, True))


def actor_of(environ: "WSGIEnvironment") -> str:
    """Return the actor of a request: the principal of its token, else the user that a trusted proxy names, else the
    client."""
    if (proof := proof_in(environ)) is not None:
        return proof.actor
    return ":".join(filter(None, ("http", environ.get("REMOTE_USER") or client_in(environ))))


def client_in(environ: "WSGIEnvironment") -> str:
    """Return address and port of a request's client, as far as the server says so."""
    return ":".join(filter(None, map(environ.get, ("REMOTE_ADDR", "REMOTE_PORT"))))
