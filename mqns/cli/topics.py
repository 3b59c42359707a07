"""Lists of topics."""

import asyncio
from enum import StrEnum
from typing import Annotated, Final

import typer

from mqns.cli.commands import command
from mqns.cli.output import lines
from mqns.cli.routes import RouteDocument, documents, routes_table
from mqns.cli.settings import CommandContext
from mqns.errors import ConfigError
from mqns.name_server import calls
from mqns.remoting.call import Call
from rocketmq_remoting.topic_list import TopicList


class Kind(StrEnum):
    """The topic lists of a name server."""

    ALL = "all"
    SYSTEM = "system"
    UNIT = "unit"
    UNIT_SUB = "unit-sub"
    UNIT_SUB_ONLY = "unit-sub-only"


_CALLS: Final = {
    Kind.ALL: calls.get_topics,
    Kind.SYSTEM: calls.get_system_topics,
    Kind.UNIT: calls.get_unit_topics,
    Kind.UNIT_SUB: calls.get_unit_sub_topics,
    Kind.UNIT_SUB_ONLY: calls.get_unit_sub_ununit_topics,
}
OfKind = Annotated[
    Kind,
    typer.Option(
        "--kind",
        "-k",
        help="system: named like clusters and brokers; unit: with the unit flag; unit-sub: with the flag of unit "
        "subscriptions; unit-sub-only: with that and without the unit flag",
    ),
]
OfCluster = Annotated[
    str | None, typer.Option("--cluster", "-c", help="Of this cluster only", show_default=False)
]
WithRoutes = Annotated[bool, typer.Option("--routes", "-r", help="With the route of each")]


def add(app: typer.Typer, panel: str) -> None:
    """The command `topics`."""
    command(app, panel=panel)(topics)


def topics(
    settings: CommandContext, cluster: OfCluster = None, kind: OfKind = Kind.ALL, routes: WithRoutes = False
) -> None:
    """The topics, sorted: all, of a cluster, or of a kind."""
    if cluster is not None and kind is not Kind.ALL:
        raise ConfigError("topics of a cluster, or of a kind: not both")
    call = _CALLS[kind]() if cluster is None else calls.get_topics_of_cluster(cluster)
    if routes:
        listed = asyncio.run(_with_routes(settings, call))
        settings.output.show(listed, lambda: routes_table(listed))
        return
    with settings.name_server() as server:
        names = sorted(set(server.call(call).topic_list))
    settings.output.show(names, lambda: lines(names))


async def _with_routes(settings: CommandContext, call: Call[TopicList]) -> list[RouteDocument]:
    async with settings.async_name_server() as server:
        names = sorted(set((await server.call(call)).topic_list))
        answers = await documents(server, names, settings)
    return [answer for answer in answers if answer is not None]  # None: deleted meanwhile
