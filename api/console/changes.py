"""Changes that an operator makes: each is first run dry, shown, and made when the operator confirms it.

A form is sent to its page; `carry_out` answers with what the change would do, and a form that has the same fields and
`confirmed`. Sent again, the change is made, by the same request of the API without `dryRun`."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

import msgspec
from flask import Response, request

from api.console.asking import Headers, ask
from api.console.page import see_other, show
from api.console.session import CSRF
from api.dry_run import PARAMETER

__all__ = ["NOTHING", "Change", "carry_out"]

CONFIRMED: Final = "confirmed"
NOTHING: Final = "nothing"
"""In place of an entry's id, where nothing had to change."""


class Change(msgspec.Struct, frozen=True):
    """A request that changes something, and how it is shown.

    `title` asks (`Drain broker-a?`), `button` does it, `takes_away` shows it as a danger, `remark` is what the operator
    should know besides, `value` a text that is written, in place of `before`. `back` is the path of the page from which
    it comes."""

    title: str
    button: str
    section: str
    back: tuple[str, ...]
    method: str
    target: str
    query: Mapping[str, str | int | None] = {}
    body: Any = None
    headers: Headers = {}
    takes_away: bool = False
    remark: str = ""
    value: str | None = None
    before: str | None = None


def carry_out(change: Change) -> Response:
    """Return what a change would do, or make it where the form confirms that."""
    confirmed = CONFIRMED in request.form
    query = dict(change.query) if confirmed else {**change.query, PARAMETER: "true"}
    reply = ask(change.method, change.target, query, body=change.body, headers=change.headers)
    if confirmed and reply.ok:
        return see_other(*change.back, done=reply.body.get("eventId") or NOTHING)
    fields = [
        (name, value) for name, value in request.form.items(multi=True) if name not in (CSRF, CONFIRMED)
    ]
    return show(
        "change.html",
        change.section,
        status=HTTPStatus.OK if reply.ok else reply.status,
        change=change,
        reply=reply,
        fields=fields,
        confirmed=confirmed,
    )
