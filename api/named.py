"""What a request over HTTP names (`access.named`), by its path and body."""

from collections.abc import Mapping
from typing import Any, Final

from flask import Request

from access.named import ALL_NAMES, NOTHING, Named

__all__ = ["named_by"]

BROKERS: Final = ("registrations", "drains")
OF_NO_NAME: Final = ("settings", "options", "access")
REGISTER: Final = "registrations.register_broker"


def named_by(request: Request) -> Named:
    """Return what a request names; all there is where its path names nothing, as of a list."""
    parts: Mapping[str, str] = request.view_args or {}
    blueprint = (request.endpoint or "").partition(".")[0]
    if request.endpoint == REGISTER:
        return _registered(request.get_json(silent=True))
    if blueprint in OF_NO_NAME:
        return NOTHING
    if blueprint in BROKERS and "name" in parts:
        return Named(brokers=(parts["name"],), clusters=_cluster(request))
    if "topic" in parts:
        return _of_topic(request, parts["topic"])
    if "namespace" in parts:
        return Named(kv=(parts["namespace"],))
    return ALL_NAMES


def _of_topic(request: Request, topic: str) -> Named:
    """A deletion without a cluster is one in all of them."""
    if request.method == "DELETE":
        return Named(topics=(topic,), clusters=_cluster(request) or None)
    if request.method == "PUT":
        body = request.get_json(silent=True)
        return Named(topics=(topic,), brokers=_named_in(body, "queueDatas", "brokerName"))
    return Named(topics=(topic,))


def _cluster(request: Request) -> tuple[str, ...]:
    """Return the cluster that the view reads: in the query where the method has no body, whatever body comes."""
    if request.method in ("GET", "DELETE"):
        return tuple(request.args.getlist("cluster"))
    body: Any = request.get_json(silent=True)
    return _texts(body.get("cluster")) if isinstance(body, dict) else ()


def _registered(body: Any) -> Named:
    """A body that is none is refused behind this, whatever it names."""
    if not isinstance(body, dict):
        return NOTHING
    return Named(
        clusters=_texts(body.get("cluster")),
        brokers=_texts(body.get("brokerName")),
        topics=_named_in(body, "topics", "topicName"),
    )


def _named_in(body: Any, rows: str, member: str) -> tuple[str, ...]:
    """Return what a member of each row of a body names; what is no row is refused behind this."""
    listed = body.get(rows) if isinstance(body, dict) else None
    if not isinstance(listed, list):
        return ()
    return _texts(*(row.get(member) for row in listed if isinstance(row, dict)))


def _texts(*values: object) -> tuple[str, ...]:
    return tuple(value for value in values if isinstance(value, str))
