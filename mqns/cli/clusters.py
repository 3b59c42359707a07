"""Clusters and their brokers."""

from typing import Annotated

import msgspec
import typer

from mqns.cli.commands import command
from mqns.cli.drain_list import DrainState, owner_text, states_if_asked
from mqns.cli.exit_codes import NotFound
from mqns.cli.http_api import HttpIfAny
from mqns.cli.output import Document, table
from mqns.cli.settings import CommandContext
from mqns.names import MASTER_ID
from rocketmq_remoting.cluster import ClusterInfo

OfCluster = Annotated[
    str | None, typer.Option("--cluster", "-c", help="Of this cluster only", show_default=False)
]


class ClusterDocument(Document, frozen=True):
    """A cluster; `masters` and `slaves` count addresses."""

    cluster: str
    broker_names: list[str]
    masters: int
    slaves: int


class MemberDocument(Document, frozen=True):
    """One broker; `role` is `master` or `slave`."""

    cluster: str
    broker_name: str
    broker_id: int
    broker_addr: str
    role: str
    enable_acting_master: bool
    zone_name: str | None


class DrainedMemberDocument(MemberDocument, frozen=True):
    """One broker, and the drain of its name, None without one."""

    drain: DrainState | None


def add(app: typer.Typer, panel: str) -> None:
    """The commands `clusters` and `brokers`."""
    command(app, panel=panel)(clusters)
    command(app, panel=panel)(brokers)


def clusters(settings: CommandContext) -> None:
    """All clusters."""
    with settings.name_server() as server:
        info = server.get_cluster_info()
    documents = [_cluster(info, name) for name in sorted(info.cluster_addr_table)]
    settings.output.show(
        documents,
        lambda: table(
            ("CLUSTER", "BROKERS", "MASTERS", "SLAVES", "NAMES"),
            [
                (c.cluster, len(c.broker_names), c.masters, c.slaves, " ".join(c.broker_names))
                for c in documents
            ],
        ),
    )


def brokers(settings: CommandContext, cluster: OfCluster = None, http: HttpIfAny = None) -> None:
    """All brokers, with their addresses; with --http also whether they are drained."""
    with settings.name_server() as server:
        info = server.get_cluster_info()
    if cluster is not None and cluster not in info.cluster_addr_table:
        raise NotFound(f"no cluster {cluster or repr(cluster)}")
    documents = [member for member in members(info) if cluster in (None, member.cluster)]
    headings = ("CLUSTER", "BROKER", "ID", "ADDRESS", "ROLE", "ACTING MASTER", "ZONE")
    rows = [_row(member) for member in documents]
    drains, failure = states_if_asked(settings, http)
    if drains is None:
        settings.output.show(documents, lambda: table(headings, rows))
    else:
        states = [drains.get(member.broker_name) for member in documents]
        settings.output.show(
            [
                DrainedMemberDocument(**msgspec.structs.asdict(member), drain=state)
                for member, state in zip(documents, states, strict=True)
            ],
            lambda: table(
                (*headings, "DRAIN"),
                [(*row, owner_text(state)) for row, state in zip(rows, states, strict=True)],
            ),
        )
    if failure is not None:
        raise failure


def _row(member: MemberDocument) -> tuple[object, ...]:
    return (
        member.cluster,
        member.broker_name,
        member.broker_id,
        member.broker_addr,
        member.role,
        "enabled" if member.enable_acting_master else "",
        member.zone_name or "",
    )


def members(info: ClusterInfo) -> list[MemberDocument]:
    """Return the brokers of all clusters, sorted."""
    return [
        MemberDocument(
            cluster,
            name,
            number,
            address,
            "slave" if number else "master",
            data.enable_acting_master,
            data.zone_name,
        )
        for cluster, names in sorted(info.cluster_addr_table.items())
        for name in sorted(names)
        if (data := info.broker_addr_table.get(name)) is not None
        for number, address in sorted(data.broker_addrs.items())
    ]


def _cluster(info: ClusterInfo, cluster: str) -> ClusterDocument:
    names = sorted(info.cluster_addr_table[cluster])
    tables = [info.broker_addr_table[name].broker_addrs for name in names if name in info.broker_addr_table]
    ids = [number for addresses in tables for number in addresses]
    return ClusterDocument(cluster, names, ids.count(MASTER_ID), len(ids) - ids.count(MASTER_ID))
