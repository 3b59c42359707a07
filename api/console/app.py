"""The console of an application: its pages, the tokens of its sessions, and the changes that its pages follow."""

from apiflask import APIFlask
from flask import request

from api import watch
from api.caller import TOKEN_HEADER
from api.console import (
    between,
    brokers,
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
from api.console.session import EXTENSION, Sessions
from api.name_server import NameServer

__all__ = ["PAGES", "bp", "install"]

PAGES = (
    *(overview, brokers, topics, drains, timeline, between, findings, reports, history, kv, settings),
    *(login, static_files, failures),
)
"""Each has put its views on the blueprint."""
bp.add_url_rule("/changes", "changes", watch.watch)  # as /v1/watch, by the session's token


def install(app: APIFlask, server: NameServer) -> None:
    """Give an application its sessions, before its guard: what a browser asks is judged by the token in its cookie."""
    app.extensions[EXTENSION] = sessions = Sessions(server)

    @app.before_request
    def prove_by_session() -> None:
        if request.blueprint == NAME and TOKEN_HEADER not in request.environ:
            token = sessions.token()
            if token is not None:
                request.environ[TOKEN_HEADER] = f"Bearer {token}"
