"""Where this server connects to by itself: to the brokers' own ports, for a probe or a push.

What a peer registers is only text. Were each address tried, any peer could have the servers look for open ports in the
networks that they reach. So an address is used if a peer came from it, or if `probeNetworks` lists it; a name never is.
"""

import asyncio
from collections.abc import Iterable
from typing import Final, NamedTuple

from registry.options.catalogue import Options
from registry.options.networks import address_of, networks_of

__all__ = ["MOST", "Endpoint", "endpoint", "open_connection"]

MOST: Final = 16
"""Addresses that one connection, or one push, makes this server connect to."""
LAST_PORT: Final = 0xFFFF


class Endpoint(NamedTuple):
    """Where to connect to."""

    host: str
    port: int


def endpoint(address: str, hosts: Iterable[str], options: Options) -> Endpoint | None:
    """Return the place of a registered `ip:port` whose peer came from one of `hosts`; None if it is not to be used."""
    host, _, port = address.rpartition(":")
    ip = address_of(host)
    if ip is None or not _is_port(port):
        return None
    listed = networks_of(options.probe_networks)
    if any(address_of(one) == ip for one in hosts) or any(ip in network for network in listed):
        return Endpoint(str(ip), int(port))
    return None


def _is_port(text: str) -> bool:
    return (
        text.isascii()
        and text.isdecimal()
        and len(text) <= len(str(LAST_PORT))
        and 0 < int(text) <= LAST_PORT
    )


async def open_connection(to: Endpoint) -> asyncio.StreamWriter:
    """Connect, and return what is written to. Raises OSError."""
    _, writer = await asyncio.open_connection(to.host, to.port)
    return writer
