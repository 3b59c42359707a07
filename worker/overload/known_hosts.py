"""Hosts from which brokers have registered with this worker: their frames do not wait behind those of others."""

from collections import OrderedDict
from typing import Final

from worker.peer import Peer

MOST: Final = 10_000


class KnownHosts:
    """The last from which a registration was accepted."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._hosts: OrderedDict[str, None] = OrderedDict()

    def knows(self, peer: Peer) -> bool:
        """Return whether a broker has registered over this connection, or from its host."""
        return bool(peer.registered) or peer.host in self._hosts

    def add(self, peer: Peer) -> None:
        """Note that a registration was accepted."""
        host = peer.host
        self._hosts[host] = None
        self._hosts.move_to_end(host)
        if len(self._hosts) > self._most:
            self._hosts.popitem(last=False)
