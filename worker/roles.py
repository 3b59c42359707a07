"""Who asks for lists or changes: connections of operators, as metrics count them."""

from typing import Final

from rocketmq_remoting.codes import RequestCode
from worker.cache.lists import LISTS
from worker.overload.admission import REWRITES
from worker.peer import Peer

__all__ = ["Admins"]

CODES: Final = frozenset(
    {
        *(LISTS | REWRITES),
        RequestCode.PUT_KV_CONFIG,
        RequestCode.DELETE_KV_CONFIG,
        RequestCode.UPDATE_NAMESRV_CONFIG,
    }
)


class Admins(set[Peer]):
    """Open connections over which one of these was asked."""

    def see(self, code: int, peer: Peer) -> None:
        """Note a request; one that waited may outlive its connection."""
        if code in CODES and not peer.closed:
            self.add(peer)

    def without_brokers(self) -> int:
        """Return over how many of them no broker has registered."""
        return sum(not peer.registered for peer in self)
