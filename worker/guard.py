"""Which requests a peer may make: what its address and its certificate allow is noted at the connection (`rights`), and
looked at before a request is decoded further, or answered by its bytes."""

from typing import Final

from access.caller import Caller, caller_at
from access.classes import AccessClass
from access.policy import Policy
from rocketmq_remoting.codes import RequestCode, ResponseCode
from rocketmq_remoting.command import Command
from worker.peer import Peer, Via
from worker.reply import Reply

__all__ = ["CHANGED", "Guard"]

CHANGED: Final = Reply(ext={"changed": "true"}, denied=True)
"""To a data version (322) that is refused: a broker that gets an error takes it for "not changed", and never registers
again; so it registers, and logs that this is refused."""


class Guard:
    """The rules of one worker."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    def admit(self, peer: Peer) -> None:
        """Note what a peer may ask without a signature, once it is known where it comes from."""
        peer.rights = int(self._policy.classes(_caller(peer)))

    def refusal(self, command: Command, peer: Peer, needs: AccessClass) -> Reply | None:
        """Return the answer to a request of a class that is not among the peer's rights; None if it may be made all the
        same."""
        if self._policy.observes:
            return None
        if command.code == RequestCode.QUERY_DATA_VERSION:
            return CHANGED
        ways = self._policy.needs(needs, "remoting")
        remark = f"access denied: {needs.label} needs {ways}; caller wire:{peer.address}"
        return Reply(ResponseCode.NO_PERMISSION, remark=remark, denied=True)


def _caller(peer: Peer) -> Caller:
    if peer.via is Via.UNNAMED:
        return Caller("remoting", tls=peer.tls)
    return caller_at("remoting", peer.host, forwarded=peer.via is Via.FORWARDED, tls=peer.tls)
