"""Members that a mirror keeps, by the HTTP API of redis-namesrv."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

import msgspec

from mqns.cli.http_api import HttpApi, HttpError
from mqns.mirror.target import MirroredMember

__all__ = ["read_mirrored"]

PAGE: Final = 500
PAGES_MAX: Final = 1000


class _MemberJson(msgspec.Struct, rename="camel"):
    cluster: str
    broker_id: int
    broker_addr: str
    mirrored_from: str | None = None


class _BrokerJson(msgspec.Struct, rename="camel"):
    broker_name: str
    members: list[_MemberJson]


class _BrokersJson(msgspec.Struct):
    brokers: list[_BrokerJson]
    next: str | None


def read_mirrored(api: HttpApi) -> Mapping[MirroredMember, str]:
    """Return the name servers that each mirrored member is read from. Raises HttpError, ConnectError, CallTimeout."""
    marks: dict[MirroredMember, str] = {}
    after = ""
    for _ in range(PAGES_MAX):
        page = api.request(_BrokersJson, "GET", f"/v1/brokers?limit={PAGE}&after={quote(after, safe='')}")
        for broker in page.brokers:
            for member in broker.members:
                if member.mirrored_from is not None:
                    key = MirroredMember(
                        member.cluster, broker.broker_name, member.broker_id, member.broker_addr
                    )
                    marks[key] = member.mirrored_from
        if page.next is None:
            return marks
        after = page.next
    raise HttpError(f"over {PAGES_MAX} pages of brokers")
