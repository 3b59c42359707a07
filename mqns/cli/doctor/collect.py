"""Collects facts: calls name servers and connects to brokers."""

import asyncio
import os
import socket
from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

import httpx
import msgspec

from mqns.addresses.syntax import split_address
from mqns.cli.doctor.contact import evidence, first_contact, over_http, unanswered
from mqns.cli.doctor.facts import (
    BROKERS,
    CONFIG,
    KV,
    OVER_HTTP,
    ROUTES,
    STORE_AWAY,
    TOPICS,
    Facts,
    HttpFacts,
    NameServerFacts,
    Port,
    Probe,
    Refusal,
    broker_addresses,
)
from mqns.cli.doctor.http_side import STORE_UNAVAILABLE, first_http_facts, more_http_facts
from mqns.cli.http_api import WHAT_IS_IT_S
from mqns.cli.output import Printer
from mqns.cli.settings import CONCURRENT_CALLS
from mqns.errors import AddressError, CallTimeout, ClientError, RemotingError, ResponseError
from mqns.name_server import calls
from mqns.name_server.client import AsyncNameServerClient
from mqns.names import ORDER_TOPIC_CONFIG
from mqns.remoting.call import Call
from mqns.tasks import run_concurrently
from rocketmq_remoting.route import TopicRouteData

T = TypeVar("T")
CONNECT_S: Final = 3.0
PROBES_S: Final = 6.0
"""No connection to a broker is begun later than that after the first one."""
CONCURRENT_PROBES: Final = 256
HTTP_PORT: Final = 80


class CollectOptions(msgspec.Struct, frozen=True):
    """What to collect; `namespaces` of the KV configuration besides ORDER_TOPIC_CONFIG; `http` URLs by address,
    which are asked with `token`; `only_http`: the addresses are URLs themselves, and nothing else is asked.
    `only_tables`: brokers, topics, routes and KV alone, which clients may read; neither options nor readiness."""

    namespaces: tuple[str, ...] = ()
    routes: bool = True
    probes: bool = True
    http: Mapping[str, str] = {}
    timeout_s: float = 5.0
    token: str | None = None
    only_http: bool = False
    only_tables: bool = False


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
    return await _with_probes(facts, plan, output) if plan.probes else facts


async def _name_server(server: AsyncNameServerClient, address: str, plan: CollectOptions) -> NameServerFacts:
    """Return the facts of a name server without its routes: first what needs no store, then the rest."""
    url = plan.http.get(address)
    if plan.only_http and url is not None:
        return await _http_side(server, url, plan)
    if plan.only_tables:
        return await _tables(server, address, plan)
    (facts, store_failure), http, ips = await asyncio.gather(
        first_contact(server, address, plan.timeout_s),
        _first_http(server, url, plan),
        _ips(address),
    )
    facts = msgspec.structs.replace(facts, http=http, ips=ips)
    if facts.failure is not None:
        return msgspec.structs.replace(facts, store_away=over_http(http))
    signs = evidence(facts.not_ready, store_failure, http)
    if signs:
        return _without_store(facts, signs)
    try:
        more = await _more(server, facts, plan)
        away = more.http is not None and more.http.refused_kind == STORE_UNAVAILABLE
        return _without_store(more, over_http(more.http)) if away else more
    except _StoreAway as error:
        return _without_store(facts, (_refused_without_store(error),))
    except RemotingError as error:
        return _unanswered_since(facts, error)


async def _tables(server: AsyncNameServerClient, address: str, plan: CollectOptions) -> NameServerFacts:
    """Return what the lists of a name server say; a failure is one of the facts."""
    facts = NameServerFacts(address=address)
    try:
        return await _more(server, facts, plan)
    except _StoreAway as error:
        return _without_store(facts, (_refused_without_store(error),))
    except RemotingError as error:
        return await unanswered(address, error)


async def _http_side(server: AsyncNameServerClient, url: str, plan: CollectOptions) -> NameServerFacts:
    """Return the facts of a name server of which the HTTP side alone is asked."""
    http = await _first_http(server, url, plan)
    if http is not None and (http.failure is None or http.not_ready is not None):
        http = await more_http_facts(http, plan.timeout_s, plan.token)
    facts = NameServerFacts(address=url, topics=None, http=http, only_http=True)
    if http is not None and http.failure is not None and http.not_ready is None and not http.refused_kind:
        timed_out = http.port is Port.MUTE
        return msgspec.structs.replace(facts, failure=http.failure, timed_out=timed_out)
    return msgspec.structs.replace(facts, store_away=over_http(http))


async def _first_http(
    server: AsyncNameServerClient, url: str | None, plan: CollectOptions
) -> HttpFacts | None:
    """Return the first facts of the HTTP side; where no HTTP is spoken, whether it is a remoting port."""
    if url is None:
        return None
    facts = await first_http_facts(url, plan.timeout_s, plan.token)
    if facts.failure is None or facts.not_ready is not None or facts.port is not None:
        return facts
    try:
        at = httpx.URL(url)
        host = f"[{at.host}]" if ":" in at.host else at.host
        await server.remoting.invoke(
            f"{host}:{at.port or HTTP_PORT}", calls.get_config().request, timeout_s=WHAT_IS_IT_S
        )
    except (ClientError, httpx.InvalidURL):
        return facts
    return msgspec.structs.replace(facts, is_remoting=True)


