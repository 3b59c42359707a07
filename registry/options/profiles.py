"""Profiles of access: the values that `accessProfile` gives the options that say who may ask what (docs/access.md)."""

from collections.abc import Mapping
from typing import Final

from registry.options.networks import address_of

__all__ = ["PROFILES", "is_loopback", "profile_for"]

Value = bool | int | str
CONNECTIONS_PER_IP: Final = 5_000
READS_PER_SECOND: Final = 50
WRITES_PER_SECOND: Final = 10

_UNLIMITED: Final[Mapping[str, Value]] = {
    "max_connections_per_ip": 0,
    "http_reads_per_second": 0,
    "http_writes_per_second": 0,
}
_LIMITED: Final[Mapping[str, Value]] = {
    "max_connections_per_ip": CONNECTIONS_PER_IP,
    "http_reads_per_second": READS_PER_SECOND,
    "http_writes_per_second": WRITES_PER_SECOND,
}
_GUARDED: Final[Mapping[str, Value]] = {
    "access_read": "open",
    "access_broker": "open",
    "access_admin": "loopback signed mtls token",
    "access_config": "loopback signed mtls token",
    "access_audit": "loopback mtls token",
    "access_metrics": "net token",
    "ownership_guard": True,
    **_LIMITED,
}
PROFILES: Final[Mapping[str, Mapping[str, Value]]] = {
    "local": {
        **_GUARDED,
        "access_audit": "loopback token",
        "access_metrics": "open",
        "ownership_guard": False,
        **_UNLIMITED,
    },
    "guarded": _GUARDED,
    "secure": {
        **_GUARDED,
        "access_broker": "net signed mtls token",
        "access_admin": "signed mtls token",
        "access_config": "signed mtls token",
        "access_audit": "mtls token",
    },
    "java": {
        **_GUARDED,
        "access_admin": "remoting loopback signed mtls token",
        "access_config": "remoting loopback signed mtls token",
        "ownership_guard": False,
        **_UNLIMITED,
    },
}
"""By attribute of `Options`."""


def profile_for(*hosts: str) -> str:
    """Return the profile of a name server that listens on these hosts and names none: whether others reach it."""
    return "local" if all(map(is_loopback, hosts)) else "guarded"


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches what listens there."""
    address = address_of(host)
    return host == "localhost" if address is None else address.is_loopback
