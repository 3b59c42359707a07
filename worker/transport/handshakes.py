"""The TLS handshakes under way in a worker. OpenSSL takes up to 150 KB for one, as soon as a peer announces a long
certificate; a few hundred bytes do."""

from typing import Final, Protocol

from registry.options.networks import link_of

__all__ = ["Handshakes", "HandshakingPeer"]

MOST: Final = 2048
"""Handshakes at once. A worker does some 2,000 a second, so a peer has a second even while others flood it, or while
all clients come back at once."""


class HandshakingPeer(Protocol):
    """The connection: `worker.transport.connection.Connection`."""

    host: str

    def abort(self, reason: str) -> None: ...


class Handshakes:
    """Of one worker; beyond `most` the first one of the host that has most is cut off. An IPv6 host is its /64."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._hosts: dict[HandshakingPeer, str] = {}
        self._peers: dict[str, dict[HandshakingPeer, None]] = {}  # of each host, the first one first

    def __len__(self) -> int:
        return len(self._hosts)

    def begin(self, peer: HandshakingPeer) -> None:
        """Count the handshake of a peer, unless it is counted."""
        if peer in self._hosts:
            return
        host = self._hosts[peer] = link_of(peer.host)
        self._peers.setdefault(host, {})[peer] = None
        if len(self) > self._most:
            busiest = max(self._peers, key=lambda host: len(self._peers[host]))
            first = next(iter(self._peers[busiest]))
            self.end(first)
            first.abort("too many TLS handshakes are under way")

    def end(self, peer: HandshakingPeer) -> None:
        """Note that a peer's handshake is over, if it had one."""
        host = self._hosts.pop(peer, None)
        if host is None:
            return
        peers = self._peers[host]
        del peers[peer]
        if not peers:
            del self._peers[host]
