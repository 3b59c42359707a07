"""Which peers may say by a PROXY header where a connection comes from (`proxyTrustedCidrs`, `proxyRequired`)."""

from typing import Protocol

from registry.options.catalogue import Options
from registry.options.networks import is_in, networks_of
from worker.peer import Via, host_of
from worker.transport.host_limit import HostLimit

__all__ = ["Introduced", "TrustedProxies"]


class Introduced(Protocol):
    """A connection, as far as a PROXY header concerns it."""

    address: str
    host: str
    via: Via


class TrustedProxies:
    """The trusted proxies of a worker, whose connections `hosts` counts as those of their clients."""

    def __init__(self, options: Options, hosts: HostLimit) -> None:
        self._networks = networks_of(options.proxy_trusted_cidrs)
        self._hosts = hosts
        self._without_header = Via.UNNAMED if options.proxy_required else Via.DIRECT

    def __contains__(self, host: str) -> bool:
        """Return whether PROXY headers of this host count."""
        return bool(self._networks) and is_in(host, self._networks)

    def via(self, host: str) -> Via:
        """Return how a connection of this host came here as long as it sends no header."""
        return self._without_header if host in self else Via.DIRECT

    def introduce(self, connection: Introduced, source: str | None) -> None:
        """Take the client's `ip:port` of a PROXY header, if its sender may say it. Raises HostFull."""
        if connection.host not in self:
            connection.via = Via.FORWARDED
        elif source is None:
            connection.via = Via.UNNAMED
        else:
            host = host_of(source)
            self._hosts.enter(host)
            self._hosts.leave(connection.host)
            connection.address, connection.host, connection.via = source, host, Via.FORWARDED
