"""What the HTTP side of a redis-namesrv tells beyond the wire: leases, and its clock (docs/http-api.md)."""

import time
from typing import Any, Final

import httpx
import msgspec

from client.cli.doctor.facts import HttpFacts, Lease

PAGE: Final = 1000
PAGES_MOST: Final = 1000


class _Version(msgspec.Struct, rename="camel"):
    timestamp: int = 0


class _Lease(msgspec.Struct, rename="camel"):
    state: str
    age_millis: int
    remaining_millis: int
    timeout_millis: int


class _Member(msgspec.Struct, rename="camel"):
    broker_id: int
    broker_addr: str
    lease: _Lease
    data_version: _Version | None = None


class _Broker(msgspec.Struct, rename="camel"):
    broker_name: str
    members: list[_Member]


class _Page(msgspec.Struct, rename="camel"):
    brokers: list[_Broker]
    next: str | None = None


class _Ready(msgspec.Struct, rename="camel"):
    now_millis: int


async def http_facts(url: str, timeout_s: float) -> HttpFacts:
    """Ask it; a failure is one of the facts."""
    base = url.rstrip("/")
    try:
        async with httpx.AsyncClient(timeout=timeout_s, transport=httpx.AsyncHTTPTransport()) as client:
            asked_at = time.time()
            ready = await _get(client, f"{base}/readyz", _Ready)
            took_s = time.time() - asked_at
            ahead_s = ready.now_millis / 1000 - (asked_at + took_s / 2)
            leases = await _leases(client, base)
    except (httpx.HTTPError, httpx.InvalidURL, msgspec.DecodeError) as error:
        return HttpFacts(url, failure=str(error) or type(error).__name__)
    return HttpFacts(url, None, leases, ready.now_millis, ahead_s, took_s / 2)


async def _leases(client: httpx.AsyncClient, base: str) -> tuple[Lease, ...]:
    found: list[Lease] = []
    after: dict[str, str] = {}
    for _ in range(PAGES_MOST):
        page = await _get(client, f"{base}/v1/brokers", _Page, {"limit": str(PAGE)} | after)
        found += [_lease(broker.broker_name, member) for broker in page.brokers for member in broker.members]
        if page.next is None:
            break
        after = {"after": page.next}
    return tuple(found)


async def _get(client: httpx.AsyncClient, url: str, shape: Any, query: dict[str, str] | None = None) -> Any:
    answer = await client.get(url, params=query)
    if answer.status_code != httpx.codes.OK:
        raise httpx.HTTPStatusError(f"status {answer.status_code}", request=answer.request, response=answer)
    return msgspec.json.decode(answer.content, type=shape)


def _lease(name: str, member: _Member) -> Lease:
    version = member.data_version.timestamp if member.data_version else 0
    lease = member.lease
    return Lease(
        name,
        member.broker_id,
        member.broker_addr,
        lease.state,
        lease.age_millis,
        lease.remaining_millis,
        lease.timeout_millis,
        version,
    )
