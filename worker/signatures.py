"""What the signatures of requests prove, by the principals in force."""

from collections.abc import Callable, Mapping

from access.classes import AccessClass
from access.policy import Policy
from access.principals import Principals
from access.proof import Proof
from rocketmq_remoting.acl_signature import ACCESS_KEY
from rocketmq_remoting.remoting_command import Command

__all__ = ["Signatures"]


class Signatures:
    """`principals` are those in force; `used` gets each credential that proves one, `clock` gives Unix seconds."""

    def __init__(self, policy: Policy, used: Callable[[str], object], clock: Callable[[], float]) -> None:
        self.principals = Principals()
        self._count_for_reads = policy.rules[AccessClass.READ].names("signed")
        self._used = used
        self._clock = clock

    def proof(self, command: Command, needs: AccessClass) -> Proof | None:
        """Return what the signature of a request proves; None without one, and where no rule asks. Raises
        BadCredential."""
        fields = command.ext
        if (
            not fields
            or ACCESS_KEY not in fields
            or (needs == AccessClass.READ and not self._count_for_reads)
        ):
            return None
        return self.proof_of(fields, command.body)

    def proof_of(self, fields: Mapping[str, str], body: bytes) -> Proof | None:
        """Return what the signature among these fields proves, None without a known key. Raises BadCredential."""
        proof = self.principals.by_signature(fields, body, self._clock())
        if proof is not None:
            self._used(proof.credential)
        return proof
