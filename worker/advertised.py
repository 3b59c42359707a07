"""At which address clients reach the remoting workers of this machine: as the operator says, or as can be seen here."""

import socket
from collections.abc import Iterator
from typing import Final

from registry.options.addresses import address_at
from registry.options.catalogue import Options
from registry.options.networks import address_of

__all__ = ["advertised_address"]

ROUTED: Final = ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1"))
"""Addresses for documents (RFC 5737, RFC 3849), which only the default route leads to; nothing is sent there."""
ANY_PORT: Final = 9


def advertised_address(options: Options, listener: socket.socket) -> str:
    """Return `host:port`: that of advertiseAddress; else where the socket listens; else, if that is on all addresses,
    the one from which this machine sends to others. Return "" where it has no route to others."""
    host, port = listener.getsockname()[:2]
    if options.advertise_address:
        return address_at(options.advertise_address, port)
    address = address_of(host)
    if address is not None and address.is_unspecified:
        host = next(_sending_hosts(listener.family), "")
    return address_at(host, port) if host else ""


def _sending_hosts(family: int) -> Iterator[str]:
    """Yield those that a socket of this family accepts connections to: one of IPv6 does of IPv4, too."""
    for of_family, routed in ROUTED:
        if family in (of_family, socket.AF_INET6):
            with socket.socket(of_family, socket.SOCK_DGRAM) as probe:
                try:
                    probe.connect((routed, ANY_PORT))
                    yield probe.getsockname()[0]
                except OSError:
                    continue
