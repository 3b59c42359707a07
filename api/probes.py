"""Paths that orchestrators, balancers and Prometheus ask for every few seconds."""

from typing import Final

PROBES: Final = frozenset({"/healthz", "/readyz", "/metrics"})
"""They have no spans, and no limit."""
POLLED: Final = "discovery"
"""The blueprint that RocketMQ's clients ask at their start and every two minutes; they have no limit either, since many
of them may be behind one address."""
