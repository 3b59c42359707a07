"""How connections end, as they are counted: label `event` of `connection_events_total` (metrics/catalogue.py)."""

from enum import StrEnum

__all__ = ["End"]


class End(StrEnum):
    """Why a connection has ended."""

    PEER = "closed_peer"
    IDLE = "closed_idle"
    SLOW = "closed_slow"
    """What the peer sent, or what it was sent, went too slowly."""
    ERROR = "closed_error"
    """By bytes that are no frame, or by a fault of this server."""
    DRAINED = "drained"
    """The worker ends, or it trusts other certificates now."""
    LIMIT = "over_limit"
    TLS = "tls_failed"
