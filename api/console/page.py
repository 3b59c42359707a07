"""A page of the console: who looks at it, what it links to, and the headers by which a browser loads nothing else."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

import msgspec
from flask import Response, g, render_template, request

from access.classes import AccessClass
from api.caller import SESSION
from api.console import formats
from api.console.asking import Reply, ask, path
from api.console.blueprint import PREFIX, bp
from api.console.session import form_proof
from api.console.times import as_typed
from api.path_names import encoded
from mqns.event_words import words_of
from registry.errors import StoreUnavailable
from rocketmq_remoting.permission import perm_text

__all__ = [
    "SECTIONS",
    "Section",
    "SessionOver",
    "caller",
    "here",
    "is_live_part",
    "link",
    "may",
    "see_other",
    "show",
]

HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Nothing is loaded from another host, none is asked, no other page shows this one, and no cache keeps it. With
`same-origin` a form of a page has an Origin, which `api.cross_site` asks for."""


class Section(msgspec.Struct, frozen=True):
    """A part of the console, as its navigation has it: the path below `/console`, and the class that it needs."""

    name: str
    title: str
    needed: AccessClass


SECTIONS: Final = (
    Section("", "Overview", AccessClass.READ),
    Section("brokers", "Brokers", AccessClass.READ),
    Section("topics", "Topics", AccessClass.READ),
    Section("drains", "Drains", AccessClass.READ),
    Section("events", "Events", AccessClass.AUDIT),
    Section("audit", "Audit", AccessClass.AUDIT),
    Section("findings", "Findings", AccessClass.AUDIT),
    Section("reports", "Reports", AccessClass.AUDIT),
    Section("history", "History", AccessClass.AUDIT),
    Section("kv", "KV", AccessClass.READ),
    Section("settings", "Settings", AccessClass.CONFIG),
)


class SessionOver(Exception):
    """The token of this session proves no principal any more."""


def caller() -> Reply:
    """Return the API's word on the caller of this request, asked once. Raises SessionOver."""
    if "caller" not in g:
        reply = ask("GET", path("whoami"))
        if reply.status == HTTPStatus.UNAUTHORIZED and SESSION in request.environ:
            raise SessionOver
        g.caller = reply
    known: Reply = g.caller
    return known


def may(needed: AccessClass) -> bool:
    """Return whether the rules admit the caller of this page to a class."""
    return caller().ok and needed.label in caller().body["classes"]


def is_live_part() -> bool:
    """Return whether only the live part of a page is asked for: what stands beside it need not be asked."""
    return "HX-Request" in request.headers


def link(*parts: str, **query: Any) -> str:
    """Return the path to a page of the console, relative to this one: so it leads on behind any proxy."""
    up = "../" * (request.path.count("/") - 1)
    below = map(encoded, parts if any(parts) else ())  # a name may be empty, as the overview's is
    target = "/".join((f"{up}{PREFIX.removeprefix('/')}", *below))
    return target + formats.query(query)


def here(**query: Any) -> str:
    """Return the path to this page, with other parameters where they are given, without those that are None."""
    given = {**request.args.to_dict(), **query}
    return "./" + request.path.rpartition("/")[2] + formats.query(given)  # a name may look like a scheme


def onward() -> str:
    """Return this page, as the login leads on to it."""
    below = request.path.removeprefix(PREFIX).removeprefix("/")
    return below + formats.query({**request.args.to_dict(), "done": None})


def see_other(*parts: str, **query: Any) -> Response:
    """Return where a browser goes on after a form."""
    return Response(status=HTTPStatus.SEE_OTHER, headers={**HEADERS, "Location": link(*parts, **query)})


def show(
    template: str,
    section: str,
    *,
    status: int = HTTPStatus.OK,
    replies: tuple[Reply, ...] = (),
    **values: Any,
) -> Response:
    """Return a page of a section. Its status is that of the first of `replies` that is an error, of which all the page
    is about, else `status`."""
    known = caller()
    failed = next((reply.status for reply in replies if not reply.ok), status)
    html = render_template(
        f"console/{template}",
        **{**FUNCTIONS, **values},
        section=section,
        sections=SECTIONS,
        viewer=known,  # `caller` is what a macro of Jinja calls
        csrf=_form_proof(),
    )
    return Response(html, failed, HEADERS, mimetype="text/html")


def _form_proof() -> str:
    """Return the proof of the page's forms; "" while the store does not say its key: they are refused then, too."""
    try:
        return form_proof()
    except StoreUnavailable:
        return ""


FUNCTIONS: Final[Mapping[str, Any]] = {
    "link": link,
    "here": here,
    "may": may,
    "onward": onward,
    "words": words_of,
    "AccessClass": AccessClass,
}
bp.app_template_filter("moment")(formats.moment)
bp.app_template_filter("span")(formats.span)
bp.app_template_filter("number")(formats.number)
bp.app_template_filter("permission")(formats.permission)
bp.app_template_filter("perm")(perm_text)
bp.app_template_filter("typed")(as_typed)
bp.app_template_test("ending")(formats.ending)
