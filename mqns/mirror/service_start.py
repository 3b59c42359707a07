"""When the service of a redis-namesrv began: its workers and HTTP sides say the same, and those of others do not."""

from collections.abc import Callable
from typing import Final

from mqns.name_server import calls
from mqns.remoting.remoting_client import AsyncRemotingClient
from rocketmq_remoting.codes import ResponseCode
from rocketmq_remoting.version import V5_0_0

__all__ = ["ServiceStart"]

FIELD: Final = "startedMillis"
ANY_LOOKUP: Final = calls.get_kv_config("mqns", "mirror")
"""Of a missing key: the release is in the reply, whatever it says."""


class ServiceStart:
    """Asks one name server when its service began. `connects` is as `mqns.mirror.source.Source` has it.

    Only a redis-namesrv says so (19876). Java's of 4.x do not answer such a request, so they are not asked; those of
    5.x refuse and log it, once for each connection."""

    def __init__(
        self, remoting: AsyncRemotingClient, address: str, connects: Callable[[], int], timeout_s: float
    ) -> None:
        self._remoting = remoting
        self._address = address
        self._connects = connects
        self._timeout_s = timeout_s
        self._foreign = -1  # the connection over which another server answered

    async def __call__(self) -> str | None:
        """Return the time, None of another server. Raises RemotingError."""
        if self._connects() == self._foreign:
            return None
        reply = await self._remoting.invoke(self._address, ANY_LOOKUP.request, timeout_s=self._timeout_s)
        if reply.version >= V5_0_0:
            request = calls.check_readiness().request
            reply = await self._remoting.invoke(self._address, request, timeout_s=self._timeout_s)
            if reply.code in (ResponseCode.SUCCESS, ResponseCode.SYSTEM_ERROR):
                return reply.get(FIELD)
        self._foreign = self._connects()
        return None
