"""Which name servers clients learn whose only setting is `/rocketmq/nsaddr`: those of options, or the ready workers."""

import socket
from functools import partial
from typing import Final

from flask import current_app

from api.last_known import Addresses, LastKnown
from api.name_server import NameServer
from registry.announcements import ready_addresses
from registry.options.addresses import address_at, addresses_of, host_of, units_of
from registry.options.networks import address_of
from registry.options.profiles import is_loopback

__all__ = ["EXTENSION", "NameServerLists", "name_server_lists"]

EXTENSION: Final = "name-server-lists"
WORKERS_EVERY_S: Final = 1.0
NAMES_EVERY_S: Final = 10.0


class NameServerLists:
    """The list of all, and those of units that discoveryUnits has."""

    def __init__(self, server: NameServer) -> None:
        options = server.given
        self._reached_by_others = not is_loopback(options.http_bind_address)
        if given := addresses_of(options.discovery_address):
            self._of_all = _of_names("discoveryAddress", given)
        else:
            self._of_all = LastKnown(
                "the list of ready workers",
                lambda: server.run_probe(ready_addresses(server.keys)),
                WORKERS_EVERY_S,
            )
        self._of_units = {
            unit: _of_names(f"discoveryUnits of {unit}", addresses)
            for unit, addresses in units_of(options.discovery_units).items()
        }

    def of(self, unit: str = "") -> Addresses:
        """Return the list of a unit, that of all for one without its own; empty where no worker is ready, or none was
        known when the store went away."""
        return self._of_units.get(unit, self._of_all)()

    def unusable(self) -> Addresses:
        """Return the addresses of all lists that are answered to other machines, and lead these to themselves."""
        if not self._reached_by_others:
            return ()
        listed = [address for each in (self._of_all, *self._of_units.values()) for address in each()]
        return tuple(dict.fromkeys(address for address in listed if is_loopback(host_of(address))))


def _of_names(option: str, given: Addresses) -> LastKnown:
    """Return the list of an option, with addresses in place of names: Go's client takes no names."""
    return LastKnown(f"DNS for {option}", partial(_without_names, given), NAMES_EVERY_S, given)


def _without_names(given: Addresses) -> Addresses:
    """Raises OSError where DNS does not have a name, or does not answer."""
    return tuple(dict.fromkeys(address for one in given for address in _looked_up(one)))


def _looked_up(address: str) -> Addresses:
    """Return a numeric address as it is, and of a name its IPv4 addresses, sorted; those of IPv6 if it has no other."""
    host = host_of(address)
    if address_of(host) is not None:
        return (address,)
    port = int(address.rpartition(":")[2])
    found = {str(info[4][0]) for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)}
    usable = {one for one in found if _is_usable(one)}
    of_ipv4 = {one for one in usable if ":" not in one}
    return tuple(address_at(one, port) for one in sorted(of_ipv4 or usable)) or (address,)


def _is_usable(host: str) -> bool:
    """A zone is of this machine, and DNS that blocks a name may say 0.0.0.0."""
    address = address_of(host)
    return address is not None and not address.is_unspecified and "%" not in host


def name_server_lists() -> NameServerLists:
    """Return those of the application that handles this request."""
    lists: NameServerLists = current_app.extensions[EXTENSION]
    return lists
