"""Routes of the past, as the pipeline's process answers them: one question at a time, which may take seconds."""

from collections.abc import Callable, Mapping
from typing import Final

from flask import Response, request

from api.console.asking import Query, Reply, ask, path
from api.console.blueprint import bp
from api.console.page import show
from api.console.times import as_asked

__all__: list[str] = []

LIMIT: Final = 50
FIELDS: Final = ("topic", "at", "from", "to", "broker", "recorded", "after")
Given = Mapping[str, str]


@bp.get("/history")
def history() -> Response:
    """Routes of the past"""
    given = {name: request.args.get(name, "").strip() for name in FIELDS}
    asking = request.args.get("ask", "")
    question = QUESTIONS.get(asking)
    reply = question(given) if question is not None else None
    return show(
        "history.html",
        "history",
        replies=(reply,) if reply is not None else (),
        given=given,
        asking=asking if question is not None else "",
        reply=reply,
    )


def _route(given: Given) -> Reply:
    query: Query = {"at": as_asked(given["at"]), "asRecorded": "true" if given["recorded"] else None}
    return ask("GET", path("history", "routes", given["topic"]), query)


def _changes(given: Given) -> Reply:
    query: Query = {**_between(given), "limit": LIMIT, "after": given["after"]}
    if not given["topic"]:
        return ask("GET", path("history", "diff"), query)
    return ask("GET", path("history", "routes", given["topic"], "diff"), query)


def _permissions(given: Given) -> Reply:
    query: Query = {**_between(given), "broker": given["broker"], "limit": LIMIT}
    return ask("GET", path("history", "topics", given["topic"], "permissions"), query)


def _between(given: Given) -> Query:
    return {name: as_asked(given[name]) for name in ("from", "to")}


QUESTIONS: Final[Mapping[str, Callable[[Given], Reply]]] = {
    "route": _route,
    "changes": _changes,
    "permissions": _permissions,
}
