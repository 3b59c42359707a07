"""Addresses of name servers, and lists of them as RocketMQ's clients read them: `10.0.0.1:9876;[fd00::1]:9876`."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from registry.options.host_names import ENTRY, without_case
from registry.options.networks import address_of

__all__ = ["UNIT", "address_at", "addresses_of", "host_of", "units_of"]

PORT: Final = re.compile("[1-9][0-9]{0,4}")
PORT_MAX: Final = (1 << 16) - 1
NAME_MAX: Final = 253
"""Letters of a name of DNS."""
UNIT: Final = re.compile("[A-Za-z0-9._-]{1,64}")
"""A unit's name, as clients append it to a path."""
LIST_MOST: Final = 100
"""Addresses of a list: a client reads all of it every two minutes."""


@lru_cache(maxsize=64)
def addresses_of(text: str) -> tuple[str, ...]:
    """Return the addresses of a list, in its order, each once. Raises ValueError that names a bad one."""
    addresses = tuple(dict.fromkeys(_checked(part.strip()) for part in text.split(";") if part.strip()))
    if len(addresses) > LIST_MOST:
        raise ValueError(f"{len(addresses)} addresses are more than {LIST_MOST}")
    return addresses


@lru_cache(maxsize=64)
def units_of(text: str) -> Mapping[str, tuple[str, ...]]:
    """Return the lists of units, as `blue=10.0.0.1:9876;10.0.0.2:9876, green=10.0.0.3:9876` has them. Raises
    ValueError that names a bad one."""
    units: dict[str, tuple[str, ...]] = {}
    for part in filter(None, map(str.strip, text.split(","))):
        unit, _, listed = map(str.strip, part.partition("="))
        if not UNIT.fullmatch(unit):
            raise ValueError(
                f"{unit!r} is no name of a unit: 1 to 64 letters, digits, dots, dashes and underscores"
            )
        if unit in units:
            raise ValueError(f"the unit {unit} is there twice")
        units[unit] = addresses_of(listed)
        if not units[unit]:
            raise ValueError(f"the unit {unit} has no addresses")
    return units


def address_at(text: str, port: int) -> str:
    """Return `host:port` of a host, with this port, or of what has a port already. Raises ValueError."""
    host = address_of(text)
    if host is not None:
        text = f"[{host}]" if host.version == 6 else str(host)
    return _checked(text if ":" in text and host is None else f"{text}:{port}")


def host_of(address: str) -> str:
    """Return the host of `host:port`, without the brackets of IPv6."""
    return address.rpartition(":")[0].strip("[]")


def _checked(text: str) -> str:
    """Return an address. Raises ValueError."""
    host, _, port = text.rpartition(":")
    if not (_is_host(host) and PORT.fullmatch(port) and int(port) <= PORT_MAX):
        raise ValueError(f"{text!r} is not host:port, or [host]:port of IPv6")
    if (address := address_of(host)) is not None and address.is_unspecified:
        raise ValueError(f"{text!r} is where a server listens, and no address by which it is reached")
    return text


def _is_host(text: str) -> bool:
    """Return whether it is an IPv4 address, one of IPv6 in brackets and without a zone, or a name."""
    if address_of(text) is not None:
        bare = text.removeprefix("[").removesuffix("]")
        return text == (f"[{bare}]" if ":" in bare else bare) and "%" not in bare
    name = without_case(text)
    is_name = ENTRY.fullmatch(name) is not None and not name.startswith(".") and len(name) <= NAME_MAX
    return is_name and not name.rpartition(".")[2].isdecimal()
