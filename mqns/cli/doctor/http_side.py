"""Facts from the HTTP API of redis-namesrv: leases, drains, its clock, repairs of its tables (docs/http-api.md)."""

import time
from collections.abc import AsyncIterator, Iterator
from typing import Any, Final, TypeVar

import httpx
import msgspec

from mqns.cli.doctor.facts import BrokerLease, HttpFacts, LimitFacts, StoreFacts
from mqns.cli.drain_list import DrainDocument, DrainPage
from mqns.cli.http_api import ask, decode

T = TypeVar("T", bound=msgspec.Struct)
READYZ: Final = "/readyz"
PAGE: Final = 1000
PAGES_MAX: Final = 1000


class _VersionJson(msgspec.Struct, rename="camel"):
    timestamp: int = 0


class _LeaseJson(msgspec.Struct, rename="camel"):
    state: str
    age_millis: int
    remaining_millis: int
    timeout_millis: int


class _MemberJson(msgspec.Struct, rename="camel"):
    broker_id: int
    broker_addr: str
    lease: _LeaseJson
    data_version: _VersionJson | None = None


class _BrokerJson(msgspec.Struct, rename="camel"):
    broker_name: str
    members: list[_MemberJson]


class _BrokerPageJson(msgspec.Struct, rename="camel"):
    brokers: list[_BrokerJson]
    next: str | None = None


class _ReadyJson(msgspec.Struct, rename="camel"):
    now_millis: int
    started_millis: int = 0
    clock_back_millis: int | None = None
    clock_back_at_millis: int | None = None


class _RepairsJson(msgspec.Struct, rename="camel"):
    repaired_rows: dict[str, int] | None = None
    repaired_millis: int | None = None
    walked_millis: int | None = None
    walk_took_millis: int | None = None
    walking_millis: int | None = None
    evicting_policy: str | None = None


class _UsedJson(msgspec.Struct):
    used: int
    most: int


class _BrokersJson(_UsedJson, rename="camel"):
    most_of_host: int | None = None


class _HostJson(msgspec.Struct):
    host: str
    brokers: int


class _LimitsJson(msgspec.Struct, rename="camel"):
    brokers: _BrokersJson | None = None
    topics: _UsedJson | None = None
    kv_namespaces: _UsedJson | None = None
    hosts: list[_HostJson] = []


class _Problem(msgspec.Struct):
    detail: str = ""


class _StatusError(Exception):
    """A response with another status than 200; `detail` is its reason, "" without one."""

    def __init__(self, path: str, status: int, detail: str) -> None:
        super().__init__(f"GET {path}: status {status}" + (f": {detail}" if detail else ""))
        self.path = path
        self.status = status
        self.detail = detail


async def http_facts(url: str, timeout_s: float) -> HttpFacts:
    """Return the facts of the HTTP API at a URL; a failure is one of them."""
    try:
        async with httpx.AsyncClient(
            base_url=url.rstrip("/"), timeout=timeout_s, transport=httpx.AsyncHTTPTransport()
        ) as client:
            asked_at = time.time()
            ready = await _get(client, timeout_s, READYZ, _ReadyJson)
            took_s = time.time() - asked_at
            ahead_s = ready.now_millis / 1000 - (asked_at + took_s / 2)
            leases = await _leases(client, timeout_s)
            drains = await _drains(client, timeout_s)
            repairs = await _known(client, timeout_s, "/v1/repairs", _RepairsJson)
            limits = await _known(client, timeout_s, "/v1/limits", _LimitsJson)
    except _StatusError as error:
        return _failed(url, error)
    except (httpx.HTTPError, httpx.InvalidURL, msgspec.DecodeError) as error:
        return HttpFacts(url, failure=str(error) or type(error).__name__)
    store = StoreFacts(
        started_ms=ready.started_millis,
        repaired_rows=None if repairs.repaired_rows is None else sum(repairs.repaired_rows.values()),
        repaired_ms=repairs.repaired_millis,
        walked_ms=repairs.walked_millis,
        walking_ms=repairs.walking_millis,
        clock_back_ms=ready.clock_back_millis,
        clock_back_at_ms=ready.clock_back_at_millis,
        walk_took_ms=repairs.walk_took_millis,
        evicting_policy=repairs.evicting_policy,
        limits=tuple(_limits(limits)),
        hosts=tuple((host.host, host.brokers) for host in limits.hosts),
        most_of_host=limits.brokers.most_of_host if limits.brokers else None,
    )
    return HttpFacts(url, None, leases, ready.now_millis, ahead_s, took_s / 2, store, drains=drains)


def _failed(url: str, error: _StatusError) -> HttpFacts:
    failed = httpx.codes.is_server_error(error.status)
    if failed and error.path == READYZ:
        return HttpFacts(url, str(error), not_ready=error.detail or f"status {error.status}")
    return HttpFacts(url, str(error), refused=str(error) if failed else None)


async def _known(client: httpx.AsyncClient, timeout_s: float, path: str, shape: type[T]) -> T:
    """Return what a path says; unknown values of a release that does not have it."""
    try:
        found: T = await _get(client, timeout_s, path, shape)
    except _StatusError as error:
        if error.status != httpx.codes.NOT_FOUND:
            raise
        return shape()
    return found


def _limits(found: _LimitsJson) -> Iterator[LimitFacts]:
    for what, option, used in (
        ("brokers", "maxBrokers", found.brokers),
        ("topics", "maxTopics", found.topics),
        ("KV namespaces", "maxKvNamespaces", found.kv_namespaces),
    ):
        if used is not None:
            yield LimitFacts(what, option, used.used, used.most)


async def _leases(client: httpx.AsyncClient, timeout_s: float) -> tuple[BrokerLease, ...]:
    return tuple(
        [
            _lease(broker.broker_name, member)
            async for page in _pages(client, timeout_s, "/v1/brokers", _BrokerPageJson)
            for broker in page.brokers
            for member in broker.members
        ]
    )


async def _drains(client: httpx.AsyncClient, timeout_s: float) -> tuple[DrainDocument, ...] | None:
    """Return the drains in force; None of a release that does not list them."""
    try:
        return tuple(
            [
                drain
                async for page in _pages(client, timeout_s, "/v1/drains", DrainPage)
                for drain in page.drains
            ]
        )
    except _StatusError as error:
        if error.status != httpx.codes.NOT_FOUND:
            raise
        return None


async def _pages(client: httpx.AsyncClient, timeout_s: float, path: str, shape: type[T]) -> AsyncIterator[T]:
    """Yield the pages of a list, PAGES_MAX of them at most."""
    after: dict[str, str] = {}
    for _ in range(PAGES_MAX):
        page: Any = await _get(client, timeout_s, path, shape, {"limit": str(PAGE)} | after)
        yield page
        if page.next is None:
            return
        after = {"after": page.next}


async def _get(
    client: httpx.AsyncClient,
    timeout_s: float,
    path: str,
    shape: Any,
    query: dict[str, str] | None = None,
) -> Any:
    status, body = await ask(client, timeout_s, "GET", path, params=query)
    if status != httpx.codes.OK:
        raise _StatusError(path, status, _detail(body))
    return decode(body, shape)


def _detail(body: bytes) -> str:
    try:
        return str(decode(body, _Problem).detail)
    except msgspec.DecodeError:
        return ""


def _lease(name: str, member: _MemberJson) -> BrokerLease:
    version = member.data_version.timestamp if member.data_version else 0
    lease = member.lease
    return BrokerLease(
        name,
        member.broker_id,
        member.broker_addr,
        lease.state,
        lease.age_millis,
        lease.remaining_millis,
        lease.timeout_millis,
        version,
    )
