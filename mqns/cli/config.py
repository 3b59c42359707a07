"""Configuration of the name servers themselves."""

from typing import Annotated

import typer

from mqns.cli.commands import command, new_app
from mqns.cli.exit_codes import NotFound
from mqns.cli.output import Document, lines, table
from mqns.cli.settings import CommandContext
from mqns.name_server import calls

Keys = Annotated[
    list[str] | None,
    typer.Argument(help="Options; all, if none is named", metavar="[KEY]...", show_default=False),
]
Key = Annotated[str, typer.Argument(help="Option", show_default=False)]
Value = Annotated[str, typer.Argument(help="Value", show_default=False)]


class ConfigDocument(Document, frozen=True):
    """The options of one name server, sorted."""

    name_server: str
    config: dict[str, str]


class ConfigChangeDocument(Document, frozen=True):
    """What was set, and where."""

    key: str
    value: str
    name_servers: tuple[str, ...]


def add(app: typer.Typer, panel: str) -> None:
    """The commands `config …`."""
    group = new_app("Options of the name servers themselves.")
    command(group)(get)
    command(group, "set")(set_)
    app.add_typer(group, name="config", rich_help_panel=panel)


def get(settings: CommandContext, keys: Keys = None) -> None:
    """Options of each name server."""
    with settings.name_server() as server:
        found = settings.in_order(server.call_all(calls.get_config()))
    documents = [
        ConfigDocument(address, {key: config[key] for key in sorted(config) if not keys or key in keys})
        for address, config in found
    ]
    settings.output.show(
        documents,
        lambda: table(
            ("NAME SERVER", "OPTION", "VALUE"),
            [(document.name_server, *entry) for document in documents for entry in document.config.items()],
        ),
    )
    missing = [key for key in keys or () if not any(key in document.config for document in documents)]
    if missing:
        raise NotFound(f"no option {', '.join(missing)}")


def set_(settings: CommandContext, key: Key, value: Value) -> None:
    """Set an option in all name servers. Options that they do not know are ignored there."""
    with settings.name_server() as server:
        server.call_all(calls.update_config({key: value}))
    settings.output.show(
        ConfigChangeDocument(key, value, settings.addresses),
        lambda: lines(f"set in {address}" for address in settings.addresses),
    )
