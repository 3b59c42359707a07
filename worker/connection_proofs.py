"""What the certificates of open connections prove: by which credentials, and until when."""

import logging
from collections.abc import Callable
from collections.abc import Set as AbstractSet

from access.certificates import UnreadableCertificate
from access.classes import OPERATORS, AccessClass
from access.policy import Policy
from access.principals import Principals
from access.proof import BadCredential, Proof
from access.standing import Standing
from worker.counters import Counters
from worker.logs.rate_limited_log import RateLimitedLog
from worker.peer import Peer
from worker.unjudged import CHANGES

__all__ = ["ConnectionProofs"]

log = RateLimitedLog(logging.getLogger(__name__))


class ConnectionProofs:
    """By connection, as the principals of now have them. `clock` gives Unix seconds."""

    def __init__(self, policy: Policy, counters: Counters, clock: Callable[[], float]) -> None:
        reads = AccessClass.READ if policy.rules[AccessClass.READ].names("mtls") else 0
        self._barred = int(AccessClass.BROKER | OPERATORS | reads)
        self._counters = counters
        self._clock = clock
        self._proofs: dict[str, Proof] = {}
        self._first_end: float | None = None
        self._is_known = True  # whether that is so still

    def standing(
        self, peer: Peer, principals: Principals, generation: int, *, is_sure: bool
    ) -> Standing | None:
        """Return what a connection's certificate proves, None without one that is known; one that is bad bars what a
        bad signature does, and so does one that may be revoked, where that `is_sure` of none."""
        try:
            names = None if peer.tls is None else peer.tls.certificate
            proof = None if names is None else principals.by_certificate(names, self._clock())
        except (BadCredential, UnreadableCertificate) as error:
            result = error.result if isinstance(error, BadCredential) else "denied"
            self._counters.security.add("authn", result)
            log.error(
                "the certificate of %s is not accepted: %s; correct the access file", peer.address, error
            )
            return Standing(generation, barred=self._barred)
        if proof is None:
            return None
        self._counters.security.add("authn", "allowed")
        if not peer.closed:
            self._proofs[peer.id] = proof
            self._is_known = False
        return Standing(generation, proof, 0 if is_sure else CHANGES)

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
