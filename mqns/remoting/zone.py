"""The zone of a process, sent with each request (RocketMQ 5.x)."""

import os
from collections.abc import Mapping

import msgspec

from mqns.remoting.request import Request
from rocketmq_remoting.acl_signature import ZONE_MODE, ZONE_NAME


class Zone(msgspec.Struct, frozen=True):
    """A hook for RemotingOptions. With `mode` a name server returns only the brokers of the zone in routes."""

    name: str
    mode: bool = False

    def __call__(self, address: str, request: Request) -> Request:
        """Return the request with both fields."""
        fields = {ZONE_MODE: str(self.mode).lower(), ZONE_NAME: self.name}
        return Request(request.code, fields | (request.ext or {}), request.body)


def configured_zone(
    properties: Mapping[str, str] | None = None, environ: Mapping[str, str] = os.environ
) -> Zone | None:
    """Return the zone of the properties `rocketmq.zone` and `rocketmq.zone.mode`, else of the environment."""
    properties = properties or {}
    name = properties.get("rocketmq.zone") or environ.get("ROCKETMQ_ZONE")
    mode = properties.get("rocketmq.zone.mode") or environ.get("ROCKETMQ_ZONE_MODE") or ""
    return Zone(name, mode.lower() == "true") if name else None
