"""Registration of functions as commands, with the options of every command before or after its name."""

import asyncio
import inspect
import os
import platform
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import typer

from mqns.addresses.sources import ENVIRONMENT
from mqns.addresses.syntax import NAME_SERVER_PORT
from mqns.cli.exit_codes import EPILOG, ExitCode, code_of, message_of
from mqns.cli.help_pages import PlainCommand, PlainGroup
from mqns.cli.http_api import http_status
from mqns.cli.output import OutputFormat, Printer
from mqns.cli.settings import (
    DEFAULT_ADDRESS,
    SECRET_KEY_FILE,
    TOKEN_FILE,
    CommandContext,
    CommonOptions,
    Intent,
)
from mqns.errors import ClientError, ConnectError, RemotingError
from mqns.name_server.client import TIMEOUT_S
from mqns.remoting.credentials import ACCESS_KEY

PANEL: Final = "Options of every command"
HELP_NAMES: Final[dict[str, Any]] = {"help_option_names": ["-h", "--help"]}
LEAST_TIMEOUT_S: Final = 0.001


def _option(*names: str, text: str, **more: Any) -> Any:
    return typer.Option(*names, help=text, rich_help_panel=PANEL, show_default=False, **more)


_FILE: Final[dict[str, Any]] = {"exists": True, "dir_okay": False, "metavar": "FILE"}
_COMMON_OPTIONS: Final[dict[str, Any]] = {
    "namesrv_addr": Annotated[
        str | None,
        _option(
            "-n",
            "--namesrv-addr",
            "--namesrvAddr",
            text=f"Name servers, as host:port;host; port {NAME_SERVER_PORT} may be left out (env var: {ENVIRONMENT}) "
            f"(default: {DEFAULT_ADDRESS})",
            metavar="ADDR",
        ),
    ],
    "output": Annotated[
        OutputFormat | None,
        _option("-o", "--output", text="What to print (default: table)", metavar="table|json|yaml"),
    ],
    "timeout": Annotated[
        float | None,
        _option(
            "--timeout",
            text=f"Seconds for each call (default: {TIMEOUT_S:g})",
            min=LEAST_TIMEOUT_S,
            metavar="SECONDS",
        ),
    ],
    "tls": Annotated[bool | None, _option("--tls/--no-tls", text="Speak TLS")],
    "tls_trust": Annotated[
        Path | None,
        _option(
            "--tls-trust", text="Certificates (PEM) that sign name servers' (default: the system's)", **_FILE
        ),
    ],
    "tls_cert": Annotated[Path | None, _option("--tls-cert", text="Our own certificate (PEM)", **_FILE)],
    "tls_key": Annotated[
        Path | None,
        _option("--tls-key", text="Its key (PEM) (env var of its password: MQNS_TLS_KEY_PASSWORD)", **_FILE),
    ],
    "tls_insecure": Annotated[
        bool | None, _option("--tls-insecure", text="Do not look at the name servers' certificates")
    ],
    "access_key": Annotated[
        str | None, _option("--access-key", text="Sign requests", envvar=ACCESS_KEY, metavar="KEY")
    ],
    "secret_key_file": Annotated[
        Path | None,
        _option(
            "--secret-key-file",
            text="Holds the secret key (env var of the key: MQNS_SECRET_KEY)",
            envvar=SECRET_KEY_FILE,
            **_FILE,
        ),
    ],
    "token_file": Annotated[
        Path | None,
        _option(
            "--token-file",
            text="Holds the token of requests over HTTP (env var of the token: MQNS_TOKEN)",
            envvar=TOKEN_FILE,
            **_FILE,
        ),
    ],
    "no_color": Annotated[bool | None, _option("--no-color", text="No colours (env var: NO_COLOR)")],
}


def _flag(name: str, text: str) -> inspect.Parameter:
    option = typer.Option(f"--{name.replace('_', '-')}", help=text, show_default=False)
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=False, annotation=Annotated[bool, option])


