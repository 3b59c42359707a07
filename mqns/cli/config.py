"""Configuration of the name servers themselves."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Final

import msgspec
import typer

from mqns.cli.commands import command, new_app
from mqns.cli.exit_codes import NotFound, NotSet
from mqns.cli.output import Document, lines, table
from mqns.cli.previews import approved, preview_by_http
from mqns.cli.route_previews import of_config
from mqns.cli.settings import CommandContext
from mqns.name_server import calls

Keys = Annotated[
    list[str] | None,
    typer.Argument(help="Options; all, if none is named", metavar="KEY", show_default=False),
]
Key = Annotated[str, typer.Argument(help="Option", show_default=False)]
Value = Annotated[str, typer.Argument(help="Value", show_default=False)]
Http = Annotated[
    str | None,
    typer.Option(
        "--http",
        help="HTTP side of a redis-namesrv, which then gets the change: it refuses values out of range, and reports "
        "when the option is in force",
        metavar="URL",
        show_default=False,
    ),
]
IN_FORCE: Final = {
    "live": "in force at once",
    "restart": "in force from the next start on",
    "never": "listed only, and never in force",
}
UNLISTED: Final = "; options that a name server does not list are set at its start only"
UNKNOWN: Final = "when it is in force is not said"
FLAGS: Final = ("true", "false")
WHEN: Final = "redis-namesrv says with --http URL when it is in force"


class ConfigDocument(Document, frozen=True):
    """The options of one name server, sorted."""

    name_server: str
    config: dict[str, str]


class ConfigChangeDocument(Document, frozen=True):
    """What was set, and where."""

    key: str
    value: str
    name_servers: tuple[str, ...]


class ConfigHttpDocument(Document, frozen=True):
    """What was set over HTTP, and when it is in force: `live`, `restart` or `never` (docs/http-api.md)."""

    key: str
    value: str
    http: str
    in_force: str


class _WrittenJson(msgspec.Struct, rename="camel"):
    in_force: dict[str, str]


def add(app: typer.Typer, panel: str) -> None:
    """The commands `config …`."""
    group = new_app("Options of the name servers themselves.")
    command(group)(get)
    command(group, "set", any_value=True, changes="takes away")(set_)
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


def set_(settings: CommandContext, key: Key, value: Value, http: Http = None) -> None:
    """Set an option in all name servers, and look whether they list it so: they ignore what they do not know.

    What they list need not be in force: redis-namesrv reports it with --http, Java's do not."""
    if http is None:
        _set_in_all(settings, key, value)
    else:
        _set_by_http(settings, key, value, http)


def _set_by_http(settings: CommandContext, key: str, value: str, url: str) -> None:
    """Set an option of one redis-namesrv. Raises HttpError for what it refuses."""
    body = {"settings": {key: value}}
    api = settings.http_api(url)
    change = f"set option {key} to {value}"
    if not approved(settings, lambda: [preview_by_http(api, change, "PATCH", "/v1/settings", body)]):
        return
    written = api.request(_WrittenJson, "PATCH", "/v1/settings", body)
    in_force = written.in_force.get(key, "")
    settings.output.show(
        ConfigHttpDocument(key, value, api.url, in_force),
        lambda: lines([f"set in {api.url}: {IN_FORCE.get(in_force, in_force or UNKNOWN)}"]),
    )


def _set_in_all(settings: CommandContext, key: str, value: str) -> None:
    if not approved(settings, lambda: of_config(settings, key, value)):
        return
    with settings.name_server() as server:
        if value.lower() not in FLAGS:
            _expect_no_flag(key, value, settings.in_order(server.call_all(calls.get_config())))
        server.call_all(calls.update_config({key: value}))
        found = settings.in_order(server.call_all(calls.get_config()))
    done = tuple(address for address, config in found if _is_listed(config.get(key), value))
    if done:
        settings.output.show(
            ConfigChangeDocument(key, value, done),
            lambda: lines(f"listed by {address} ({WHEN})" for address in done),
        )
    ignored = [
        f"{key} is {config[key]} in {address}" if key in config else f"no option {key} in {address}"
        for address, config in found
        if address not in done
    ]
    if ignored:
        unlisted = any(key not in config for _, config in found)
        raise NotSet(f"not set: {'; '.join(ignored)}{UNLISTED if unlisted else ''}")


def _expect_no_flag(key: str, value: str, found: Sequence[tuple[str, Mapping[str, str]]]) -> None:
    """Raise NotSet for a flag, which name servers would set to false, as Java reads any text but `true`."""
    of_flag = [address for address, config in found if config.get(key) in FLAGS]
    if of_flag and value.strip().lower() != "false":
        raise NotSet(
            f"not set: {value!r} is neither true nor false, as {key} is in {'; '.join(of_flag)}; nothing was sent"
        )


def _is_listed(listed: str | None, value: str) -> bool:
    """Return whether an option has this value, as name servers write it: trimmed, flags and numbers in one way."""
    value = value.strip()
    if listed is None or listed == value:
        return listed is not None
    return listed.lower() == value.lower() in FLAGS or _number(listed) == _number(value) is not None


def _number(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None
