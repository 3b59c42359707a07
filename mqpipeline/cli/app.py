"""All commands of `mqpipeline`."""

import os
import platform
import sys
from importlib.metadata import version
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from mqpipeline.cli import history, queued, running, sample, tables
from mqpipeline.options import without_effect
from mqpipeline.texts import plain

BEGIN: Final = """Tables and reports of the event stream of a name server.

\b
Begin with:
  mqpipeline sample --url redis://localhost              a made-up history, to try things on
  mqpipeline run --url redis://localhost -w DIRECTORY    land what is new, and report
  mqpipeline timeline TOPIC -w DIRECTORY                 what happened to a topic
  mqpipeline run -h                                      what a command does, and its options
"""
BESIDE: Final = ("pyspark", "deltalake", "redis")
"""Distributions whose versions matter where something is reported."""


class CommandsFirst(TyperGroup):
    """The commands, on whose help page they come before the options."""

    def format_options(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]
        """Called for the help page."""
        self.format_commands(ctx, formatter)
        records = [record for option in self.get_params(ctx) if (record := option.get_help_record(ctx))]
        with formatter.section("Options"):
            formatter.write_dl(records)


def _print_version(wanted: bool) -> None:
    if wanted:
        beside = "".join(f", {name} {version(name)}" for name in BESIDE)
        typer.echo(f"mqpipeline {version('mqpipeline')}, Python {platform.python_version()}{beside}")
        raise typer.Exit


def before(
    shown: Annotated[
        bool, typer.Option("--version", help="Print the version", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Take the options that stand before a command, and warn of misspelt variables."""
    for sentence in without_effect(os.environ):
        print(f"mqpipeline: {plain(sentence)}", file=sys.stderr)


app: Final = typer.Typer(
    cls=CommandsFirst,
    help=BEGIN,
    epilog="Exit codes: 0 done; 1 what was asked for is not there; 2 wrong usage; 3 done, but for a namespace that "
    "is not there.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
    pretty_exceptions_show_locals=False,
)
app.callback(help=BEGIN)(before)
for subject in (running, history, queued, tables, sample):
    subject.add(app)
