"""Configuration of the name server, shared by all workers (318, 319)."""

from typing import Annotated

from apiflask import APIBlueprint
from pydantic import BeforeValidator

from api.name_server import name_server, origin
from api.shapes import Answer, Body, Written
from registry import settings as shared
from registry.errors import InvalidField
from registry.options.catalogue import BY_KEY, Options, in_range, listing, parse, text_of

bp = APIBlueprint("settings", __name__, url_prefix="/v1/settings")


class Settings(Answer):
    """Option names and values as Java prints them."""

    settings: dict[str, str]


def _text(value: object) -> object:
    return text_of(value) if isinstance(value, bool | int) else value


class SettingsBody(Body):
    settings: dict[str, Annotated[str, BeforeValidator(_text, json_schema_input_type=bool | int | str)]]


@bp.get("")
@bp.output(Settings)
@bp.doc(operation_id="getSettings")
def settings() -> Settings:
    """Every option with its value"""
    return Settings(settings=dict(listing(name_server().options())))


class SettingsWritten(Written):
    """`inForce` of each option: live, in every worker at once; restart, from the next start of a mqnamesrv with a -c
    file, which is rewritten; never, in the list only."""

    in_force: dict[str, shared.InForce]


@bp.patch("")
@bp.input(SettingsBody)
@bp.output(SettingsWritten)
@bp.doc(
    operation_id="updateSettings",
    responses={403: "An option of the black list; nothing of the request was applied"},
)
def update_settings(json_data: SettingsBody) -> SettingsWritten:
    """Change options for all workers

    All or nothing: unknown names are refused, and values that are no such flag, no number, or out of range."""
    server = name_server()
    options = server.options()
    wanted = json_data.settings
    accepted = shared.accepted(options, wanted)
    for key, text in wanted.items():
        if key not in accepted:
            raise InvalidField(f"settings.{key}", _why_not(options, key, text))
        _expect_in_range(key, text, accepted[key])
    event_id = server.run(shared.update(server.keys, accepted, origin()))
    in_force = {key: shared.in_force(server.given, key) for key in accepted}
    return SettingsWritten(event_id=event_id or None, in_force=in_force)


def _why_not(options: Options, key: str, text: str) -> str:
    """Return why an option is not among the accepted ones."""
    if key in dict(listing(options)):
        return f"{text!r} is no number"
    option = BY_KEY.get(key)
    if option is not None and option.effect == "start":
        return f"set at the start only, as {option.env} or in the -c file; it is in force after a restart"
    return "no such option here"


def _expect_in_range(key: str, text: str, taken: str) -> None:
    """Raise InvalidField for what Java takes as something else: other texts as false, and any number as it is."""
    option = BY_KEY.get(key)
    if option is None:  # of the -c file
        return
    if option.type == "bool" and text.lower() not in ("true", "false"):
        raise InvalidField(f"settings.{key}", f"{text!r} is neither true nor false")
    value = parse(option, taken)
    if value is None or not in_range(option, value):
        raise InvalidField(f"settings.{key}", f"{text} is out of its range")
