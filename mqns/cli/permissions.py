"""Write permission of brokers."""

from collections.abc import Callable, Mapping
from typing import Annotated

import msgspec
import typer

from mqns.cli.commands import command, new_app
from mqns.cli.drain_list import DrainState, owner_text, states_if_asked
from mqns.cli.http_api import HttpIfAny
from mqns.cli.output import Document, table
from mqns.cli.previews import approved
from mqns.cli.route_previews import of_permission
from mqns.cli.settings import CommandContext
from mqns.cli.shell import arguments, command_line
from mqns.name_server import calls
from mqns.remoting.call import Call

Brokers = Annotated[list[str], typer.Argument(help="Broker names", metavar="BROKER", show_default=False)]


class PermissionDocument(Document, frozen=True):
    """The number of changed topics of a broker at a name server; 0 for an unknown broker."""

    name_server: str
    broker_name: str
    topic_count: int


class DrainedPermissionDocument(PermissionDocument, frozen=True):
    """The same, and the drain of the broker, None without one: routes show no write permission meanwhile."""

    drain: DrainState | None


def add(app: typer.Typer, panel: str) -> None:
    """The commands `permissions …`."""
    group = new_app("Write permission of brokers, until they register changed topics.")
    command(group, changes="takes away")(wipe)
    command(group, "add", changes="something")(give)
    app.add_typer(group, name="permissions", rich_help_panel=panel)


def wipe(settings: CommandContext, brokers: Brokers, http: HttpIfAny = None) -> None:
    """Take the write permission from all topics of brokers, in all name servers."""
    if approved(settings, lambda: of_permission(settings, brokers, wipes=True)):
        _change(settings, brokers, calls.wipe_write_perm, http)


def give(settings: CommandContext, brokers: Brokers, http: HttpIfAny = None) -> None:
    """Make all topics of brokers readable and writable, in all name servers. It ends no drain."""
    if not approved(settings, lambda: of_permission(settings, brokers, wipes=False)):
        return
    drains = _change(settings, brokers, calls.add_write_perm, http)
    for broker in dict.fromkeys(brokers):
        if broker in drains:
            undrain = command_line("mqns", "undrain", *arguments(broker))
            settings.output.error(
                f"{broker} is drained, and routes show no write permission; to end the drain: {undrain}"
            )


def _change(
    settings: CommandContext, brokers: list[str], call: Callable[[str], Call[int]], http: str | None
) -> Mapping[str, DrainState]:
    """Change permissions and show the number of topics; return the drains that are known."""
    with settings.name_server() as server:
        documents = [
            PermissionDocument(address, broker, count)
            for broker in brokers
            for address, count in settings.in_order(server.call_all(call(broker)))
        ]
    headings = ("NAME SERVER", "BROKER", "TOPICS")
    drains, failure = states_if_asked(settings, http)
    if drains is None:
        settings.output.show(documents, lambda: table(headings, map(msgspec.structs.astuple, documents)))
    else:
        drained = [
            DrainedPermissionDocument(
                **msgspec.structs.asdict(document), drain=drains.get(document.broker_name)
            )
            for document in documents
        ]
        settings.output.show(
            drained,
            lambda: table(
                (*headings, "DRAIN"),
                [
                    (one.name_server, one.broker_name, one.topic_count, owner_text(one.drain))
                    for one in drained
                ],
            ),
        )
    changed = {document.broker_name for document in documents if document.topic_count}
    for broker in dict.fromkeys(brokers):
        if broker not in changed:
            name = broker or repr(broker)
            settings.output.error(f"no topic of broker {name}; `mqns brokers` lists the names of brokers")
    if failure is not None:
        raise failure
    return drains or {}
