"""Every option of this process: its value, where that comes from and when a change of it takes effect."""

from collections.abc import Mapping
from typing import Final, Literal

from apiflask import APIBlueprint

from api.name_server import name_server
from api.problems import Problem
from api.shapes import Answer, Query
from registry import settings
from registry.errors import StoreUnavailable
from registry.options.catalogue import Source, text_of
from registry.options.fields import Effect
from registry.options.in_force import OptionInForce, in_force
from registry.options.without_effect import advice

bp = APIBlueprint("options", __name__, url_prefix="/v1/options")

Change = Literal["live", "restart", "listed"]
CHANGES: Final[Mapping[Effect, Change]] = {"live": "live", "start": "restart", "listed": "listed"}


class OptionsQuery(Query):
    """`changed`: only the options that are not as by default."""

    changed: bool = False


class OptionAnswer(Answer):
    """An option as this process has it in force. Texts are as Java prints them; secrets are `***`.

    `effect` is that of a change: live, in every worker at once; restart, from the next start on; listed, none.
    `shared` is the value that all workers share through Redis, null without one; `differs`, that it is another than
    the one in force."""

    key: str
    variable: str
    value: str
    default: str
    source: Source
    effect: Change
    description: str
    shared: str | None
    differs: bool

    @classmethod
    def of(cls, row: OptionInForce) -> "OptionAnswer":
        option = row.option
        return cls(
            key=option.key,
            variable=option.env,
            value=row.value,
            default=text_of(option.default),
            source=row.source,
            effect=CHANGES[option.effect],
            description=option.why,
            shared=row.shared,
            differs=row.differs,
        )


class OneOptionAnswer(OptionAnswer):
    """`sharedKnown` is false while the store is away: then value and source are those of the start, and `shared` is
    null."""

    shared_known: bool


class OptionsAnswer(Answer):
    """`unknown` has a sentence for each variable and each entry of the `-c` file that has no effect.

    `sharedKnown` is false while the store is away: then values and sources are those of the start, and each `shared` is
    null."""

    options: list[OptionAnswer]
    unknown: list[str]
    shared_known: bool


def _shared() -> Mapping[str, str] | None:
    """Return the values that all workers share, None while the store is away."""
    server = name_server()
    try:
        return server.run(settings.read(server.keys))
    except StoreUnavailable:
        return None


@bp.get("")
@bp.input(OptionsQuery, location="query")
@bp.output(OptionsAnswer)
@bp.doc(operation_id="listOptions")
def options(query_data: OptionsQuery) -> OptionsAnswer:
    """Every option of the process that answers"""
    given, shared = name_server().given, _shared()
    rows = in_force(given, shared or {})
    return OptionsAnswer(
        options=[OptionAnswer.of(row) for row in rows if row.changed or not query_data.changed],
        unknown=list(given.without_effect),
        shared_known=shared is not None,
    )


@bp.get("/<key>")
@bp.output(OneOptionAnswer)
@bp.doc(operation_id="getOption")
def option(key: str) -> OneOptionAnswer:
    """One option of the process that answers"""
    shared = _shared()
    for row in in_force(name_server().given, shared or {}):
        if row.option.key == key:
            return OneOptionAnswer(**OptionAnswer.of(row).model_dump(), shared_known=shared is not None)
    raise Problem(404, "option-not-found", f"no option {key!r}; {advice(key)}")
