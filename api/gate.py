"""Whether the rules admit a request over HTTP, and what it is answered if they do not."""

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

from access.classes import OPERATORS, AccessClass
from access.policy import Policy
from access.refusal_log import RefusalLog
from access.refusals import remark_of
from api.caller import actor_of, caller_of, principal_of
from registry.options.catalogue import Options

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

__all__ = ["Denial", "Gate"]

log = RefusalLog(logging.getLogger(__name__))


class Denial(NamedTuple):
    """The problem document of a request that is not admitted, and its headers."""

    status: int
    kind: str
    detail: str
    headers: Mapping[str, str]


class Count(Protocol):
    """Counts what the rules say of a request."""

    def __call__(self, *, allowed: bool) -> None: ...


class Gate:
    """The rules of a process. Raises InvalidOption for rules that are none."""

    def __init__(self, options: Options, count: Count) -> None:
        self._policy = Policy.of(options)
        self._count = count

    def denial_of(self, environ: "WSGIEnvironment", needed: AccessClass) -> Denial | None:
        """Return why a request of a class, which has passed `api.trusted_proxies`, is not answered; None if it is.

        Refusals are counted and logged, and of what the rules admit the classes of operators are counted."""
        if not needed:  # OPEN
            return None
        principal = principal_of(environ)
        if needed & self._policy.classes(caller_of(environ, principal)):
            if needed & OPERATORS:
                self._count(allowed=True)
            return None
        self._count(allowed=False)
        remark = remark_of(needed, self._policy.needs(needed, "http"), actor_of(environ))
        observed = self._policy.observes
        if principal is None:
            log.refused(environ.get("REMOTE_ADDR", ""), needed, remark, answered=observed)
        if observed:
            return None
        if principal is not None:
            return Denial(403, "forbidden", remark, {})
        return Denial(401, "unauthenticated", remark, {"WWW-Authenticate": _challenge(environ)})


def _challenge(environ: "WSGIEnvironment") -> str:
    """RFC 6750 section 3: whether a request that proves no principal has tried."""
    return 'Bearer error="invalid_token"' if "HTTP_AUTHORIZATION" in environ else "Bearer"
