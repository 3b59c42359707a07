"""Previews of requests that RocketMQ's name servers have: from the routes and values that they answer."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeAlias

from msgspec.structs import replace

from mqns.cli.previews import Preview
from mqns.cli.settings import CONCURRENT_CALLS, CommandContext
from mqns.name_server.client import AsyncNameServerClient
from mqns.names import ORDER_TOPIC_CONFIG
from mqns.tasks import run_concurrently
from rocketmq_remoting.permission import PERM_READ, PERM_WRITE
from rocketmq_remoting.route import TopicRouteData
from rocketmq_remoting.route_changes import Named, RouteComparison

__all__ = ["of_config", "of_kv", "of_permission", "of_topic"]

Change: TypeAlias = Callable[[TopicRouteData], TopicRouteData | None]
"""Makes of a route what it would be; None: no broker would be left."""
NOT_THERE: Final = "not there"


def of_topic(settings: CommandContext, topic: str, cluster: str | None) -> list[Preview]:
    """Return what deleting a topic would mean at each name server, in one cluster or (None) in all."""
    sentence = f"delete topic {topic}" + (f" of cluster {cluster}" if cluster else "")

    def without_cluster(route: TopicRouteData) -> TopicRouteData | None:
        left = tuple(data for data in route.broker_datas if cluster and data.cluster != cluster)
        names = {data.broker_name for data in left}
        queues = tuple(data for data in route.queue_datas if data.broker_name in names)
        return replace(route, broker_datas=left, queue_datas=queues) if left else None

    async def one(server: AsyncNameServerClient, address: str) -> Preview:
        return await _compared(server, address, sentence, (topic,), without_cluster)

    return _at_each(settings, one)


def of_permission(settings: CommandContext, brokers: Sequence[str], *, wipes: bool) -> list[Preview]:
    """Return what taking the write permission of brokers, or giving read and write, would mean at each name server."""
    names = set(brokers)
    sentence = f"{'take the write permission from' if wipes else 'give read and write permission to'} "
    sentence += ", ".join(dict.fromkeys(brokers))

    def with_permission(route: TopicRouteData) -> TopicRouteData:
        queues = tuple(
            replace(data, perm=data.perm & ~PERM_WRITE if wipes else PERM_READ | PERM_WRITE)
            if data.broker_name in names
            else data
            for data in route.queue_datas
        )
        return replace(route, queue_datas=queues)

    async def one(server: AsyncNameServerClient, address: str) -> Preview:
        topics = (await server.get_topics()).topic_list
        return await _compared(server, address, sentence, sorted(set(topics)), with_permission)

    return _at_each(settings, one)


def of_kv(settings: CommandContext, namespace: str, key: str, value: str | None) -> list[Preview]:
    """Return what setting a key, or (None) deleting it, would mean at each name server."""
    what = f"key {key} of namespace {namespace}"

    async def one(server: AsyncNameServerClient, address: str) -> Preview:
        stored = await server.get_kv_config(namespace, key)
        sentence = (f"delete {what}" if value is None else f"set {what} to {value}") + _now(stored)
        if namespace != ORDER_TOPIC_CONFIG:
            return Preview(address, sentence, stored != value)
        comparison = RouteComparison()
        if (route := await server.get_route(key)) is not None:
            comparison.add(
                key, replace(route, order_topic_conf=stored), replace(route, order_topic_conf=value)
            )
        return Preview(address, sentence, stored != value, None, comparison.changes())

    return _at_each(settings, one)


def of_config(settings: CommandContext, key: str, value: str) -> list[Preview]:
    """Return what setting an option would mean at each name server."""

    async def one(server: AsyncNameServerClient, address: str) -> Preview:
        listed = (await server.get_config()).get(key)
        return Preview(address, f"set option {key} to {value}{_now(listed)}", listed != value)

    return _at_each(settings, one)


def _now(stored: str | None) -> str:
    return f" (now {NOT_THERE if stored is None else stored})"


def _at_each(
    settings: CommandContext, one: Callable[[AsyncNameServerClient, str], Awaitable[Preview]]
) -> list[Preview]:
    """Return the previews of all name servers, in the order in which they were given."""

    async def every() -> list[Preview]:
        found = []
        for address in settings.addresses:
            async with settings.async_name_server_at(address) as server:
                found.append(await one(server, address))
        return found

    return asyncio.run(every())


async def _compared(
    server: AsyncNameServerClient, address: str, sentence: str, topics: Sequence[str], change: Change
) -> Preview:
    """Return what a change would make of the routes of these topics."""
    comparison, brokers = RouteComparison(), set[str]()
    routes = await run_concurrently(server.get_route, topics, CONCURRENT_CALLS, lambda: None)
    for topic, route in zip(topics, routes, strict=True):
        if route is not None:
            after = change(route)
            comparison.add(topic, route, after)
            left = set() if after is None else set(after.queue_datas)
            brokers |= {data.broker_name for data in left.symmetric_difference(route.queue_datas)}
    changes = comparison.changes()
    return Preview(address, sentence, changes.changed.count > 0, Named.of(brokers), changes)
