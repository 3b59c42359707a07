"""All commands of `mqpipeline`."""

from typing import Final

import typer

from mqpipeline.cli import history, queued, running, sample, tables

app: Final = typer.Typer(
    help="Tables and reports of the event stream of a name server.",
    epilog="Exit codes: 0 done; 1 what was asked for is not there; 2 wrong usage; 3 done, but for a namespace that "
    "is not there.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_show_locals=False,
)
for subject in (running, history, queued, tables, sample):
    subject.add(app)
