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
    """Connections over which one of these was asked, and no broker has registered."""

    def see(self, code: int, peer: Peer) -> None:
        """Note a request."""
        if code in CODES and not peer.registered:
            self.add(peer)
