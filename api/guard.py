"""Refuses requests that the rules do not admit, before anything is done for them: the store is not asked."""

from collections.abc import Callable
from functools import partial
from typing import Final

from flask import Flask, current_app, request

from access.classes import AccessClass
from access.live import Take
from access.principals import Principals
from access.proof import BadCredential, Proof
from access.records import Records
from access.start_check import is_insecure
from api.access_classes import GRANTS, HTTP
from api.access_records import AccessRecords
from api.caller import proof_in
from api.counters import COUNTERS
from api.gate import INVALID_TOKEN, UNAUTHENTICATED, Admission, Asked, Gate
from api.named import named_by
from api.problems import Problem
from api.tokens import Tokens
from registry.options.catalogue import Options

__all__ = ["Guard", "guard", "install"]

EXTENSION: Final = "guard"


class Guard:
    """The rules of an application, by its endpoints. Raises InvalidOption for bad rules."""

    def __init__(self, options: Options, tokens: Tokens, records: AccessRecords) -> None:
        self._gate = Gate(options, COUNTERS.secured, tokens, records)
        self._tokens = tokens
        self.is_insecure: Final = is_insecure(options)

    def check(self) -> None:
        """Raise the Problem of a request that is not admitted. One without a route has its 404 from Flask."""
        if request.routing_exception is not None:
            return
        needed = HTTP.get(request.endpoint or "")
        if needed is None:
            raise Problem(403, "forbidden", "access denied: this path has no class of access; report it")
        operation = f"{request.method} {request.url_rule}"
        asked = Asked(needed, operation, lambda: named_by(request), request.endpoint in GRANTS)
        denial = self._gate.denial_of(request.environ, asked)
        if denial is not None:
            raise Problem(denial.status, denial.kind, denial.detail, headers=denial.headers)

    def caller(self) -> tuple[Proof | None, AccessClass]:
        """Return what the token of this request proves, and the classes that the rules admit its caller to. Raises the
        Problem of a bad token."""
        if (shut_out := self._gate.shut_out(request.environ)) is not None:
            raise Problem(shut_out.status, shut_out.kind, shut_out.detail, headers=shut_out.headers)
        try:
            proof = self._gate.proof_of(request.environ, reads=True)
        except BadCredential:
            challenge = {"WWW-Authenticate": INVALID_TOKEN}
            raise Problem(401, UNAUTHENTICATED, "this token proves no principal", headers=challenge) from None
        return proof, self._gate.classes_of(request.environ, proof)

    @property
    def observes(self) -> bool:
        """Return whether what the rules refuse is answered all the same."""
        return self._gate.observes

    def admission(self) -> Admission | None:
        """Return what this request was admitted by, if that may end before its answer does."""
        return self._gate.admission_of(request.environ, HTTP[request.endpoint or ""])

    def admits_still(self, admission: Admission | None) -> bool:
        """Return whether what admitted a request still does."""
        return admission is None or self._gate.admits_still(admission)

    def admits(self, needed: AccessClass) -> bool:
        """Return whether the rules admit the caller of this request, which was checked, to another class, too."""
        return bool(needed & self._gate.classes_of(request.environ, proof_in(request.environ)))

    def principals(self) -> Principals:
        """Return all principals, those of the access file and of tokens in the store."""
        return self._tokens.principals()

    def access_file_refused(self) -> str | None:
        """Return why the access file, as it is now, is not in force; None while it is."""
        return self._tokens.refused()

    def changed(self) -> None:
        """Judge the next request by what this one has stored of tokens and revocations."""
        self._tokens.read_again()


def install(
    app: Flask, options: Options, follow: Callable[[Take], None], write: Callable[[Records], None]
) -> None:
    """Have all requests of an application checked, before all that is registered later; `follow` has what
    the store has of principals taken, `write` writes records of access."""
    records = Records()
    tokens = Tokens(options.access_file, partial(COUNTERS.secured, "config"), follow)
    app.extensions[EXTENSION] = Guard(options, tokens, AccessRecords(records, partial(write, records)))
    COUNTERS.first_ends = tokens.first_ends
    COUNTERS.last_reload = tokens.last_reload_successful
    app.before_request(app.extensions[EXTENSION].check)


def guard() -> Guard:
    """Return the guard of the application that handles this request."""
    of_app: Guard = current_app.extensions[EXTENSION]
    return of_app
