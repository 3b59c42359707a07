"""ClusterTest mode: a topic without a route here gets the route of a product cluster.

Java finds that cluster's name servers through an address server; here option namesrvProductAddr lists them.
"""

import asyncio
import logging
import random

from registry.options.catalogue import Options
from rocketmq_remoting.codes import RequestCode, ResponseCode
from rocketmq_remoting.command import encode
from rocketmq_remoting.errors import BodyError, FrameError
from rocketmq_remoting.frame import FrameReader
from rocketmq_remoting.json_encoding import Dialect
from rocketmq_remoting.remoting_command import Command
from rocketmq_remoting.route import decode_route, encode_route
from rocketmq_remoting.version import CURRENT
from worker.cache.views import asked_view
from worker.logs.rate_limited_log import RateLimitedLog
from worker.reply import Reply

BUDGET_S = 2.0  # below the 3 s that clients give a route query
READ_BYTES = 1 << 16

log = RateLimitedLog(logging.getLogger(__name__))


class ProductCluster:
    """`addresses` are `host:port`, separated by `;`."""

    def __init__(self, addresses: str) -> None:
        self._addresses = [address.strip() for address in addresses.split(";") if address.strip()]

    async def instead(self, missing: Reply, request: Command, options: Options) -> Reply:
        """Return the product cluster's route in the dialect that was asked for; `missing` when it has none either.

        It is not cached: no event says when it changes."""
        topic = request.get("topic") or ""
        for address in random.sample(self._addresses, len(self._addresses)):
            try:
                async with asyncio.timeout(BUDGET_S):
                    reply = await ask_route(address, topic)
                if reply.code == ResponseCode.SUCCESS:
                    asked = asked_view(request, options)
                    dialect = Dialect.STANDARD if asked.standard else Dialect.LEGACY
                    body = encode_route(decode_route(reply.body), dialect, v5_members=not asked.omits_v5)
                    return Reply(body=body)
            except (OSError, TimeoutError, FrameError, BodyError) as error:
                log.warning(
                    "name server %s of the product cluster gave no route: %s; the next one is asked",
                    address,
                    error,
                )
        return Reply(missing.code, missing.remark)


async def ask_route(address: str, topic: str) -> Command:
    """Send one route query over a connection of its own. Raises OSError, FrameError."""
    host, _, port = address.rpartition(":")
    if not port.isdecimal():
        raise OSError(f"{address!r} is not host:port")
    reader, writer = await asyncio.open_connection(host.strip("[]"), int(port))
    try:
        ext = {"topic": topic, "acceptStandardJsonOnly": "true"}
        writer.write(encode(Command(RequestCode.GET_ROUTEINFO_BY_TOPIC, 1, version=CURRENT, ext=ext)))
        frames = FrameReader()
        while (reply := frames.next_command()) is None:
            received = await reader.read(READ_BYTES)
            if not received:
                raise OSError("closed without an answer")
            frames.feed(received)
        return reply
    finally:
        writer.close()
