"""How many connections come from one host, and the limit of them (`maxConnectionsPerIp`)."""

from typing import Final

from registry.options.networks import link_of

__all__ = ["HostFull", "HostLimit"]


class HostFull(Exception):
    """A host has its connections already; this one has to be closed."""


class HostLimit:
    """The connections of each host, counted if there is a limit; one of IPv6 is its /64, where it has every address."""

    def __init__(self, most: int) -> None:
        self.most: Final = most
        self._counts: dict[str, int] = {}

    def enter(self, host: str, *, limited: bool = True) -> None:
        """Count a connection. Raises HostFull, and does not, if `limited` and the host has the most it may."""
        if not self.most:
            return
        host = link_of(host)
        count = self._counts.get(host, 0)
        if limited and count >= self.most:
            raise HostFull(f"its host has {count} (maxConnectionsPerIp)")
        self._counts[host] = count + 1

    def leave(self, host: str) -> None:
        """Count one less."""
        if not self.most:
            return
        host = link_of(host)
        left = self._counts[host] - 1
        if left:
            self._counts[host] = left
        else:
            del self._counts[host]
