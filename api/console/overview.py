"""The first page: is it well, what needs the operator, what changed."""

from typing import Final

import msgspec
from flask import Response

from api.console.asking import Reply, ask, path
from api.console.blueprint import bp
from api.console.formats import moment
from api.console.page import show
from api.paging import LIMIT_MOST

__all__: list[str] = []

LATEST: Final = 12


class Totals(msgspec.Struct, frozen=True):
    """What lives: clusters, broker names, and members by role."""

    clusters: int
    brokers: int
    masters: int
    slaves: int


class Verdict(msgspec.Struct, frozen=True):
    """Whether it is well: `good`, `warning` or `error`, in words, and why."""

    name: str
    text: str
    why: str


@bp.get("")
def overview() -> Response:
    """Overview"""
    clusters, findings = ask("GET", path("clusters"), {"limit": LIMIT_MOST}), ask("GET", path("doctor"))
    return show(
        "overview.html",
        "",
        verdict=verdict(ask("GET", "/readyz"), findings),
        limits=ask("GET", path("limits")),
        clusters=clusters,
        totals=totals(clusters),
        findings=findings,
        drains=ask("GET", path("drains"), {"limit": LATEST}),
        events=ask("GET", path("events"), {"order": "desc", "limit": LATEST}),
    )


def verdict(ready: Reply, findings: Reply) -> Verdict:
    """Return whether the name server is well, by its readiness and what the doctor found."""
    if not ready.ok:
        return Verdict("error", "Not ready", f"{ready.detail}.")
    if ready.body["holdUntilMillis"] is not None:
        until = moment(ready.body["holdUntilMillis"])
        return Verdict("warning", "Leases are held", f"No broker is dropped until {until}.")
    if not findings.ok:
        return Verdict("good", "Ready", "Leases are watched. What the doctor found is not known here.")
    severities = [finding["severity"] for finding in findings.body["findings"]]
    if (errors := severities.count("error")) > 0:
        return Verdict("error", "Needs you", f"Errors that the doctor found: {errors}.")
    if (warnings := severities.count("warning")) > 0:
        return Verdict(
            "warning",
            "Well, with remarks",
            f"Warnings of the doctor: {warnings}.",
        )
    return Verdict("good", "All is well", "Leases are watched, and the stream of events is followed.")


def totals(clusters: Reply) -> Totals | None:
    """Return what the clusters of an answer have; None of an error."""
    if not clusters.ok:
        return None
    members = {
        (broker["brokerName"], number)
        for cluster in clusters.body["clusters"]
        for broker in cluster["brokerDatas"]
        for number in broker["brokerAddrs"]
    }
    masters = sum(number == "0" for _, number in members)
    names = {name for name, _ in members}
    return Totals(len(clusters.body["clusters"]), len(names), masters, len(members) - masters)
