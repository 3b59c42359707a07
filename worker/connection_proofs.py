"""What the certificates of open connections prove: by which credentials, and until when."""

from collections.abc import Set as AbstractSet

from access.proof import Proof
from worker.peer import Peer

__all__ = ["ConnectionProofs"]


class ConnectionProofs:
    """By connection, as the principals of now have them."""

    def __init__(self) -> None:
        self._proofs: dict[str, Proof] = {}
        self._first_end: float | None = None
        self._is_known = True  # whether that is so still

    def add(self, peer: Peer, proof: Proof) -> None:
        """Note what a connection has proved."""
        if not peer.closed:
            self._proofs[peer.id] = proof
            self._is_known = False

    def remove(self, peer: Peer) -> None:
        """Note that a connection has ended."""
        if self._proofs.pop(peer.id, None) is not None:
            self._is_known = False

    def clear(self) -> None:
        """Forget all: each connection proves itself again with its next request."""
        self._proofs.clear()
        self._is_known = False

    def credentials(self) -> AbstractSet[str]:
        """Return the ids of the credentials that these connections have proved."""
        return {proof.credential for proof in self._proofs.values()}

    def first_end(self) -> float | None:
        """Return when the first of these certificates ends (Unix s), None without one."""
        if not self._is_known:
            ends = (proof.expires for proof in self._proofs.values())
            self._first_end = min((end for end in ends if end is not None), default=None)
            self._is_known = True
        return self._first_end
