"""Configuration of the name servers themselves."""

from typing import Annotated

import typer

from mqns.cli.commands import command, new_app
from mqns.cli.exit_codes import NotFound, NotSet
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
    """Set an option in all name servers, and look whether they list it so: they ignore what they do not know."""
    with settings.name_server() as server:
        server.call_all(calls.update_config({key: value}))
        found = settings.in_order(server.call_all(calls.get_config()))
    done = tuple(address for address, config in found if _is_listed(config.get(key), value))
    if done:
        settings.output.show(
            ConfigChangeDocument(key, value, done), lambda: lines(f"set in {address}" for address in done)
        )
    ignored = [
        f"{key} is {config[key]} in {address}" if key in config else f"no option {key} in {address}"
        for address, config in found
        if address not in done
    ]
    if ignored:
        raise NotSet(f"not set: {'; '.join(ignored)}")


def _is_listed(listed: str | None, value: str) -> bool:
    """Return whether an option has this value, as name servers write it: trimmed, flags and numbers in one way."""
    value = value.strip()
    if listed is None or listed == value:
        return listed is not None
    return (
        listed.lower() == value.lower() in ("true", "false") or _number(listed) == _number(value) is not None
    )


def _number(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None
