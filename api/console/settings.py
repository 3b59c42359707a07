"""Options of the name server: all of them, and those changed that all workers share."""

from typing import Any, Final

from flask import Response, request

from api.console.asking import ask, path
from api.console.blueprint import bp
from api.console.changes import Change, carry_out
from api.console.page import show

__all__: list[str] = []

SETTINGS: Final = "settings"
EFFECTS: Final = {
    "live": "at once, in every worker",
    "restart": "from the next start on",
    "listed": "none: it is listed only",
}


@bp.get("/settings")
def settings() -> Response:
    """Options of the process that answers"""
    only_changed, wanted = "all" not in request.args, request.args.get("q", "")
    reply = ask("GET", path("options"), {"changed": "true" if only_changed and not wanted else "false"})
    rows = [row for row in reply.body["options"] if _matches(row, wanted)] if reply.ok else []
    return show(
        "settings.html", SETTINGS, replies=(reply,), reply=reply, rows=rows, wanted=wanted, effects=EFFECTS
    )


@bp.get("/settings/<key>")
def setting(key: str) -> Response:
    """An option"""
    reply = ask("GET", path("options", key))
    return show("setting.html", SETTINGS, replies=(reply,), reply=reply, key=key, effects=EFFECTS)


@bp.post("/settings/<key>")
def change_setting(key: str) -> Response:
    """Change an option for all workers"""
    value, option = request.form.get("value", ""), ask("GET", path("options", key))
    return carry_out(
        Change(
            title=f"Set {key} to {value or 'nothing'}?",
            button="Change the option",
            section=SETTINGS,
            back=(SETTINGS, key),
            method="PATCH",
            target=path(SETTINGS),
            body={"settings": {key: value}},
            remark="The change is for all workers of this namespace.",
            value=value,
            before=option.body["value"] if option.ok else None,
        )
    )


def _matches(row: dict[str, Any], wanted: str) -> bool:
    texts = (row["key"], row["variable"], row["description"])
    return any(wanted.lower() in text.lower() for text in texts)
