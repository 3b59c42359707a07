"""Metrics in the text format of Prometheus."""

from typing import Any, Final

from apiflask import APIBlueprint
from flask import Response, current_app
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from api.name_server import NameServer
from metrics.store import StoreCollector

EXTENSION: Final = "metrics"
TEXT: Final[dict[int | str, Any]] = {
    200: {"description": "Text of Prometheus", "content": {"text/plain": {"schema": {"type": "string"}}}}
}

bp = APIBlueprint("metrics", __name__)


def collectors(server: NameServer) -> CollectorRegistry:
    """Return what an application of this name server collects at a scrape."""
    registry = CollectorRegistry()
    registry.register(StoreCollector(server.keys, server.run_probe))
    return registry


@bp.get("/metrics")
@bp.doc(responses=TEXT)
def metrics() -> Response:
    """Metrics for Prometheus

    Facts of the store are 5 s old at most, and absent while it is away."""
    text = generate_latest(current_app.extensions[EXTENSION])
    return Response(text, content_type=CONTENT_TYPE_PLAIN_0_0_4)
