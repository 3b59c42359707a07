"""How many connections come from one host, and the limit of them (`maxConnectionsPerIp`)."""

from typing import Final

from access.failures import Failures
from registry.options.networks import link_of

__all__ = ["HostFull", "HostLimit"]


class HostFull(Exception):
    """A connection has to be closed for where it comes from; `option` is the limit that its host has reached, "" where
    its proofs were bad."""

    def __init__(self, text: str, option: str = "") -> None:
        super().__init__(text)
        self.option = option


class HostLimit:
    """The connections of each host, counted if there is a limit; one of IPv6 is its /64, where it has every address.
    `failures` are the bad proofs of hosts."""

    def __init__(self, most: int, failures: Failures) -> None:
        self.most: Final = most
        self._failures = failures
        self._counts: dict[str, int] = {}

    def enter(self, host: str, *, limited: bool = True) -> None:
        """Count a connection. Raises HostFull, and does not, if `limited` and the host has the most it may, or is shut
        out for bad proofs."""
        if limited and (left_s := self._failures.shut_s(host)):
            raise HostFull(f"too many bad proofs came from its host, which is shut out for {left_s:.0f} s")
        if not self.most:
            return
        host = link_of(host)
        count = self._counts.get(host, 0)
        if limited and count >= self.most:
            raise HostFull(f"its host has {count} (maxConnectionsPerIp)", "maxConnectionsPerIp")
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
