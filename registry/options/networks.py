"""Networks as options list them, and whether a host is in one."""

from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

__all__ = [
    "HOSTS_CACHED",
    "Address",
    "Network",
    "address_of",
    "is_in",
    "link_of",
    "network_of",
    "networks_of",
]

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
LINK_BITS = 64
NETWORK_BITS = 24
"""Of IPv4 addresses that one operator is taken to have, as LINK_BITS are of IPv6."""
HOSTS_CACHED = 1024
"""Hosts of the last requests: a flood of refused ones is of few, and parsing took half of its time."""


@lru_cache(maxsize=64)
def networks_of(text: str) -> tuple[Network, ...]:
    """Return the networks of a list such as `10.0.0.0/8, fd00::/8`. Raises ValueError that names a bad one."""
    return tuple(_network(part.strip()) for part in text.split(",") if part.strip())


def _network(text: str) -> Network:
    if "%" in text:  # Python takes any text for a zone, and has addresses of all zones in the network
        raise ValueError(f"{text!r} has a zone, which a network has not")
    return ip_network(text)


@lru_cache(maxsize=HOSTS_CACHED)
def address_of(host: str) -> Address | None:
    """Return the address that a host is written as, an IPv4 one also where it is mapped into IPv6; None for a name."""
    try:
        address = ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def is_in(host: str, networks: Iterable[Network]) -> bool:
    """Return whether a host is an address in one of the networks."""
    address = address_of(host)
    return address is not None and any(address in network for network in networks)


def link_of(host: str) -> str:
    """Return the host, of an IPv6 one the /64 that it is in, where one machine may have every address."""
    address = address_of(host)
    if isinstance(address, IPv6Address):
        return str(IPv6Network((address, LINK_BITS), strict=False))
    return host if address is None else str(address)


@lru_cache(maxsize=HOSTS_CACHED)
def network_of(host: str) -> str:
    """Return the /24 that a host is in, of an IPv6 one the /64; of what is no address, the host."""
    address = address_of(host)
    if isinstance(address, IPv4Address):
        return str(IPv4Network((address, NETWORK_BITS), strict=False))
    return link_of(host)
