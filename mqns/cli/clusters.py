"""Clusters and their brokers."""

from collections.abc import Mapping
from typing import Annotated

import msgspec
import typer

from mqns.cli.commands import command
from mqns.cli.drain_list import DrainState, owner_text, states_if_asked
from mqns.cli.exit_codes import NotFound
from mqns.cli.http_api import HttpIfAny
from mqns.cli.mirrored_members import read_mirrored
from mqns.cli.output import Document, table
from mqns.cli.settings import CommandContext
from mqns.errors import ClientError
from mqns.mirror.target import MirroredMember
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


class KeptMemberDocument(MemberDocument, frozen=True):
    """One broker, and what only a redis-namesrv knows: the drain of its name, None without one, and the name
    servers that a mirror reads it from, None of one that registered itself."""

    drain: DrainState | None
    mirrored_from: str | None


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
    """All brokers, with their addresses; with --http also whether they are drained or mirrored."""
    with settings.name_server() as server:
        info = server.get_cluster_info()
    if cluster is not None and cluster not in info.cluster_addr_table:
        raise NotFound(f"no cluster {cluster or repr(cluster)}")
    documents = [member for member in members(info) if cluster in (None, member.cluster)]
    headings = ("CLUSTER", "BROKER", "ID", "ADDRESS", "ROLE", "ACTING MASTER", "ZONE")
    rows = [_row(member) for member in documents]
    drains, failure = states_if_asked(settings, http)
    marks: Mapping[MirroredMember, str] = {}
    if drains is not None and http is not None:
        try:
            marks = read_mirrored(settings.http_api(http))
        except ClientError as error:
            failure = error
    if drains is None:
        settings.output.show(documents, lambda: table(headings, rows))
    else:
        kept = [_kept(member, drains, marks) for member in documents]
        settings.output.show(
            kept,
            lambda: table(
                (*headings, "DRAIN", "MIRRORED FROM"),
                [
                    (*row, owner_text(member.drain), member.mirrored_from or "")
                    for row, member in zip(rows, kept, strict=True)
                ],
            ),
        )
    if failure is not None:
        raise failure


def _kept(
    member: MemberDocument, drains: Mapping[str, DrainState], marks: Mapping[MirroredMember, str]
) -> KeptMemberDocument:
    key = MirroredMember(member.cluster, member.broker_name, member.broker_id, member.broker_addr)
    own = msgspec.structs.asdict(member)
    return KeptMemberDocument(**own, drain=drains.get(member.broker_name), mirrored_from=marks.get(key))


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
