"""The console of an application: its pages, the tokens of its sessions, and the changes that its pages follow."""

from typing import Final

from apiflask import APIFlask
from flask import request

from api import watch
from api.console import (
    between,
    brokers,
    comparisons,
    drains,
    failures,
    findings,
    history,
    kv,
    login,
    overview,
    reports,
    settings,
    static_files,
    timeline,
    topics,
)
from api.console.blueprint import NAME, bp
from api.console.page import caller
from api.console.session import EXTENSION, Sessions, check_form
from api.methods import SAFE
from api.name_server import NameServer

__all__ = ["PAGES", "bp", "install"]

PAGES = (
    *(overview, brokers, topics, drains, timeline, between, findings, comparisons),
    *(reports, history, kv, settings, login, static_files, failures),
)
"""Each has put its views on the blueprint."""
STATIC: Final = f"{NAME}.{static_files.static_file.__name__}"
CHANGES: Final = f"{NAME}.changes"
bp.add_url_rule("/changes", "changes", watch.watch)  # as /v1/watch, by the session's token


@bp.before_request
def judge() -> None:
    """Look at no form that no page of this session sent; know the caller before anything is asked for its page."""
    if request.method not in SAFE:
        check_form()
    if request.endpoint not in (STATIC, CHANGES):
        caller()


def install(app: APIFlask, server: NameServer) -> None:
    """Give an application its sessions, before its guard: what a browser asks is judged by the token in its cookie."""
    app.extensions[EXTENSION] = sessions = Sessions(server)

    @app.before_request
    def prove_by_session() -> None:
        if request.blueprint == NAME and request.endpoint != STATIC:
            sessions.prove()
