"""Paths that orchestrators, balancers and Prometheus ask for every few seconds."""

from typing import Final

PROBES: Final = frozenset({"/healthz", "/readyz", "/metrics"})
"""They have no spans, and no limit."""
