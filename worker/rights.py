"""What rules make of a caller: of where its connection comes from, and of proofs."""

from msgspec.structs import replace

from access.caller import Caller, caller_at
from access.classes import AccessClass
from access.limits import within
from access.patterns import Patterns
from access.policy import Policy
from access.proof import Proof
from rocketmq_remoting.remoting_command import Command
from worker.named import named_by
from worker.peer import Peer, Via

__all__ = ["admits", "admits_anywhere", "caller_of", "topics_of"]


def caller_of(peer: Peer) -> Caller:
    """Return what is known of the caller by its connection, but for its certificate."""
    if peer.via is Via.UNNAMED:
        return Caller("remoting", tls=peer.tls is not None)
    forwarded = peer.via is Via.FORWARDED
    return caller_at("remoting", peer.host, forwarded=forwarded, tls=peer.tls is not None)


def admits(policy: Policy, command: Command, peer: Peer, needs: AccessClass, *proofs: Proof) -> bool:
    """Return whether the rules admit a request by its connection and these proofs."""
    caller = caller_of(peer)
    for proof in proofs:
        classes = within(proof.principal, named_by(command), needs)
        by = {"signed": classes} if proof.kind == "acl" else {"mtls": classes}
        caller = replace(caller, **by)
    return policy.admits(needs, caller)


def admits_anywhere(policy: Policy, command: Command, needs: AccessClass, signature: Proof) -> bool:
    """Return whether the rules admit a request by its signature, whatever its connection has proven."""
    classes = within(signature.principal, named_by(command), needs)
    return policy.admits(needs, Caller("remoting", signed=classes))


def topics_of(
    policy: Policy, command: Command, peer: Peer, needs: AccessClass, proofs: list[Proof]
) -> tuple[Patterns, ...]:
    """Return the topics of the first proof that admits a request alone; of all where none does."""
    alone = next(([one] for one in proofs if admits(policy, command, peer, needs, one)), proofs)
    limits = (one.principal.limits.topics for one in alone)
    return tuple(topics for topics in limits if topics is not None)
