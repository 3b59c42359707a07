"""The caller of a request over HTTP: where it comes from, what it proves, and what events and remarks name it."""

from typing import TYPE_CHECKING

import msgspec

from access.caller import Caller, caller_at
from access.classes import AccessClass
from api.trusted_proxies import FORWARDED

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

__all__ = ["Principal", "actor_of", "caller_of", "client_in", "principal_of"]


class Principal(msgspec.Struct, frozen=True):
    """What a bearer token proves: a principal's name, and the classes that its roles have."""

    name: str
    classes: AccessClass


def principal_of(environ: "WSGIEnvironment") -> Principal | None:
    """Return the principal that the bearer token of a request proves; None where it proves none. There are no tokens
    yet, so none does."""
    return None


def caller_of(environ: "WSGIEnvironment", principal: Principal | None = None) -> Caller:
    """Return the caller of a request, which has passed `api.trusted_proxies`: without that no loopback counts."""
    caller = caller_at("http", environ.get("REMOTE_ADDR", ""), forwarded=environ.get(FORWARDED, True))
    return caller if principal is None else msgspec.structs.replace(caller, token=principal.classes)


def actor_of(environ: "WSGIEnvironment") -> str:
    """Return the actor of a request: the user that a trusted proxy names, else the client."""
    return ":".join(filter(None, ("http", environ.get("REMOTE_USER") or client_in(environ))))


def client_in(environ: "WSGIEnvironment") -> str:
    """Return address and port of a request's client, as far as the server says so."""
    return ":".join(filter(None, map(environ.get, ("REMOTE_ADDR", "REMOTE_PORT"))))
