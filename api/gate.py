"""Whether the rules admit a request over HTTP, and what it is answered if they do not."""

import logging
from collections.abc import Callable, Mapping
from math import ceil
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from access.caller import Caller
from access.classes import OPERATORS, AccessClass
from access.denials import Denied
from access.failures import Failures
from access.limits import unlimited, within
from access.named import Named
from access.policy import Policy
from access.proof import BadCredential, Proof
from access.refusal_log import RefusalLog
from access.refusals import lacks, remark_of
from api.access_records import AccessRecords
from api.caller import SESSION, TOKEN_HEADER, actor_of, caller_of, client_in, keep_proof, proof_in, token_in
from api.tokens import Tokens
from registry.errors import StoreUnavailable
from registry.options.catalogue import Options
from registry.options.networks import is_in, networks_of
from worker.logs.rate_limited_log import RateLimitedLog

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

__all__ = ["INVALID_TOKEN", "UNAUTHENTICATED", "Admission", "Asked", "Denial", "Gate"]

READING: Final = AccessClass.READ | AccessClass.AUDIT | AccessClass.METRICS
INVALID_TOKEN: Final = 'Bearer error="invalid_token"'
UNAUTHENTICATED, FORBIDDEN, TOO_OFTEN = "unauthenticated", "forbidden", "too-many-requests"

logger = logging.getLogger(__name__)
refusals = RefusalLog(logger)
log = RateLimitedLog(logger)


class Asked(NamedTuple):
    """What a request asks: its class, `operation`, which is its method and route, and what it names. `grants`: it is
    refused while the rules are only observed, too."""

    needed: AccessClass
    operation: str
    named: Callable[[], Named] = Named
    grants: bool = False


class Denial(NamedTuple):
    """The problem document of a request that is not admitted, and its headers."""

    status: int
    kind: str
    detail: str
    headers: Mapping[str, str] = {}


class Admission(NamedTuple):
    """What a request was admitted by."""

    token: str
    caller: Caller
    needed: AccessClass


Count = Callable[[str, str], None]
"""Counts a security event: its operation and its result."""