Changes = Literal["nothing", "something", "takes away"]
"""What a command does to name servers; what it takes away, clients may miss."""
DRY_RUN, YES = "dry_run", "yes"
_DRY_RUN_FLAG: Final = _flag(DRY_RUN, "Show what would change, and change nothing")
_YES_FLAG: Final = _flag(YES, "Do not ask on a terminal")
_CHANGE_OPTIONS: Final[Mapping[Changes, tuple[inspect.Parameter, ...]]] = {
    "nothing": (),
    "something": (_DRY_RUN_FLAG,),
    "takes away": (_DRY_RUN_FLAG, _YES_FLAG),
}


def new_app(text: str) -> typer.Typer:
    """Return an application or a group of commands."""
    return typer.Typer(
        cls=PlainGroup,
        help=text,
        epilog=EPILOG,
        no_args_is_help=True,
        rich_markup_mode=None,
        context_settings=HELP_NAMES,
        pretty_exceptions_show_locals=False,
    )


def command(
    app: typer.Typer,
    name: str | None = None,
    *,
    panel: str | None = None,
    any_value: bool = False,
    changes: Changes = "nothing",
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that makes a function a command of `app`; its first parameter is the CommandContext.

    A ClientError becomes one line on standard error, and its exit code. With `any_value` an argument may begin with a
    hyphen, as a negative number does. One that `changes` something has `--dry-run`, one that takes away also `--yes`;
    it asks `mqns.cli.previews.approved` before it does so."""

    def register(function: Callable[..., None]) -> Callable[..., None]:
        def run(ctx: typer.Context, **values: Any) -> None:
            given = CommonOptions(**{key: values.pop(key) for key in _COMMON_OPTIONS})
            asks = changes == "takes away" and not values.pop(YES, False)
            intent = Intent(values.pop(DRY_RUN, False), asks)
            settings = CommandContext(_options_before(ctx).overridden(given), intent=intent)
            try:
                function(settings, **values)
            except ClientError as error:
                settings.output.error(message_of(error) + _hint(error))
                raise typer.Exit(code_of(error)) from None
            except KeyboardInterrupt:
                raise typer.Exit(ExitCode.INTERRUPTED) from None

        own = [*list(inspect.signature(function).parameters.values())[1:], *_CHANGE_OPTIONS[changes]]
        _set_signature(run, own, function.__doc__)
        app.command(
            name or function.__name__.replace("_", "-"),
            cls=PlainCommand,
            epilog=EPILOG,
            context_settings=HELP_NAMES | {"ignore_unknown_options": any_value},
            rich_help_panel=panel,
        )(run)
        return function

    return register


def _hint(error: ClientError) -> str:
    """Return what is at the address instead, where there is a connection and no name server answers."""
    if not isinstance(error, RemotingError) or isinstance(error, ConnectError) or "://" in error.address:
        return ""
    if asyncio.run(http_status(error.address)) is None:
        return ""
    return f"; this is an HTTP port, remoting is usually {NAME_SERVER_PORT}"


def add_common_options(app: typer.Typer, misspelt: Callable[[Iterable[str]], list[str]]) -> None:
    """Make `app` take the options of every command before the command's name, and warn of misspelt variables."""

    def before(ctx: typer.Context, version: bool, **values: Any) -> None:
        ctx.obj = CommonOptions(**values)
        for sentence in misspelt(os.environ):
            Printer(OutputFormat.TABLE).error(sentence)

    shown = typer.Option("--version", help="Print the version", callback=_print_version, is_eager=True)
    version_parameter = inspect.Parameter(
        "version", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Annotated[bool, shown]
    )
    _set_signature(before, [version_parameter], None)
    app.callback()(before)


def _options_before(ctx: typer.Context) -> CommonOptions:
    given = ctx.find_root().obj
    return given if isinstance(given, CommonOptions) else CommonOptions()


def _set_signature(function: Callable[..., None], own: list[inspect.Parameter], text: str | None) -> None:
    """Set the signature that Typer reads on a function with keyword parameters."""
    context = inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    common = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
        for name, annotation in _COMMON_OPTIONS.items()
    ]
    parameters = [context, *(p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own), *common]
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    function.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    function.__doc__ = text


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"mqns {version('mqns')}, Python {platform.python_version()}")
        raise typer.Exit
