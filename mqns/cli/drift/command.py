"""The command `drift`."""

import asyncio
import re
import time
from contextlib import suppress
from math import ceil
from typing import Annotated, Final

import msgspec
import typer

from mqns.cli.commands import command
from mqns.cli.drift.grace import Lasting, looks_in
from mqns.cli.drift.look import Pair, look
from mqns.cli.drift.result import DriftDocument, document, line, report, shown
from mqns.cli.exit_codes import ExitCode, message_of
from mqns.cli.http_api import HttpApi
from mqns.cli.settings import CommandContext, named_addresses
from mqns.cli.signals import sigterm_interrupts
from mqns.errors import ClientError, ConfigError

RECHECK_S: Final = 2.0
GRACE_S: Final = 60.0
"""Two periods of heartbeats: a broker that reaches both name servers has registered with both by then."""
DAY_S: Final = 86_400
VALID_MOST_S: Final = 7 * DAY_S
NAME: Final = re.compile("[A-Za-z0-9._-]{1,64}")
NO_NAME: Final = re.compile("[^A-Za-z0-9._-]")
wait = time.sleep

First = Annotated[str, typer.Argument(help="A name server: Java's or a redis-namesrv", metavar="ADDR")]
Second = Annotated[str, typer.Argument(help="The other one", metavar="ADDR")]
Every = Annotated[
    float | None,
    typer.Option(
        help="Look again so many seconds after each look, until SIGTERM or Ctrl-C", min=1, show_default=False
    ),
]
Grace = Annotated[
    float | None,
    typer.Option(
        help="Seconds for which a difference has to last, since a registration does not arrive everywhere at once "
        f"(default: {RECHECK_S:g}, with --every {GRACE_S:g}); 0: one look is enough",
        min=0,
        show_default=False,
    ),
]
Namespaces = Annotated[
    list[str] | None,
    typer.Option("--kv", help="A KV namespace to compare, besides that of order topics", show_default=False),
]
Http = Annotated[
    str | None,
    typer.Option(
        "--http",
        help="HTTP side of a redis-namesrv, to which each result is reported",
        metavar="URL",
        show_default=False,
    ),
]
Name = Annotated[
    str | None,
    typer.Option(help="The name to report it under (default: the two addresses)", show_default=False),
]
ValidFor = Annotated[
    int | None,
    typer.Option(
        help="Seconds after which a report without another one is stale (default: a day, with --every what three "
        "looks and the grace may take)",
        min=1,
        max=VALID_MOST_S,
        show_default=False,
    ),
]


class Schedule(msgspec.Struct, frozen=True):
    """When to look: each `every_s`, once if that is None; differences count that last for `grace_s`."""

    every_s: float | None
    grace_s: float

    @classmethod
    def of(cls, every_s: float | None, grace_s: float | None) -> "Schedule":
        return cls(every_s, (RECHECK_S if every_s is None else GRACE_S) if grace_s is None else grace_s)

    @property
    def valid_for_s(self) -> int:
        """For how long a result is true where it is not renewed; looks take time, and one of three may fail."""
        return (
            DAY_S if self.every_s is None else min(VALID_MOST_S, ceil(3 * self.every_s + self.grace_s) + 60)
        )


def add(app: typer.Typer, panel: str) -> None:
    """The command `drift`."""
    command(app, panel=panel)(drift)


def drift(
    settings: CommandContext,
    first: First,
    second: Second,
    every: Every = None,
    grace: Grace = None,
    kv: Namespaces = None,
    http: Http = None,
    name: Name = None,
    valid_for: ValidFor = None,
) -> None:
    """Whether two name servers agree in brokers, topics, queues and KV: now, or with --every again and again.

    Exit code 5 if they differ, 3 or 4 if one of them cannot be compared; -n has no effect. With --every it prints what
    changes, and reports each result with --http."""
    pair = _pair(first, second)
    schedule = Schedule.of(every, grace)
    reporter = None
    if http is not None:
        reporter = _Reporter(settings, http, _name(name, pair), valid_for or schedule.valid_for_s)
    namespaces = tuple(kv or ())
    if schedule.every_s is None:
        _once(settings, pair, namespaces, schedule.grace_s, reporter)
    else:
        with suppress(KeyboardInterrupt), sigterm_interrupts():
            _forever(settings, pair, namespaces, schedule.every_s, schedule.grace_s, reporter)


def _once(
    settings: CommandContext,
    pair: Pair,
    namespaces: tuple[str, ...],
    grace_s: float,
    reporter: "_Reporter | None",
) -> None:
    lasting = Lasting(2 if grace_s else 1)
    while (judged := lasting.of(asyncio.run(look(settings, pair, namespaces)))) is None:
        wait(grace_s)
    result = document(pair, judged)
    settings.output.show(result, lambda: shown(result))
    if reporter is not None:
        reporter.report(result)
    if result.unreachable:
        raise typer.Exit(ExitCode.TIMED_OUT if judged.timed_out else ExitCode.UNREACHABLE)
    if result.counts:
        raise typer.Exit(ExitCode.FINDINGS)


def _forever(
    settings: CommandContext,
    pair: Pair,
    namespaces: tuple[str, ...],
    every_s: float,
    grace_s: float,
    reporter: "_Reporter | None",
) -> None:
    """Look again and again; print results that are other ones than before, and failures to report once."""
    lasting = Lasting(looks_in(grace_s, every_s))
    before: DriftDocument | None = None
    while True:
        judged = lasting.of(asyncio.run(look(settings, pair, namespaces)))
        if judged is not None:
            result = document(pair, judged)
            if not result.says_the_same_as(before):
                settings.output.line(result, line(result))
            before = result
            if reporter is not None:
                reporter.try_to_report(result)
        wait(every_s)


class _Reporter:
    """Reports results to a redis-namesrv under one name."""

    def __init__(self, settings: CommandContext, url: str, name: str, valid_for_s: int) -> None:
        self._api: HttpApi = settings.http_api(url)
        self._output = settings.output
        self._name = name
        self._valid_for_s = valid_for_s
        self._failure = ""

    def report(self, result: DriftDocument) -> None:
        """Report a result. Raises HttpError, ConnectError, CallTimeout."""
        report(self._api, self._name, result, self._valid_for_s)

    def try_to_report(self, result: DriftDocument) -> None:
        """Report a result; print a failure, and its end, once."""
        try:
            self.report(result)
        except ClientError as error:
            failure = message_of(error)
            if failure != self._failure:
                self._output.error(f"not reported: {failure}; each look tries again")
            self._failure = failure
        else:
            if self._failure:
                self._output.error("reported again")
            self._failure = ""


def _pair(first: str, second: str) -> Pair:
    one, other = (named_addresses("ADDR", text) for text in (first, second))
    if len(one) > 1 or len(other) > 1 or one == other:
        raise ConfigError("ADDR: two name servers are compared, each by one address")
    return one[0], other[0]


def _name(given: str | None, pair: Pair) -> str:
    name = NO_NAME.sub("-", "_".join(pair)) if given is None else given
    if not NAME.fullmatch(name):
        raise ConfigError(f"--name: {name!r} is not of 1 to 64 letters, digits, '.', '_' and '-'")
    return name
