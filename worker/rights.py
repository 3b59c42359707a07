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

__all__ = ["admits", "admits_anywhere", "caller_of", "is_barred", "ways_of"]


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
    """Return whether the rules admit a request by its signature, whatever its connection has proven: only where its
    principal has the role, also under a rule that asks for none, for a certificate may be what counts or bars there."""
    classes = within(signature.principal, named_by(command), needs)
    return bool(needs & classes) and policy.admits(needs, Caller("remoting", signed=classes))


def is_barred(command: Command, peer: Peer, needs: AccessClass, signature: Proof | None) -> bool:
    """Return whether a bad certificate keeps a request out: not one with a signature whose principal may make it."""
    if not needs & peer.standing.barred:
        return False
    return signature is None or not needs & within(signature.principal, named_by(command), needs)


def ways_of(
    policy: Policy, command: Command, peer: Peer, needs: AccessClass, proofs: list[Proof]
) -> tuple[tuple[Patterns, ...], ...]:
    """Return the topics of each proof that admits a request alone; those of all together where none does. Nothing
    where one of these ways has no limit."""
    alone = [[one] for one in proofs if admits(policy, command, peer, needs, one)]
    limits = ([one.principal.limits.topics for one in way] for way in alone or [proofs])
    ways = tuple(tuple(topics for topics in way if topics is not None) for way in limits)
    return ways if all(ways) else ()
