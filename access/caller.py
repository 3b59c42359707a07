"""What is known of a caller when a rule is applied to it."""

from typing import Literal

import msgspec

from registry.options.networks import Address, address_of

__all__ = ["Caller", "Listener", "caller_at"]

Listener = Literal["remoting", "http"]


class Caller(msgspec.Struct, frozen=True):
    """`address` is None where it has no rights: of a caller behind something on this machine that says not which.

    `token`, `signed` and `mtls` are the classes, as numbers, that the principals have roles for whom these prove."""

    listener: Listener
    address: Address | None = None
    loopback: bool = False
    tls: bool = False
    token: int = 0
    signed: int = 0
    mtls: int = 0


def caller_at(listener: Listener, host: str, *, forwarded: bool, tls: bool = False) -> Caller:
    """Return the caller at a host: the peer of a connection, or whom a trusted proxy names. `forwarded` is of a request
    that came through a proxy: then no address of this machine has rights, for a sidecar makes all the world one."""
    address = address_of(host)
    loopback = address is not None and address.is_loopback
    if forwarded and loopback:
        address, loopback = None, False
    return Caller(listener, address, loopback, tls)
