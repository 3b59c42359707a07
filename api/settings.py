"""Configuration of the name server, shared by all workers (318, 319)."""

from typing import Annotated

from apiflask import APIBlueprint
from pydantic import BeforeValidator

from api.name_server import name_server, origin
from api.shapes import Answer, Body, Written
from registry import settings as shared
from registry.errors import InvalidField
from registry.options.catalogue import BY_KEY, listing, text_of

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
def settings() -> Settings:
    """Every option with its value"""
    return Settings(settings=dict(listing(name_server().options())))


@bp.patch("")
@bp.input(SettingsBody)
@bp.output(Written)
@bp.doc(responses={403: "An option of the black list; nothing of the request was applied"})
def update_settings(json_data: SettingsBody) -> Written:
    """Change options for all workers

    All or nothing: unknown names and values that are no such number or flag are refused."""
    server = name_server()
    options = server.options()
    wanted = json_data.settings
    accepted = shared.accepted(options, wanted)
    for key, text in wanted.items():
        if key not in accepted or not _is_plain(key, text):
            raise InvalidField(f"settings.{key}", f"{text!r} is no value of such an option")
    return Written.of(server.run(shared.update(server.keys, accepted, origin())))


def _is_plain(key: str, text: str) -> bool:
    """Return whether a value of a flag is `true` or `false`; Java reads any other text as false."""
    option = BY_KEY.get(key)
    return option is None or option.type != "bool" or text.lower() in ("true", "false")
