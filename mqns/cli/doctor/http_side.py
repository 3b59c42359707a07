"""Facts from the HTTP API of redis-namesrv: readiness, its clock, leases, drains, its findings (docs/http-api.md)."""

import time
from collections.abc import AsyncIterator
from typing import Any, Final, TypeVar

import httpx
import msgspec

from mqns.addresses.syntax import parse_addresses
from mqns.cli.doctor.facts import BrokerLease, HttpFacts, OwnFinding, Port
from mqns.cli.drain_list import DrainDocument, DrainPage
from mqns.cli.http_api import ask, bearer, decode
from mqns.errors import AddressError

T = TypeVar("T", bound=msgspec.Struct)
READYZ: Final = "/readyz"
NAME_SERVERS: Final = "/rocketmq/nsaddr"
STORE_UNAVAILABLE: Final = "store-unavailable"
NOT_FOLLOWED: Final = "events-not-followed"
"""Kinds of problems that `/readyz` has."""
MS: Final = 1000
FAILURES: Final = (httpx.HTTPError, httpx.InvalidURL, msgspec.DecodeError)
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


class _FindingsJson(msgspec.Struct, rename="camel"):
    now_millis: int = 0
    findings: tuple[OwnFinding, ...] = ()


class _Problem(msgspec.Struct):
    detail: str = ""
    type: str = ""


class _StatusError(Exception):
    """A response with another status than 200; `detail` is its reason and `kind` the end of its type, "" without."""

    def __init__(self, path: str, status: int, problem: _Problem) -> None:
        super().__init__(f"GET {path}: status {status}" + (f": {problem.detail}" if problem.detail else ""))
        self.status = status
        self.detail = problem.detail
        self.kind = problem.type.rpartition(":")[2]


async def first_http_facts(url: str, timeout_s: float, token: str | None = None) -> HttpFacts:
    """Return what `/healthz` and `/readyz` at a URL say; a failure is one of the facts."""
    try:
        async with _client(url, timeout_s, token) as client:
            await ask(client, timeout_s, "GET", "/healthz")  # whatever the status, HTTP is spoken
            asked_at = time.time()
            ready = await _get(client, timeout_s, READYZ, _ReadyJson)
            took_s = time.time() - asked_at
    except _StatusError as error:
        return _not_ready(url, error)
    except FAILURES as error:
        return HttpFacts(url, _text(error), port=_port(error))
    return HttpFacts(
        url,
        now_ms=ready.now_millis,
        clock_ahead_s=ready.now_millis / MS - (asked_at + took_s / 2),
        clock_within_s=took_s / 2,
    )


async def more_http_facts(first: HttpFacts, timeout_s: float, token: str | None = None) -> HttpFacts:
    """Return the first facts with all others, which are read from the store; as they are if there is no HTTP side."""
    if first.failure is not None and first.not_ready is None:
        return first
    try:
        async with _client(first.url, timeout_s, token) as client:
            leases = await _leases(client, timeout_s)
            drains = await _drains(client, timeout_s)
            own = await _own_findings(client, timeout_s)
            listed = await _listed(client, timeout_s)
    except _StatusError as error:
        refused = str(error) if httpx.codes.is_server_error(error.status) else None
        return msgspec.structs.replace(first, failure=str(error), refused=refused, refused_kind=error.kind)
    except FAILURES as error:
        return msgspec.structs.replace(first, failure=_text(error), port=_port(error))
    return msgspec.structs.replace(
        first,
        failure=None,
        now_ms=first.now_ms or own.now_millis,
        leases=leases,
        drains=drains,
        findings=own.findings,
        listed=listed,
    )


def _client(url: str, timeout_s: float, token: str | None) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        base_url=url.rstrip("/"),
        timeout=timeout_s,
        headers=bearer(token),
        transport=httpx.AsyncHTTPTransport(),
    )


def _text(error: Exception) -> str:
    return str(error) or type(error).__name__


def _port(error: Exception) -> Port | None:
    """Return what is there by the error of a request; None where something came, or the URL is wrong."""
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        return Port.CLOSED
    return Port.MUTE if isinstance(error, httpx.TimeoutException) else None


def _not_ready(url: str, error: _StatusError) -> HttpFacts:
    if not httpx.codes.is_server_error(error.status):
        return HttpFacts(url, str(error))
    return HttpFacts(
        url, str(error), not_ready=error.detail or f"status {error.status}", not_ready_kind=error.kind
    )


async def _own_findings(client: httpx.AsyncClient, timeout_s: float) -> _FindingsJson:
    """Return what it finds about itself; nothing of a release that does not say."""
    try:
        found: _FindingsJson = await _get(client, timeout_s, "/v1/doctor", _FindingsJson)
    except _StatusError as error:
        if error.status != httpx.codes.NOT_FOUND:
            raise
        return _FindingsJson()
    return found


async def _listed(client: httpx.AsyncClient, timeout_s: float) -> tuple[str, ...]:
    """Return the name servers that clients without any learn from it; nothing where it has no list."""
    status, body = await ask(client, timeout_s, "GET", NAME_SERVERS)
    if status != httpx.codes.OK:
        return ()
    try:
        return parse_addresses(body.decode(errors="replace"), default_port=None)
    except AddressError:
        return ()


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
        raise _StatusError(path, status, _problem(body))
    return decode(body, shape)


def _problem(body: bytes) -> _Problem:
    try:
        problem: _Problem = decode(body, _Problem)
    except msgspec.DecodeError:
        return _Problem()
    return problem


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