class Gate:
    """The rules of a process, and the tokens that prove callers; `records` get what the store is to know, None where
    there is no store. Raises InvalidOption for rules that are none."""

    def __init__(self, options: Options, count: Count, tokens: Tokens, records: AccessRecords | None) -> None:
        self._policy = Policy.of(options)
        self._count = count
        self._tokens = tokens
        self._records = records
        self._failures = Failures()
        self._proxies = networks_of(options.http_trusted_proxies)

    @property
    def observes(self) -> bool:
        """Return whether what the rules refuse is answered all the same."""
        return self._policy.observes

    def denial_of(self, environ: "WSGIEnvironment", asked: Asked) -> Denial | None:
        """Return why a request, which has passed `api.trusted_proxies`, is not answered; None if it is.

        Refusals are counted and logged, of known callers also reported, and of what the rules admit the classes of
        operators are counted. Raises StoreUnavailable where only the store knows a token."""
        needed = asked.needed
        if not needed:  # OPEN
            return None
        if (shut_out := self.shut_out(environ)) is not None:
            return shut_out
        try:
            proof = self.proof_of(environ, reads=needed in READING)
        except BadCredential:
            return self._unproven(environ, asked)
        if self._admits(environ, asked, proof):
            if needed & OPERATORS:
                self._count("authz", "allowed")
            return None
        return self._denied(environ, asked, proof)

    def shut_out(self, environ: "WSGIEnvironment") -> Denial | None:
        """Return the refusal of all that a host asks from which too many bad tokens came."""
        left_s = ceil(self._failures.shut_s(environ.get("REMOTE_ADDR", "")))
        if not left_s:
            return None
        detail = f"too many bad tokens came from here; ask again in {left_s} s"
        return Denial(429, TOO_OFTEN, detail, {"Retry-After": str(left_s)})

    def proof_of(self, environ: "WSGIEnvironment", *, reads: bool) -> Proof | None:
        """Return what the token of a request proves, None without one. Raises BadCredential, StoreUnavailable."""
        token = token_in(environ)
        if token is None:
            return None
        try:
            proof = self._tokens.proof(token, reads=reads)
        except BadCredential as error:
            self._count_bad(environ, error, is_guess=token != "" and SESSION not in environ)
            raise
        self._count("authn", "allowed")
        if self._records is not None:
            self._records.used(proof.credential)
        keep_proof(environ, proof)
        return proof

    def admission_of(self, environ: "WSGIEnvironment", needed: AccessClass) -> Admission | None:
        """Return what a request was admitted by, if that may end before its answer does."""
        if proof_in(environ) is None or self._policy.observes:
            return None
        return Admission(token_in(environ) or "", caller_of(environ), needed)

    def admits_still(self, admission: Admission) -> bool:
        """Return whether what admitted a request still does; True while only the store could say. Nothing is counted.

        The rules are those of the process: tokens end alone. A principal keeps the limits that it had."""
        caller = admission.caller
        try:
            proof = self._tokens.proof(admission.token, reads=admission.needed in READING)
        except BadCredential:
            return self._policy.admits(admission.needed, caller)
        except StoreUnavailable:
            return True
        return self._policy.admits(admission.needed, replace(caller, token=proof.principal.classes))

    def classes_of(self, environ: "WSGIEnvironment", proof: Proof | None) -> AccessClass:
        """Return the classes that the rules admit a caller to, within the limits of its principal."""
        caller = caller_of(environ)
        return self._policy.classes(
            caller if proof is None else replace(caller, token=proof.principal.classes)
        )

    def _admits(self, environ: "WSGIEnvironment", asked: Asked, proof: Proof | None) -> bool:
        caller, needed = caller_of(environ), asked.needed
        if proof is None:
            return self._policy.admits(needed, caller)
        classes = unlimited(proof.principal)
        if needed & classes or not needed & proof.principal.classes:
            return self._policy.admits(needed, replace(caller, token=classes))
        classes = within(proof.principal, asked.named(), needed)
        return self._policy.admits(needed, replace(caller, token=classes))

    def _count_bad(self, environ: "WSGIEnvironment", error: BadCredential, *, is_guess: bool) -> None:
        """`is_guess`: not of another scheme, as a proxy passes on what its own users prove themselves with. A trusted
        proxy that names no client is not shut out: many callers are behind it."""
        self._count("authn", error.result)
        host = environ.get("REMOTE_ADDR", "")
        if is_guess and not self._policy.observes and not is_in(host, self._proxies):
            self._failures.add(host)
        log.warning(
            "a token of %s is not accepted: %s; correct it, or find out what guesses there",
            client_in(environ),
            error,
        )

    def _unproven(self, environ: "WSGIEnvironment", asked: Asked) -> Denial | None:
        """Refuse a request whose token is bad, though others may need none for it."""
        if asked.needed in READING and self._admits(environ, asked, None):
            return None
        return self._denied(environ, asked, None)

    def _denied(self, environ: "WSGIEnvironment", asked: Asked, proof: Proof | None) -> Denial | None:
        self._count("authz", "denied")
        needed, observed = asked.needed, self._policy.observes and not asked.grants
        needs = self._policy.needs(needed, "http") + lacks(None if proof is None else proof.principal, needed)
        remark = remark_of(needed, needs, actor_of(environ))
        if proof is None or observed:  # a caller that is known has an entry, but none for what is answered
            refusals.refused(environ.get("REMOTE_ADDR", ""), needed, remark, answered=observed)
        if observed:
            return None
        if proof is not None:
            if self._records is not None:
                self._records.denied(Denied(proof.actor, asked.operation), needed, client_in(environ))
            return Denial(403, FORBIDDEN, remark)
        return Denial(401, UNAUTHENTICATED, remark, {"WWW-Authenticate": _challenge(environ)})


def _challenge(environ: "WSGIEnvironment") -> str:
    """RFC 6750 section 3: whether a request that proves no principal has tried."""
    return INVALID_TOKEN if TOKEN_HEADER in environ else "Bearer"
