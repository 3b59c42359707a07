"""What the certificates of open connections prove: by which credentials, and until when."""

from collections.abc import Set as AbstractSet

from access.proof import Proof
from worker.peer import Peer

__all__ = ["ConnectionProofs"]


class ConnectionProofs:
    """By connection, as the principals of now have them."""

    def __init__(self) -> None:
        self._proofs: dict[str, Proof] = {}

    def add(self, peer: Peer, proof: Proof) -> None:
        """Note what a connection has proved."""
        if not peer.closed:
            self._proofs[peer.id] = proof

    def remove(self, peer: Peer) -> None:
        """Note that a connection has ended."""
        self._proofs.pop(peer.id, None)

    def clear(self) -> None:
        """Forget all: each connection proves itself again with its next request."""
        self._proofs.clear()

    def credentials(self) -> AbstractSet[str]:
        """Return the ids of the credentials that these connections have proved."""
        return {proof.credential for proof in self._proofs.values()}

    def first_end(self) -> float | None:
        """Return when the first of these certificates ends (Unix s), None without one."""
        return min((proof.expires for proof in self._proofs.values() if proof.expires), default=None)
