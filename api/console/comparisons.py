"""Comparisons of name servers, as `mqns drift` reports them: whether they agree, and what differs."""

from flask import Response, request

from api.console.asking import ask, path
from api.console.blueprint import bp
from api.console.changes import Change, carry_out
from api.console.page import show

__all__: list[str] = []


@bp.get("/drift")
def comparisons_page() -> Response:
    """Comparisons by name"""
    reply = ask("GET", path("drift"))
    return show("drift.html", "findings", replies=(reply,), reply=reply)


@bp.post("/drift")
def forget_comparison() -> Response:
    """Forget a comparison"""
    name = request.form.get("comparison", "")
    return carry_out(
        Change(
            title=f"Forget the comparison {name}?",
            button="Forget it",
            section="findings",
            back=("drift",),
            method="DELETE",
            target=path("drift", name),
            takes_away=True,
            remark="Its result, its metrics and its finding go. A program that still compares brings them back with "
            "its next report: stop it first.",
        )
    )
