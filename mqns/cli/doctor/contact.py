"""The first questions to a name server, which need no store: is the port open, what does it speak, is it ready."""

import asyncio
from typing import Final

import msgspec

from mqns.cli.doctor.facts import STORE_AWAY, HttpFacts, NameServerFacts, Port
from mqns.cli.doctor.http_side import STORE_UNAVAILABLE
from mqns.cli.http_api import http_status
from mqns.errors import CallTimeout, ConnectError, RemotingError, ResponseError
from mqns.name_server import calls
from mqns.name_server.client import AsyncNameServerClient
from mqns.remoting.remoting_client import AsyncRemotingClient
from rocketmq_remoting.codes import ResponseCode
from rocketmq_remoting.version import V5_0_0, version_name

READINESS_S: Final = 3.0
READINESS_CONNECTIONS: Final = 16
STORE_LATE_S: Final = 1.0
"""A lookup that takes longer is a sign: lists ask the store several times, and would be waited for in vain."""
STORE_LOOKUP: Final = calls.get_kv_config("mqns", "doctor")
"""A lookup of a missing key: no worker caches the reply, so the store is asked."""


async def first_contact(
    server: AsyncNameServerClient, address: str, timeout_s: float
) -> tuple[NameServerFacts, str | None]:
    """Return whether and what a name server answers, and why its store did not answer, None if it did.

    Options are asked for first: every release has them in memory. The second result is None of Java's, too."""
    clock = asyncio.get_running_loop().time
    began_at = clock()
    try:
        first = await server.remoting.invoke(address, calls.get_config().request, timeout_s=timeout_s)
    except RemotingError as error:
        return await unanswered(address, error), None
    facts = NameServerFacts(address=address, version=version_name(first.version), answer_s=clock() - began_at)
    if first.version < V5_0_0:
        return facts, None
    late = await _late_workers(server.remoting, address, min(READINESS_S, timeout_s))
    if late is None:
        return facts, None
    return msgspec.structs.replace(facts, not_ready=late or None), await _store_failure(server)


def evidence(not_ready: str | None, store_failure: str | None, http: HttpFacts | None) -> tuple[str, ...]:
    """Return what says that the store is away, nothing if it is not.

    `/readyz` alone may be wrong, which waits for half a second, and so may a lookup that is late."""
    signs = (store_failure is not None, bool(over_http(http)), not_ready is not None)
    if sum(signs) < 2 and STORE_AWAY not in (store_failure or ""):
        return ()
    texts = [f"a lookup got {store_failure}"] if store_failure else []
    return (*texts, *over_http(http), *filter(None, [not_ready]))


def over_http(http: HttpFacts | None) -> tuple[str, ...]:
    """Return what of the HTTP side says that the store is away."""
    if http is None:
        return ()
    ready = [f"{http.url}/readyz: {http.not_ready}"] if http.not_ready_kind == STORE_UNAVAILABLE else []
    refused = [f"{http.url}: {http.refused}"] if http.refused_kind == STORE_UNAVAILABLE else []
    return (*ready, *refused)


async def _store_failure(server: AsyncNameServerClient) -> str | None:
    """Return why a lookup that needs the store was not answered, or how late."""
    clock = asyncio.get_running_loop().time
    began_at = clock()
    try:
        await server.call(STORE_LOOKUP)
    except CallTimeout as error:
        return error.reason
    except ResponseError as error:
        if error.remark == STORE_AWAY:
            return f"code {error.code} ({STORE_AWAY})"
    except RemotingError:
        return None
    took_s = clock() - began_at
    return f"its answer after {took_s:.1f} s" if took_s > STORE_LATE_S else None


async def _late_workers(remoting: AsyncRemotingClient, address: str, limit_s: float) -> str | None:
    """Return how many workers say what they are late with, "" if all are ready; None if it is no redis-namesrv.

    A connection is one worker's, so as many are open at once as reach most of them behind a load balancer. Java's name
    servers of 5.x refuse the request, those of 4.x do not answer it: they are not asked."""
    first = await _readiness(remoting, address, limit_s)
    if first is None:
        return None
    others = [remoting.alike() for _ in range(READINESS_CONNECTIONS - 1)]
    try:
        answers = await asyncio.gather(*(_readiness(one, address, limit_s) for one in others))
    finally:
        await asyncio.gather(*(one.close() for one in others))
    reports = [answer for answer in (first, *answers) if answer is not None]
    late = sorted(
        (report for report in reports if report), key=len, reverse=True
    )  # the longest names all causes
    if not late:
        return ""
    return f"{len(late)} of {len(reports)} connections are of workers that are not ready: {late[0]}"


async def _readiness(remoting: AsyncRemotingClient, address: str, limit_s: float) -> str | None:
    """Return what the worker of this connection is late with, "" if nothing is; None if it does not say."""
    try:
        response = await remoting.invoke(address, calls.check_readiness().request, timeout_s=limit_s)
    except RemotingError:
        return None
    if response.code == ResponseCode.SUCCESS:
        return ""
    if response.code != ResponseCode.SYSTEM_ERROR:
        return None
    return (response.remark or f"code {response.code}").removeprefix("not ready: ")


async def unanswered(address: str, error: RemotingError) -> NameServerFacts:
    """Return the facts of an address where no name server answered, and what is there instead."""
    if isinstance(error, ConnectError):
        return NameServerFacts(address=address, failure=error.reason)
    status = await http_status(address)
    if status is not None:
        return NameServerFacts(
            address=address, failure=f"it speaks HTTP (GET /healthz: status {status})", port=Port.HTTP
        )
    timed_out = isinstance(error, CallTimeout)
    port = Port.MUTE if timed_out else Port.FOREIGN
    return NameServerFacts(address=address, failure=error.reason, timed_out=timed_out, port=port)
