"""Metrics in the text format of Prometheus: of all processes of this container, and of the store."""

from typing import Any, Final

from apiflask import APIBlueprint
from flask import Response, current_app

from metrics.exposition import CONTENT_TYPE, exposition

EXTENSION: Final = "metrics"
"""Facts of the store (`metrics.store`)."""
TEXT: Final[dict[int | str, Any]] = {
    200: {"description": "Text of Prometheus", "content": {"text/plain": {"schema": {"type": "string"}}}}
}

bp = APIBlueprint("metrics", __name__)


@bp.get("/metrics")
@bp.doc(operation_id="getMetrics", responses=TEXT)
def metrics() -> Response:
    """Metrics for Prometheus

    What processes count is 1 s old at most. Facts of the store are 5 s old at most, and absent while it is away."""
    return Response(exposition(current_app.extensions[EXTENSION].text()), content_type=CONTENT_TYPE)
