"""Collects facts: calls name servers and connects to brokers."""

import asyncio
import os
import socket
from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

import msgspec

from mqns.addresses.syntax import split_address
from mqns.cli.doctor.facts import (
    BROKERS,
    CONFIG,
    ROUTES,
    TOPICS,
    Facts,
    NameServerFacts,
    Probe,
    Refusal,
    broker_addresses,
)
from mqns.cli.doctor.http_side import http_facts
from mqns.cli.output import Printer
from mqns.cli.settings import CONCURRENT_CALLS
from mqns.errors import AddressError, CallTimeout, RemotingError, ResponseError
from mqns.name_server import calls
from mqns.name_server.client import AsyncNameServerClient
from mqns.names import ORDER_TOPIC_CONFIG
from mqns.remoting.call import Call
from mqns.remoting.remoting_client import AsyncRemotingClient
from mqns.tasks import run_concurrently
from rocketmq_remoting.codes import ResponseCode
from rocketmq_remoting.route import TopicRouteData
from rocketmq_remoting.version import V5_0_0, version_name

T = TypeVar("T")
CONNECT_S: Final = 3.0
READINESS_S: Final = 3.0
READINESS_CONNECTIONS: Final = 16


class CollectOptions(msgspec.Struct, frozen=True):
    """What to collect; `namespaces` of the KV configuration besides ORDER_TOPIC_CONFIG; `http` URLs by address."""

    namespaces: tuple[str, ...] = ()
    routes: bool = True
    probes: bool = True
    http: Mapping[str, str] = {}
    timeout_s: float = 5.0


async def collect(
    server: AsyncNameServerClient, addresses: Sequence[str], plan: CollectOptions, output: Printer
) -> Facts:
    """Return the facts of all name servers, collected concurrently, then of all brokers."""
    with output.progress("name servers", len(addresses)) as done:
        servers = await run_concurrently(
            lambda address: _name_server(server.at(address), address, plan), addresses, CONCURRENT_CALLS, done
        )
    if plan.routes:
        servers = await _with_routes(server, servers, output)
    facts = Facts(tuple(servers))
    return Facts(facts.name_servers, await _probes(facts, plan, output)) if plan.probes else facts


async def _name_server(server: AsyncNameServerClient, address: str, plan: CollectOptions) -> NameServerFacts:
    """Return the facts of a name server without its routes."""
    try:
        return await _call_name_server(server, address, plan)
    except RemotingError as error:
        return _silent(address, error)


async def _call_name_server(
    server: AsyncNameServerClient, address: str, plan: CollectOptions
) -> NameServerFacts:
    refusals: dict[str, Refusal] = {}

    async def ask(what: str, call: Call[T]) -> T | None:
        try:
            return await server.call(call)
        except ResponseError as error:
            refusals[what] = _refusal(error)
            return None

    clock = asyncio.get_running_loop().time
    began_at = clock()
    first = await server.remoting.invoke(address, calls.get_system_topics().request, timeout_s=plan.timeout_s)
    answer_s = clock() - began_at
    info = await ask(BROKERS, calls.get_cluster_info())
    topics = await ask(TOPICS, calls.get_topics())
    config = await ask(CONFIG, calls.get_config())
    kv: dict[str, dict[str, str]] = {}
    for namespace in dict.fromkeys((ORDER_TOPIC_CONFIG, *plan.namespaces)):
        what = f"KV namespace {namespace}"
        kv_list = await ask(what, calls.get_kv_list(namespace))
        if what not in refusals:
            kv[namespace] = dict(kv_list.table) if kv_list else {}
    url = plan.http.get(address)
    facts = NameServerFacts(
        address=address,
        ips=await _ips(address),
        version=version_name(first.version),
        answer_s=answer_s,
        topics=None if topics is None else frozenset(topics.topic_list),
        kv=kv,
        config=config,
        refusals=refusals,
        not_ready=await _not_ready(server, address, first.version, plan.timeout_s),
        http=await http_facts(url, plan.timeout_s) if url is not None else None,
    )
    return facts if info is None else msgspec.structs.replace(facts, info=info)


