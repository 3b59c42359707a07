"""Help pages: commands before options, each under its heading, the options of every command at the end."""

from typing import Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

ARGUMENTS: Final = "Arguments"
OPTIONS: Final = "Options"
COMMANDS: Final = "Commands"
WHOLE: Final = 1000
"""More characters than the first sentence of a command's help has; lines are folded."""


class PlainCommand(TyperCommand):
    """A command."""

    def format_options(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]
        """Called for the help page."""
        _write_parameters(self, ctx, formatter)


class PlainGroup(TyperGroup):
    """A group of commands."""

    def format_options(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]
        """Called for the help page."""
        commands = [command for command in self.commands.values() if not command.hidden]
        width = max(len(command.name or "") for command in commands)
        sections: dict[str, list[tuple[str, str]]] = {}
        for command in commands:
            heading = getattr(command, "rich_help_panel", None) or COMMANDS
            row = (f"{command.name:<{width}}", command.get_short_help_str(WHOLE))
            sections.setdefault(str(heading), []).append(row)
        _write(sections, formatter)
        _write_parameters(self, ctx, formatter)


def _write_parameters(command: TyperCommand | TyperGroup, ctx: Any, formatter: Any) -> None:
    sections: dict[str, list[tuple[str, str]]] = {ARGUMENTS: [], OPTIONS: []}
    for parameter in command.get_params(ctx):
        record = parameter.get_help_record(ctx)
        if record is not None:
            is_argument = parameter.param_type_name == "argument"
            heading = ARGUMENTS if is_argument else getattr(parameter, "rich_help_panel", None) or OPTIONS
            sections.setdefault(str(heading), []).append(record)
    _write(sections, formatter)


def _write(sections: dict[str, list[tuple[str, str]]], formatter: Any) -> None:
    for heading, rows in sections.items():
        if rows:
            with formatter.section(heading):
                formatter.write_dl(rows)
