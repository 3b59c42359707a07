"""Lists of topics."""

import asyncio
from enum import StrEnum
from typing import Annotated, Final

import typer

from mqns.cli.commands import command
from mqns.cli.output import OutputFormat, lines
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
WithPrefix = Annotated[
    str, typer.Option("--prefix", "-p", help="Whose names begin so, as %RETRY%", show_default=False)
]
WithRoutes = Annotated[bool, typer.Option("--routes", "-r", help="With the route of each")]


def add(app: typer.Typer, panel: str) -> None:
    """The command `topics`."""
    command(app, panel=panel)(topics)


def topics(
    settings: CommandContext,
    cluster: OfCluster = None,
    kind: OfKind = Kind.ALL,
    prefix: WithPrefix = "",
    routes: WithRoutes = False,
) -> None:
    """The topics, sorted: all, of a cluster, or of a kind; those of them with a prefix."""
    if cluster is not None and kind is not Kind.ALL:
        raise ConfigError("topics of a cluster, or of a kind: not both")
    call = _CALLS[kind]() if cluster is None else calls.get_topics_of_cluster(cluster)
    if routes:
        listed = asyncio.run(_with_routes(settings, call, prefix))
        settings.output.show(listed, lambda: routes_table(listed))
        return
    with settings.name_server() as server:
        names = _names(server.call(call), prefix)
    if names or settings.output.form is not OutputFormat.TABLE:
        settings.output.show(names, lambda: lines(names))
    if not names and cluster is not None:
        wanted = f"cluster {cluster or repr(cluster)}" + (prefix and f" with prefix {prefix}")
        settings.output.error(f"no topic of {wanted}; `mqns clusters` lists the names of clusters")


def _names(listed: TopicList, prefix: str) -> list[str]:
    """Return the topics with a prefix, sorted: no request of RocketMQ names one."""
    return sorted({name for name in listed.topic_list if name.startswith(prefix)})


async def _with_routes(settings: CommandContext, call: Call[TopicList], prefix: str) -> list[RouteDocument]:
    async with settings.async_name_server() as server:
        names = _names(await server.call(call), prefix)
        answers = await documents(server, names, settings)
    return [answer for answer in answers if answer is not None]  # None: deleted meanwhile
