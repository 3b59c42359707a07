"""Asks name servers, and connects to brokers, for the facts that the checks need."""

import asyncio
import os
import socket
from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

import msgspec

from client.addresses.syntax import split_address
from client.cli.doctor.facts import ORDER_TOPIC_CONFIG, Facts, NameServerFacts, Probe, broker_addresses
from client.cli.doctor.http_side import http_facts
from client.cli.many import each
from client.cli.output import Output
from client.errors import AddressError, AnswerError, CallTimeout, RemotingError
from client.name_server import calls
from client.name_server.client import AsyncNameServer
from client.wire.call import Call
from remoting.route import TopicRouteData
from remoting.version import version_name

T = TypeVar("T")
CONNECT_S: Final = 3.0
BROKERS: Final = "brokers and clusters"
TOPICS: Final = "list of topics"
CONFIG: Final = "options"
ROUTES: Final = "routes"


class Plan(msgspec.Struct, frozen=True):
    """What to look at. `namespaces` of the KV configuration besides that of order topics; `http` by address."""

    namespaces: tuple[str, ...] = ()
    routes: bool = True
    probes: bool = True
    http: Mapping[str, str] = {}
    timeout_s: float = 5.0


async def collect(server: AsyncNameServer, addresses: Sequence[str], plan: Plan, output: Output) -> Facts:
    """Look at all name servers at once, then at all brokers."""
    with output.progress("name servers", len(addresses)) as done:
        heard = await each(addresses, lambda address: _name_server(server.at(address), address, plan), done)
    if plan.routes:
        heard = await _with_routes(server, heard, output)
    facts = Facts(tuple(heard))
    return Facts(facts.name_servers, await _probes(facts, plan, output)) if plan.probes else facts


async def _name_server(server: AsyncNameServer, address: str, plan: Plan) -> NameServerFacts:
    """All but its routes."""
    try:
        return await _told(server, address, plan)
    except RemotingError as error:
        return _silent(address, error)


async def _told(server: AsyncNameServer, address: str, plan: Plan) -> NameServerFacts:
    refusals: dict[str, str] = {}

    async def ask(what: str, call: Call[T]) -> T | None:
        try:
            return await server.ask(call)
        except AnswerError as error:
            refusals[what] = error.remark or f"code {error.code}"
            return None

    clock = asyncio.get_running_loop().time
    began_at = clock()
    first = await server.remoting.call(address, calls.get_system_topics().request, timeout_s=plan.timeout_s)
    answer_s = clock() - began_at
    info = await ask(BROKERS, calls.get_cluster_info())
    topics = await ask(TOPICS, calls.get_topics())
    config = await ask(CONFIG, calls.get_config())
    kv: dict[str, dict[str, str]] = {}
    for namespace in dict.fromkeys((ORDER_TOPIC_CONFIG, *plan.namespaces)):
        found = await ask(f"KV namespace {namespace}", calls.get_kv_list(namespace))
        kv[namespace] = dict(found.table) if found else {}
    url = plan.http.get(address)
    said = NameServerFacts(
        address=address,
        ips=await _ips(address),
        version=version_name(first.version),
        answer_s=answer_s,
        topics=None if topics is None else frozenset(topics.topic_list),
        kv=kv,
        config=config,
        refusals=refusals,
        http=await http_facts(url, plan.timeout_s) if url is not None else None,
    )
    return said if info is None else msgspec.structs.replace(said, info=info)


async def _with_routes(
    server: AsyncNameServer, heard: Sequence[NameServerFacts], output: Output
) -> list[NameServerFacts]:
    """The routes of a name server's topics; of all that any knows, where it does not list its own."""
    every = frozenset(topic for facts in heard for topic in facts.topics or ())
    wanted = {f.address: sorted(every if f.topics is None else f.topics) for f in heard if f.failure is None}
    with output.progress("routes", sum(map(len, wanted.values()))) as done:

        async def routes(facts: NameServerFacts) -> NameServerFacts:
            at = server.at(facts.address)
            try:
                found = await each(wanted.get(facts.address, []), lambda topic: _route(at, topic), done)
            except RemotingError as error:
                return _silent(facts.address, error)
            answers = dict(zip(wanted.get(facts.address, []), found, strict=True))
            known = {topic: route for topic, route in answers.items() if isinstance(route, TopicRouteData)}
            refused = [
                error.remark or f"code {error.code}" for error in found if isinstance(error, AnswerError)
            ]
            refusals = dict(facts.refusals) | ({ROUTES: refused[-1]} if refused else {})
            return msgspec.structs.replace(facts, routes=known, refusals=refusals)

        return await each(heard, routes)


async def _route(server: AsyncNameServer, topic: str) -> TopicRouteData | AnswerError | None:
    try:
        return await server.get_route(topic)
    except AnswerError as error:
        return error


async def _probes(facts: Facts, plan: Plan, output: Output) -> dict[str, Probe]:
    addresses = broker_addresses(facts)
    limit_s = min(CONNECT_S, plan.timeout_s)
    with output.progress("brokers", len(addresses)) as done:
        probes = await each(addresses, lambda address: _probe(address, limit_s), done)
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
    """What an address resolves to; empty if it does not, or is none."""
    try:
        host, port = split_address(address)
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (AddressError, OSError, UnicodeError):
        return ()
    return tuple(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found))


def _silent(address: str, error: RemotingError) -> NameServerFacts:
    return NameServerFacts(address=address, failure=error.reason, timed_out=isinstance(error, CallTimeout))
