"""Every option of a running redis-namesrv, by its HTTP API: what is in force, and where that comes from."""

from typing import Annotated

import msgspec
import typer

from mqns.cli.commands import command
from mqns.cli.exit_codes import NotFound
from mqns.cli.http_api import Http, HttpApi, HttpError, name_in_path
from mqns.cli.output import Document, lines, table
from mqns.cli.settings import CommandContext
from mqns.errors import ConfigError

Name = Annotated[
    str | None,
    typer.Argument(help="An option; all, if none is named", metavar="OPTION", show_default=False),
]
Changed = Annotated[bool, typer.Option("--changed", help="Only options that are not as by default")]
UNSHARED = "-"
STORE_AWAY = "the store is away: values are those of the start, and what all workers share is not known"


class OptionDocument(Document, frozen=True):
    """An option of one server (docs/http-api.md, Options); `shared` is null where Redis has no value."""

    key: str
    variable: str
    value: str
    default: str
    source: str
    effect: str
    description: str
    shared: str | None
    differs: bool


class OneOptionDocument(OptionDocument, frozen=True):
    """One option; `shared_known` is false while the store is away."""

    shared_known: bool = True


class OptionsDocument(Document, frozen=True):
    """All options; `unknown` has a sentence for each thing that was given and has no effect. `shared_known` is false
    while the store is away."""

    options: list[OptionDocument]
    unknown: list[str]
    shared_known: bool = True


def add(app: typer.Typer, panel: str) -> None:
    """The command `settings`."""
    command(app, "settings", panel=panel)(show)


def show(settings: CommandContext, http: Http, option: Name = None, changed: Changed = False) -> None:
    """Options of a redis-namesrv: what is in force, where it comes from, and when a change takes effect.

    With the name of an option, all about this one. Options and variables that were given and have no effect are named
    on standard error."""
    api = settings.http_api(http)
    if option is None:
        _show_all(settings, api, changed=changed)
    elif changed:
        raise ConfigError("--changed is for the list of options, not for one")
    else:
        _show_one(settings, api, option)


def _show_all(settings: CommandContext, api: HttpApi, *, changed: bool) -> None:
    query = "?changed=true" if changed else ""
    document = api.request(OptionsDocument, "GET", f"/v1/options{query}")
    settings.output.show(
        document,
        lambda: table(
            ("OPTION", "VALUE", "DEFAULT", "SOURCE", "EFFECT", "SHARED"),
            [
                (
                    option.key,
                    option.value,
                    option.default,
                    option.source,
                    option.effect,
                    option.shared if option.differs else "",
                )
                for option in document.options
            ],
        ),
    )
    for sentence in (*document.unknown, *_unshared(document.shared_known)):
        settings.output.error(sentence)


def _show_one(settings: CommandContext, api: HttpApi, name: str) -> None:
    try:
        option = api.request(OneOptionDocument, "GET", f"/v1/options/{name_in_path(name)}")
    except HttpError as error:
        if error.kind == "option-not-found":
            raise NotFound(str(error)) from None
        raise
    settings.output.show(option, lambda: lines(_about(option)))
    for sentence in _unshared(option.shared_known):
        settings.output.error(sentence)


def _unshared(known: bool) -> list[str]:
    return [] if known else [STORE_AWAY]


def _about(option: OneOptionDocument) -> list[str]:
    members = msgspec.structs.asdict(option)
    del members["shared_known"]
    members["shared"] = UNSHARED if option.shared is None else option.shared
    members["differs"] = "yes" if option.differs else "no"
    return [f"{name:<12} {value}".rstrip() for name, value in members.items()]
