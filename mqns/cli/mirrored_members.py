"""Members that a mirror keeps, by the HTTP API of redis-namesrv."""

from collections.abc import Mapping
from typing import Final

import msgspec

from mqns.cli.http_api import HttpApi
from mqns.mirror.target import MirroredMember

__all__ = ["read_mirrored"]

PAGE: Final = 500


class _MemberJson(msgspec.Struct, rename="camel"):
    cluster: str
    broker_id: int
    broker_addr: str
    mirrored_from: str | None = None


class _BrokerJson(msgspec.Struct, rename="camel"):
    broker_name: str
    members: list[_MemberJson]


class _BrokersPage(msgspec.Struct):
    brokers: list[_BrokerJson]
    next: str | None


def read_mirrored(api: HttpApi) -> Mapping[MirroredMember, str]:
    """Return the name servers that each mirrored member is read from. Raises HttpError, ConnectError, CallTimeout."""
    return {
        MirroredMember(
            member.cluster, broker.broker_name, member.broker_id, member.broker_addr
        ): member.mirrored_from
        for page in api.pages(_BrokersPage, f"/v1/brokers?limit={PAGE}")
        for broker in page.brokers
        for member in broker.members
        if member.mirrored_from is not None
    }
