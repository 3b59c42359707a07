"""Write permission of brokers."""

from collections.abc import Callable
from typing import Annotated

import typer

from mqns.cli.commands import command, new_app
from mqns.cli.output import Document, table
from mqns.cli.settings import CommandContext
from mqns.name_server import calls
from mqns.remoting.call import Call

Brokers = Annotated[list[str], typer.Argument(help="Broker names", metavar="BROKER...", show_default=False)]


class PermissionDocument(Document, frozen=True):
    """The number of changed topics of a broker at a name server; 0 for an unknown broker."""

    name_server: str
    broker_name: str
    topic_count: int


def add(app: typer.Typer, panel: str) -> None:
    """The commands `permissions …`."""
    group = new_app("Write permission of brokers, until they register changed topics.")
    command(group)(wipe)
    command(group, "add")(give)
    app.add_typer(group, name="permissions", rich_help_panel=panel)


def wipe(settings: CommandContext, brokers: Brokers) -> None:
    """Take the write permission from all topics of brokers, in all name servers."""
    _change(settings, brokers, calls.wipe_write_perm)


def give(settings: CommandContext, brokers: Brokers) -> None:
    """Make all topics of brokers readable and writable, in all name servers."""
    _change(settings, brokers, calls.add_write_perm)


def _change(settings: CommandContext, brokers: list[str], call: Callable[[str], Call[int]]) -> None:
    with settings.name_server() as server:
        documents = [
            PermissionDocument(address, broker, count)
            for broker in brokers
            for address, count in settings.in_order(server.call_all(call(broker)))
        ]
    settings.output.show(
        documents,
        lambda: table(
            ("NAME SERVER", "BROKER", "TOPICS"),
            [(document.name_server, document.broker_name, document.topic_count) for document in documents],
        ),
    )
