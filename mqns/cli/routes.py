"""The command `routes`: brokers and queues of topics."""

import asyncio
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.table import Table

from mqns.cli.commands import command
from mqns.cli.exit_codes import NotFound
from mqns.cli.output import Document, table
from mqns.cli.settings import CONCURRENT_CALLS, CommandContext
from mqns.name_server.client import AsyncNameServerClient
from mqns.tasks import run_concurrently
from rocketmq_remoting.permission import perm_text
from rocketmq_remoting.route import TopicRouteData

Topics = Annotated[list[str], typer.Argument(help="Topics", metavar="TOPIC", show_default=False)]


class BrokerDocument(Document, frozen=True):
    """The brokers of one name; `broker_addrs` by id, 0 is the master."""

    cluster: str
    broker_name: str
    broker_addrs: dict[int, str]
    enable_acting_master: bool
    zone_name: str | None


class QueueDocument(Document, frozen=True):
    """A topic's queues on the brokers of one name; `perm` is the sum of 4 (read), 2 (write) and 1 (inherit)."""

    broker_name: str
    read_queue_nums: int
    write_queue_nums: int
    perm: int
    topic_sys_flag: int


class RouteDocument(Document, frozen=True):
    """The route of a topic, brokers sorted by name."""

    topic: str
    broker_datas: list[BrokerDocument]
    queue_datas: list[QueueDocument]
    filter_server_table: dict[str, tuple[str, ...]]
    order_topic_conf: str | None


def add(app: typer.Typer, panel: str) -> None:
    """The command `routes`."""
    command(app, panel=panel)(routes)


def routes(settings: CommandContext, topics: Topics) -> None:
    """The brokers that serve these topics, and with how many queues.

    A topic that no broker serves is reported on standard error, and the exit code is 1."""
    served, missing = asyncio.run(_ask(settings, topics))
    settings.output.show(served, lambda: routes_table(served))
    if missing:
        raise NotFound(f"no route of {', '.join(topic or repr(topic) for topic in missing)}")


def document(topic: str, route: TopicRouteData) -> RouteDocument:
    """Return the document of a route."""
    brokers = [
        BrokerDocument(
            data.cluster,
            data.broker_name,
            dict(sorted(data.broker_addrs.items())),
            data.enable_acting_master,
            data.zone_name,
        )
        for data in sorted(route.broker_datas, key=lambda data: data.broker_name)
    ]
    queues = [
        QueueDocument(
            data.broker_name, data.read_queue_nums, data.write_queue_nums, data.perm, data.topic_sys_flag
        )
        for data in sorted(route.queue_datas, key=lambda data: data.broker_name)
    ]
    filters = dict(sorted(route.filter_server_table.items()))
    return RouteDocument(topic, brokers, queues, filters, route.order_topic_conf)


def routes_table(documents: Sequence[RouteDocument]) -> Table:
    """Return a table with a row for each topic and broker name."""
    return table(
        ("TOPIC", "CLUSTER", "BROKER", "ADDRESSES", "READ", "WRITE", "PERM"),
        [
            (
                route.topic,
                broker.cluster if broker else "",
                queue.broker_name,
                addresses_text(broker.broker_addrs) if broker else "",
                queue.read_queue_nums,
                queue.write_queue_nums,
                perm_text(queue.perm),
            )
            for route in documents
            for queue in route.queue_datas
            for broker in [_broker(route, queue.broker_name)]
        ],
    )


def addresses_text(addresses: dict[int, str]) -> str:
    """Return `0=10.0.0.1:10911 1=10.0.0.2:10911`."""
    return " ".join(f"{number}={address}" for number, address in sorted(addresses.items()))


async def documents(
    server: AsyncNameServerClient, topics: Sequence[str], settings: CommandContext
) -> list[RouteDocument | None]:
    """Return the routes of topics, None for a topic without one."""

    async def one(topic: str) -> RouteDocument | None:
        route = await server.get_route(topic)
        return None if route is None else document(topic, route)

    with settings.output.progress("routes", len(topics)) as done:
        return await run_concurrently(one, topics, CONCURRENT_CALLS, done)


async def _ask(settings: CommandContext, topics: Sequence[str]) -> tuple[list[RouteDocument], list[str]]:
    async with settings.async_name_server() as server:
        replies = await documents(server, topics, settings)
    served = [route for route in replies if route is not None]
    return served, [topic for topic, route in zip(topics, replies, strict=True) if route is None]


def _broker(route: RouteDocument, name: str) -> BrokerDocument | None:
    return next((broker for broker in route.broker_datas if broker.broker_name == name), None)
