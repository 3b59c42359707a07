"""What the doctor found: the worst first, each with what to do."""

from collections.abc import Mapping
from typing import Any, Final

from flask import Response

from api.console.asking import ask, path
from api.console.blueprint import bp
from api.console.page import show

__all__: list[str] = []

WORST_FIRST: Final = ("error", "warning", "info")


@bp.get("/findings")
def findings() -> Response:
    """What the doctor found"""
    reply = ask("GET", path("doctor"))
    return show(
        "findings.html",
        "findings",
        replies=(reply,),
        reply=reply,
        found=sorted(reply.body["findings"], key=_place) if reply.ok else (),
    )


def _place(finding: Mapping[str, Any]) -> int:
    return WORST_FIRST.index(finding["severity"])