async def _not_ready(
    server: AsyncNameServerClient, address: str, version: int, timeout_s: float
) -> str | None:
    """Return how many workers say what they are late with; None if all are ready, or it is no redis-namesrv.

    A connection is one worker's, so as many are open at once as reach most of them behind a load balancer. Java's name
    servers of 5.x refuse the request, those of 4.x do not answer it: they are not asked."""
    if version < V5_0_0:
        return None
    limit_s = min(READINESS_S, timeout_s)
    first = await _readiness(server.remoting, address, limit_s)
    if first is None:
        return None
    others = [server.remoting.alike() for _ in range(READINESS_CONNECTIONS - 1)]
    try:
        answers = await asyncio.gather(*(_readiness(one, address, limit_s) for one in others))
    finally:
        await asyncio.gather(*(one.close() for one in others))
    reports = [answer for answer in (first, *answers) if answer is not None]
    late = [report for report in reports if report]
    return (
        f"{len(late)} of {len(reports)} connections are of workers that are not ready: {late[0]}"
        if late
        else None
    )


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


async def _with_routes(
    server: AsyncNameServerClient, servers: Sequence[NameServerFacts], output: Printer
) -> list[NameServerFacts]:
    """Add the routes of each name server's topics; of all topics if it does not list its own."""
    every = frozenset(topic for facts in servers for topic in facts.topics or ())
    wanted = {
        f.address: sorted(every if f.topics is None else f.topics) for f in servers if f.failure is None
    }
    with output.progress("routes", sum(map(len, wanted.values()))) as done:

        async def routes(facts: NameServerFacts) -> NameServerFacts:
            at, topics = server.at(facts.address), wanted.get(facts.address, [])
            try:
                replies = await run_concurrently(
                    lambda topic: _route(at, topic), topics, CONCURRENT_CALLS, done
                )
            except RemotingError as error:
                return _silent(facts.address, error)
            reply_of = dict(zip(topics, replies, strict=True))
            known = {topic: route for topic, route in reply_of.items() if isinstance(route, TopicRouteData)}
            refused = [_refusal(error) for error in replies if isinstance(error, ResponseError)]
            refusals = dict(facts.refusals) | ({ROUTES: refused[-1]} if refused else {})
            return msgspec.structs.replace(facts, routes=known, refusals=refusals)

        return await run_concurrently(routes, servers, CONCURRENT_CALLS)


async def _route(server: AsyncNameServerClient, topic: str) -> TopicRouteData | ResponseError | None:
    try:
        return await server.get_route(topic)
    except ResponseError as error:
        return error


async def _probes(facts: Facts, plan: CollectOptions, output: Printer) -> dict[str, Probe]:
    addresses = broker_addresses(facts)
    limit_s = min(CONNECT_S, plan.timeout_s)
    with output.progress("brokers", len(addresses)) as done:
        probes = await run_concurrently(
            lambda address: _probe(address, limit_s), addresses, CONCURRENT_CALLS, done
        )
    return dict(zip(addresses, probes, strict=True))


async def _probe(address: str, limit_s: float) -> Probe:
    ips = await _ips(address)
    if not ips:
        return Probe((), "its name is not known here")
    try:
        host, port = split_address(address)
        async with asyncio.timeout(limit_s):
            _, writer = await asyncio.open_connection(host, port)
    except TimeoutError:
        return Probe(ips, f"no connection within {limit_s:g} s")
    except OSError as error:
        return Probe(ips, f"no connection: {os.strerror(error.errno) if error.errno else error}")
    writer.close()
    return Probe(ips)


async def _ips(address: str) -> tuple[str, ...]:
    """Return the IP addresses of an address; empty if it is invalid or does not resolve."""
    try:
        host, port = split_address(address)
        address_infos = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (AddressError, OSError, UnicodeError):
        return ()
    return tuple(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in address_infos))


def _refusal(error: ResponseError) -> Refusal:
    return Refusal(error.code, error.remark or f"code {error.code}")


def _silent(address: str, error: RemotingError) -> NameServerFacts:
    return NameServerFacts(address=address, failure=error.reason, timed_out=isinstance(error, CallTimeout))
