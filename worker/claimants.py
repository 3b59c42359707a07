"""The caller of a request as owner of brokers."""

from access.classes import class_of
from access.policy import observes
from access.proof import Proof
from registry.options.catalogue import Options
from registry.ownership import REFUSE, Claimant, ReportedRefusals, registrant_at, registrant_of
from rocketmq_remoting.command import Command
from worker.guard import Verdict
from worker.named import named_by
from worker.peer import Peer

__all__ = ["claimant_of"]


def claimant_of(
    command: Command, peer: Peer, verdict: Verdict, options: Options, reported: ReportedRefusals
) -> Claimant:
    """Return the caller of a request of which this is the verdict; `reported` are refusals that need no event."""
    proof = _with_a_role(command, verdict.proof, peer.standing.proof)
    home = registrant_at(peer.host)
    if proof is None:
        registrant, claims = home, False
    else:
        registrant = registrant_of(proof.principal.name)
        claims = proof.principal.limits.allow(named_by(command))
    return Claimant(
        registrant,
        guard=options.ownership_guard,
        exclusive=options.identity_conflicts == REFUSE,
        observes=observes(options),
        claims=claims,
        home=home,
        operates=verdict.operates,
        proved=verdict.proof is not None,
        reported=reported,
    )


def _with_a_role(command: Command, *proofs: Proof | None) -> Proof | None:
    """Return the first of these proofs whose principal has a role for a request: the key of a client, which many have,
    must not take a broker."""
    needs = class_of(command.code)
    return next((one for one in proofs if one is not None and one.principal.classes & needs), None)