async def _more(
    server: AsyncNameServerClient, facts: NameServerFacts, plan: CollectOptions
) -> NameServerFacts:
    """Return the facts with what the store has. Raises _StoreAway, RemotingError."""
    refusals: dict[str, Refusal] = {}

    async def ask(what: str, call: Call[T]) -> T | None:
        try:
            return await server.call(call)
        except ResponseError as error:
            refusals[what] = _refusal(what, error)
            return None

    info = await ask(BROKERS, calls.get_cluster_info())
    topics = await ask(TOPICS, calls.get_topics())
    config = None if plan.only_tables else await ask(CONFIG, calls.get_config())
    kv: dict[str, dict[str, str]] = {}
    for namespace in dict.fromkeys((ORDER_TOPIC_CONFIG, *plan.namespaces)):
        what = f"KV namespace {namespace}"
        kv_list = await ask(what, calls.get_kv_list(namespace))
        if what not in refusals:
            kv[namespace] = dict(kv_list.table) if kv_list else {}
    return msgspec.structs.replace(
        facts,
        info=info or facts.info,
        topics=None if topics is None else frozenset(topics.topic_list),
        kv=kv,
        config=config,
        refusals=refusals,
        http=None if facts.http is None else await more_http_facts(facts.http, plan.timeout_s, plan.token),
    )


def _without_store(facts: NameServerFacts, signs: tuple[str, ...]) -> NameServerFacts:
    """Return the facts of a name server whose store is away: the first ones alone, for all others come from it."""
    has_http = facts.http is not None and (facts.http.failure is None or facts.http.not_ready is not None)
    return NameServerFacts(
        address=facts.address,
        ips=facts.ips,
        version=facts.version,
        answer_s=facts.answer_s,
        topics=None,
        http=facts.http,
        store_away=signs,
        not_asked=(BROKERS, TOPICS, ROUTES, KV, *([OVER_HTTP] if has_http else [])),
    )


async def _with_routes(
    server: AsyncNameServerClient, servers: Sequence[NameServerFacts], output: Printer
) -> list[NameServerFacts]:
    """Add the routes of each name server's topics; of all topics if it does not list its own."""
    every = frozenset(topic for facts in servers for topic in facts.topics or ())
    wanted = {
        f.address: sorted(every if f.topics is None else f.topics)
        for f in servers
        if f.failure is None and not f.store_away
    }
    with output.progress("routes", sum(map(len, wanted.values()))) as done:

        async def routes(facts: NameServerFacts) -> NameServerFacts:
            at, topics = server.at(facts.address), wanted.get(facts.address, [])
            try:
                replies = await run_concurrently(
                    lambda topic: _route(at, topic), topics, CONCURRENT_CALLS, done
                )
            except _StoreAway as error:
                return _without_store(facts, (_refused_without_store(error),))
            except RemotingError as error:
                return _unanswered_since(facts, error)
            reply_of = dict(zip(topics, replies, strict=True))
            known = {topic: route for topic, route in reply_of.items() if isinstance(route, TopicRouteData)}
            refused = [reply for reply in replies if isinstance(reply, Refusal)]
            refusals = dict(facts.refusals) | ({ROUTES: refused[-1]} if refused else {})
            return msgspec.structs.replace(facts, routes=known, refusals=refusals)

        return await run_concurrently(routes, servers, CONCURRENT_CALLS)


async def _route(server: AsyncNameServerClient, topic: str) -> TopicRouteData | Refusal | None:
    try:
        return await server.get_route(topic)
    except ResponseError as error:
        return _refusal(ROUTES, error)


async def _with_probes(facts: Facts, plan: CollectOptions, output: Printer) -> Facts:
    """Add whether each address of a broker, and of a name server that an HTTP side lists, is reached, of those that are
    begun within PROBES_S."""
    brokers = broker_addresses(facts)
    listed = {address for listed in facts.listed_name_servers().values() for address in listed}
    addresses = sorted({*brokers, *listed})
    limit_s = min(CONNECT_S, plan.timeout_s)
    clock = asyncio.get_running_loop().time
    until = clock() + PROBES_S

    async def probe(address: str) -> Probe | None:
        return await _probe(address, limit_s) if clock() < until else None

    with output.progress("addresses", len(addresses)) as done:
        probes = await run_concurrently(probe, addresses, CONCURRENT_PROBES, done)
    probe_of = {address: probe for address, probe in zip(addresses, probes, strict=True) if probe is not None}
    return Facts(
        facts.name_servers,
        {address: probe_of[address] for address in brokers if address in probe_of},
        tuple(address for address in addresses if address not in probe_of),
        {address: probe_of[address] for address in listed if address in probe_of},
    )


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


class _StoreAway(Exception):
    """A redis-namesrv got no answer from its store; the text is what was asked for."""


def _refused_without_store(error: _StoreAway) -> str:
    return f"the request for {error} got code 1 ({STORE_AWAY})"


def _refusal(what: str, error: ResponseError) -> Refusal:
    """Return the refusal of a request. Raises _StoreAway: all others would wait for the store, and be refused too."""
    if error.remark == STORE_AWAY:
        raise _StoreAway(what)
    return Refusal(error.code, error.remark or f"code {error.code}")


def _unanswered_since(facts: NameServerFacts, error: RemotingError) -> NameServerFacts:
    """Return the facts of a name server that answered at first, and then did not.

    Its store is away if it also says that it is not ready: a store that is late answers the first lookup in time."""
    signs = (*over_http(facts.http), *filter(None, [facts.not_ready]))
    if signs and isinstance(error, CallTimeout):
        return _without_store(facts, (f"a request that needs it got {error.reason}", *signs))
    return _silent(facts, error)


def _silent(facts: NameServerFacts, error: RemotingError) -> NameServerFacts:
    """Return the facts of a name server that answered at first, and then did not."""
    return NameServerFacts(
        address=facts.address,
        failure=f"it answered at first, then: {error.reason}",
        timed_out=isinstance(error, CallTimeout),
        port=Port.MUTE,
    )
