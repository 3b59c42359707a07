"""Drains: the list, a broker's drain made, and ended from its page or the list."""

import re
import time
from typing import Final

from flask import Response, request

from api.console.asking import ask, path
from api.console.blueprint import bp
from api.console.changes import Change, carry_out
from api.console.formats import moment
from api.console.page import show
from api.problems import Problem

__all__: list[str] = []

LISTED: Final = 100
UNITS: Final = {"minutes": 60_000, "hours": 3_600_000, "days": 86_400_000}
LENGTH: Final = re.compile("[1-9][0-9]{0,3}", re.ASCII)


@bp.get("/drains")
def drains_page() -> Response:
    """Drains by broker name"""
    drains = ask("GET", path("drains"), {"after": request.args.get("after"), "limit": LISTED})
    return show("drains.html", "drains", replies=(drains,), drains=drains)


@bp.post("/drains")
def end_listed_drain() -> Response:
    """End a drain of the list"""
    return carry_out(_end(request.form.get("broker", ""), ("drains",)))


@bp.post("/brokers/<name>/undrain")
def end_drain(name: str) -> Response:
    """End the drain of a broker"""
    return carry_out(_end(name, ("brokers", name)))


@bp.post("/brokers/<name>/drain")
def drain_broker(name: str) -> Response:
    """Drain a broker"""
    until_ms = _end_ms(request.form.get("length", "").strip(), request.form.get("unit", ""))
    owner, reason = (request.form.get(field, "").strip() for field in ("owner", "reason"))
    end = "until the drain is ended" if until_ms is None else f"until {moment(until_ms)} if you confirm now"
    return carry_out(
        Change(
            title=f"Drain {name}?",
            button="Drain it",
            section="brokers",
            back=("brokers", name),
            method="PUT",
            target=path("brokers", name, "drain"),
            body={"owner": owner, "reason": reason, "untilMillis": until_ms},
            remark=f"Routes show its topics without write permission {end}, whatever it registers. "
            f"Owner: {owner}. Reason: {reason}.",
        )
    )


def _end(name: str, back: tuple[str, ...]) -> Change:
    return Change(
        title=f"End the drain of {name}?",
        button="End the drain",
        section=back[0],
        back=back,
        method="DELETE",
        target=path("brokers", name, "drain"),
        remark="Its topics have the permissions again that it registered or was given: producers come back.",
    )


def _end_ms(length: str, unit: str) -> int | None:
    """Return the end of a drain that begins now, in Unix ms by the store's clock; None without a length: no end.

    A length, since a time of day would be one of several zones."""
    if not length:
        return None
    if not LENGTH.fullmatch(length) or unit not in UNITS:
        detail = "how long a drain is: a whole number from 1 to 9999 of minutes, hours or days, or nothing"
        raise Problem(422, "invalid-field", detail, field="length")
    ready = ask("GET", "/readyz")
    now_ms: int = ready.body["nowMillis"] if ready.ok else int(time.time() * 1000)
    return now_ms + int(length) * UNITS[unit]
