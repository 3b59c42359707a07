"""Credentials that may be revoked for all that a worker knows, which has not read the store since it began: they are
neither let in nor turned away."""

import logging
from typing import Final

from access.classes import OPERATORS, AccessClass
from access.proof import Proof
from rocketmq_remoting.codes import ResponseCode
from worker.logs.rate_limited_log import RateLimitedLog
from worker.peer import Peer
from worker.reply import Reply

__all__ = ["CHANGES", "unjudged"]

CHANGES: Final = int(AccessClass.BROKER | OPERATORS)
"""Classes for which such a credential bars its caller, even where others need none: they are of principals."""
REPLY: Final = Reply(
    ResponseCode.SYSTEM_ERROR,
    remark="the store, which may have revoked this credential, cannot serve now",
    refusal="store",
)

log = RateLimitedLog(logging.getLogger(__name__))


def unjudged(peer: Peer, proof: Proof) -> Reply:
    """Return the reply to a request of a peer by such a credential, and log it."""
    log.warning(
        "what is revoked was not read since this worker began, so %s of %s proves nothing; look after the store",
        proof.credential,
        peer.address,
    )
    return REPLY
