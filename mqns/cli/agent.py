"""The command `agent`: keeps a broker registered."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from mqns.broker.agent import options_for
from mqns.broker.config import read_config
from mqns.broker.events import BrokerEvent, Failed, Registered, Unregistered
from mqns.broker.lines import LineLimit, line, members
from mqns.broker.run import run_agent
from mqns.cli.commands import command
from mqns.cli.output import Printer
from mqns.cli.settings import CommandContext
from mqns.errors import ConfigError

ConfigFile = Annotated[
    Path,
    typer.Option(
        "--config",
        help="The broker, with the names of broker.conf in TOML",
        metavar="FILE",
        show_default=False,
    ),
]


def add(app: typer.Typer, panel: str) -> None:
    """The command `agent`."""
    command(app, panel=panel)(agent)


def agent(settings: CommandContext, config: ConfigFile) -> None:
    """Announce a broker until SIGTERM or Ctrl-C, and unregister it then. -n counts for more than the file."""
    broker = read_config(config)
    if settings.given_addresses is not None:
        broker = msgspec.structs.replace(broker, namesrv_addr=settings.given_addresses)
    given = settings.options
    options = msgspec.structs.replace(options_for(broker), tls=given.tls, hooks=given.hooks)
    try:
        run_agent(broker, listener=_Listener(settings.output), options=options)
    except OSError as error:
        raise ConfigError(f"listenPort {broker.listen_port}: {error.strerror or error}") from error


class _Listener:
    """Prints a line for each event; for repeated registrations only if the response changed, and for the end only of
    name servers that had the broker: they accept the end of what they never had."""

    def __init__(self, output: Printer) -> None:
        self._output = output
        self._limit = LineLimit()
        self._registered: dict[str, Registered] = {}
        self._ever: set[str] = set()

    def __call__(self, event: BrokerEvent) -> None:
        if isinstance(event, Registered):
            if self._registered.get(event.address) == event:
                return
            self._ever.add(event.address)
        elif isinstance(event, Unregistered):
            if event.address not in self._ever:
                return
        elif isinstance(event, Failed):
            self._registered.pop(event.address, None)
        left_out = self._limit.admit(event)
        if left_out is None:
            return
        if isinstance(event, Registered):
            self._registered[event.address] = event
        value = {"event": type(event).__name__} | members(event, left_out)
        self._output.line(value, line(event, left_out))
