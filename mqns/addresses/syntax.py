"""Address lists as RocketMQ writes them: `10.0.0.1:9876;10.0.0.2:9876`."""

from ipaddress import IPv6Address
from typing import Final

from mqns.errors import AddressError

NAME_SERVER_PORT: Final = 9876
"""The port of name servers, where an address has none."""
_SCHEMES: Final = ("http://", "https://")
_PORT_MAX: Final = 65535
_HOST_MAX: Final = 255
"""Letters of a host; DNS has no longer name."""
_SHOWN: Final = 300


def split_address(address: str) -> tuple[str, int]:
    """Return `("10.0.0.1", 9876)` for `10.0.0.1:9876`; split at the last colon, without the brackets of IPv6.

    AddressError, whose text names the fault."""
    host, colon, port = address.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    if not colon:
        raise AddressError(f"no port in the address {_shown(address)}")
    printable = host.isprintable() and len(host) <= _HOST_MAX
    if not host or not printable or any(char.isspace() or char in ";,[]/" for char in host):
        raise AddressError(f"no host in the address {_shown(address)}")
    if not (port.isascii() and port.isdecimal() and 0 < int(port[:6]) <= _PORT_MAX):
        raise AddressError(f"no port from 1 to {_PORT_MAX} in the address {_shown(address)}")
    return host, int(port)


def check_address(address: str) -> None:
    """Raise AddressError for what `split_address` refuses, and for an IPv6 host without brackets: `::1:9876` may be
    one as a whole."""
    host, _ = split_address(address)
    if ":" in host and not address.startswith("["):
        raise AddressError(f"no brackets around the IPv6 host in the address {_shown(address)}")


def with_port(address: str, port: int) -> str:
    """Return an address without a port with this one, and one that has a port as it is.

    `localhost` and `[::1]` have none. `::1` has none either and gets brackets, but `::1:9876` is left as it is, since
    it may be host and port, or a host as a whole."""
    head, colon, tail = address.rpartition(":")
    if not colon or address.endswith("]"):
        return f"{address}:{port}"
    if _is_ipv6(address) and not (_is_ipv6(head) and tail.isdecimal()):
        return f"[{address}]:{port}"
    return address


def parse_addresses(text: str, default_port: int | None = NAME_SERVER_PORT) -> tuple[str, ...]:
    """Return the addresses of a `;`-separated list, in order, each once, without a leading scheme.

    Those without a port get the default one; with None they are refused. Blanks around addresses and empty entries are
    dropped, so the result may be empty. AddressError, whose text names the invalid entry."""
    entries = (entry.strip() for entry in without_scheme(text).split(";"))
    addresses = dict.fromkeys(
        entry if default_port is None else with_port(entry, default_port) for entry in entries if entry
    )
    for address in addresses:
        check_address(address)
    return tuple(addresses)


def without_scheme(text: str) -> str:
    """Return `a:9876` for `http://a:9876`."""
    text = text.strip()
    return next((text[len(scheme) :] for scheme in _SCHEMES if text.startswith(scheme)), text)


def _is_ipv6(text: str) -> bool:
    try:
        IPv6Address(text)
    except ValueError:
        return False
    return True


def _shown(text: str) -> str:
    """Return the text as errors show it: quoted, at most as long as an address can be."""
    return repr(text) if len(text) <= _SHOWN else f"{text[:_SHOWN]!r}…"
