"""KV configuration: namespaces, their values, and values set and deleted where no other change came between."""

from typing import Final

from flask import Response, request

from api.conditions import IF_MATCH, IF_NONE_MATCH
from api.console.asking import Headers, ask, path
from api.console.blueprint import bp
from api.console.changes import Change, carry_out
from api.console.page import show
from registry.keys import ORDER_TOPIC_CONFIG
from registry.kv import ANY

__all__: list[str] = []

KV: Final = "kv"
ON_A_PAGE: Final = 100


@bp.get("/kv")
def kv_namespaces() -> Response:
    """KV namespaces"""
    reply = ask("GET", path(KV), {"after": request.args.get("after"), "limit": ON_A_PAGE})
    return show("kv_namespaces.html", KV, replies=(reply,), reply=reply, order=ORDER_TOPIC_CONFIG)


@bp.post("/kv")
def add_kv_value() -> Response:
    """Set a value that is not there yet"""
    namespace, key = request.form.get("namespace", ""), request.form.get("key", "")
    return carry_out(
        Change(
            title=f"Set {key} of {namespace}?",
            button="Set the value",
            section=KV,
            back=(KV, namespace) if namespace else (KV,),
            method="PUT",
            target=path(KV, namespace, key),
            body={"value": _value()},
            headers=_only_if(IF_NONE_MATCH, ANY),
            value=_value(),
        )
    )


@bp.get("/kv/<namespace>")
def kv_table(namespace: str) -> Response:
    """A KV namespace"""
    after = request.args.get("after")
    reply = ask("GET", path(KV, namespace), {"after": after, "limit": ON_A_PAGE})
    return show("kv_table.html", KV, replies=(reply,), reply=reply, namespace=namespace)


@bp.post("/kv/<namespace>")
def clear_kv_table(namespace: str) -> Response:
    """Delete all values of a namespace"""
    return carry_out(
        Change(
            title=f"Delete all values of {namespace}?",
            button="Delete all",
            section=KV,
            back=(KV, namespace),
            method="DELETE",
            target=path(KV, namespace),
            query={"all": "true"},
            takes_away=True,
            remark="The empty namespace stays.",
        )
    )


@bp.get("/kv/<namespace>/<path:key>")
def kv_value(namespace: str, key: str) -> Response:
    """A KV value"""
    reply = ask("GET", path(KV, namespace, key))
    return show("kv_value.html", KV, replies=(reply,), reply=reply, namespace=namespace, key=key)


@bp.post("/kv/<namespace>/<path:key>")
def change_kv_value(namespace: str, key: str) -> Response:
    """Set or delete a value that is still the one that the operator saw"""
    deletes = "delete" in request.form
    stored = ask("GET", path(KV, namespace, key))
    return carry_out(
        Change(
            title=f"{'Delete' if deletes else 'Change'} {key} of {namespace}?",
            button="Delete the value" if deletes else "Change the value",
            section=KV,
            back=(KV, namespace) if deletes else (KV, namespace, key),
            method="DELETE" if deletes else "PUT",
            target=path(KV, namespace, key),
            body=None if deletes else {"value": _value()},
            headers=_only_if(IF_MATCH, request.form.get("tag", "")),
            takes_away=deletes,
            value=None if deletes else _value(),
            before=stored.body["value"] if stored.ok else None,
        )
    )


def _value() -> str:
    """Return the value of a form, in which browsers send line feeds as two characters."""
    return request.form.get("value", "").replace("\r\n", "\n")


def _only_if(header: str, tag: str) -> Headers:
    return {header: tag if tag == ANY else f'"{tag}"'}
