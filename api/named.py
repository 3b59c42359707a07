"""What a request over HTTP names (`access.named`), by its path and body."""

from collections.abc import Mapping
from typing import Any, Final

from flask import Request

from access.named import ALL_NAMES, NOTHING, Named

__all__ = ["named_by"]

BROKERS: Final = ("registrations", "drains")
OF_NO_NAME: Final = ("settings", "options", "access")
REGISTER: Final = "registrations.register_broker"
DELETE_TOPIC: Final = "topics.remove_topic"


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
    if request.endpoint == DELETE_TOPIC:  # without a cluster it is one in all of them
        return Named(topics=(parts["topic"],), brokers=None, clusters=_cluster(request) or None)
    if "topic" in parts:
        return Named(topics=(parts["topic"],), brokers=() if request.method == "GET" else None)
    if "namespace" in parts:
        return Named(kv=(parts["namespace"],))
    return ALL_NAMES


def _cluster(request: Request) -> tuple[str, ...]:
    """Return each cluster in body and query, whichever the view takes."""
    body: Any = request.get_json(silent=True)
    in_body = body.get("cluster") if isinstance(body, dict) else None
    return (*_texts(in_body), *request.args.getlist("cluster"))


def _registered(body: Any) -> Named:
    """A body that is none is refused behind this, whatever it names."""
    if not isinstance(body, dict):
        return NOTHING
    topics = body.get("topics")
    names = (
        (row.get("topicName") for row in topics if isinstance(row, dict)) if isinstance(topics, list) else ()
    )
    return Named(
        clusters=_texts(body.get("cluster")), brokers=_texts(body.get("brokerName")), topics=_texts(*names)
    )


def _texts(*values: object) -> tuple[str, ...]:
    return tuple(value for value in values if isinstance(value, str))
