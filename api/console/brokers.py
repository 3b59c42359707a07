"""Brokers: the list, and one of them with its members, its topics, and what an operator may change of it."""

from typing import Any, Final

from flask import Response, request

from api.console.asking import ask, path
from api.console.blueprint import bp
from api.console.changes import Change, carry_out
from api.console.cluster_names import cluster_names
from api.console.page import is_live_part, show

__all__: list[str] = []

LISTED: Final = 50
TOPICS: Final = 24
MEMBERS: Final = 100


@bp.get("/brokers")
def brokers_page() -> Response:
    """Brokers by name"""
    wanted = {name: request.args.get(name) for name in ("cluster", "prefix", "after")}
    brokers = ask("GET", path("brokers"), {**wanted, "limit": LISTED})
    clusters = cluster_names() if brokers.ok else ()
    return show("brokers.html", "brokers", replies=(brokers,), brokers=brokers, clusters=clusters)


@bp.get("/brokers/<name>")
def broker_page(name: str) -> Response:
    """One broker"""
    broker = ask("GET", path("brokers", name))
    values: dict[str, Any] = {"name": name, "broker": broker, "shown_members": MEMBERS}
    if broker.ok and not is_live_part():
        values["topics"] = ask("GET", path("topics"), {"broker": name, "limit": TOPICS})
    return show("broker.html", "brokers", replies=(broker,), **values)


@bp.post("/brokers/<name>/write-permission")
def write_permission(name: str) -> Response:
    """Take the write permission of a broker, or give it"""
    gives = request.form.get("writable") == "yes"
    title = f"Give {name} read and write permission?" if gives else f"Take the write permission of {name}?"
    return carry_out(
        Change(
            title=title,
            button="Give the permission" if gives else "Take the permission",
            section="brokers",
            back=("brokers", name),
            method="POST",
            target=path("brokers", name, "write-permission"),
            body={"writable": gives},
            takes_away=not gives,
            remark="It holds for all topics of the broker until it registers topics that changed. A drain keeps "
            "producers off whatever it registers.",
        )
    )


@bp.post("/brokers/<name>/unregister")
def unregister_member(name: str) -> Response:
    """Unregister one address of a broker"""
    cluster, address = request.form.get("cluster", ""), request.form.get("address", "")
    return carry_out(
        Change(
            title=f"Unregister {address}?",
            button="Unregister it",
            section="brokers",
            back=("brokers", name),
            method="DELETE",
            target=path("brokers", name),
            query={"cluster": cluster, "brokerAddr": address},
            takes_away=True,
            remark=f"Clients lose this address of {name}. A broker that still runs registers again within 30 s: stop "
            "it first.",
        )
    )
