"""The command `ping`: response times of name servers."""

import asyncio
import itertools
import statistics
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Annotated, Final

import msgspec
import typer

from mqns.cli.commands import command
from mqns.cli.exit_codes import ExitCode
from mqns.cli.output import Document, OutputFormat, lines
from mqns.cli.settings import CommandContext, named_addresses
from mqns.errors import CallTimeout, RemotingError
from mqns.name_server import calls
from mqns.remoting.remoting_client import AsyncRemotingClient
from rocketmq_remoting.version import version_name

MS: Final = 1000
REQUEST: Final = calls.get_kv_config("mqns", "ping").request
"""A lookup of a missing key: every release responds to it, in few bytes."""

Addresses = Annotated[
    list[str] | None,
    typer.Argument(help="Name servers (default: those of -n)", metavar="ADDR", show_default=False),
]
Count = Annotated[
    int, typer.Option("-c", "--count", help="How many requests to each; 0: until interrupted", min=0)
]
Interval = Annotated[float, typer.Option("-i", "--interval", help="Seconds between two requests", min=0)]


class PingReply(msgspec.Struct, frozen=True):
    """The outcome of one request; `failure` is the reason without a response."""

    name_server: str
    sequence: int
    millis: float = 0.0
    version: str = ""
    failure: str | None = None
    timed_out: bool = False


class PingDocument(Document, frozen=True):
    """All requests to one name server; times are in ms, null without a response; the first includes connecting."""

    name_server: str
    sent: int
    answered: int
    loss_percent: float
    min_millis: float | None
    avg_millis: float | None
    max_millis: float | None
    mdev_millis: float | None


def add(app: typer.Typer, panel: str) -> None:
    """The command `ping`."""
    command(app, panel=panel)(ping)


def ping(
    settings: CommandContext, addresses: Addresses = None, count: Count = 4, interval: Interval = 1.0
) -> None:
    """How fast name servers answer, each asked at the same time as the others.

    Exit code 0 if all of them answered at least once; else 4 where one had not in time, 3 where one was not there."""
    asked = named_addresses("ADDR", ";".join(addresses)) if addresses else settings.addresses
    replies: list[PingReply] = []

    def report(reply: PingReply) -> None:
        replies.append(reply)
        if settings.output.form is OutputFormat.TABLE:
            settings.output.line(None, _line(reply))

    with suppress(KeyboardInterrupt):  # as ping: print the results until then
        asyncio.run(_ping_all(settings, asked, count, interval, report))
    documents = [summary(address, [a for a in replies if a.name_server == address]) for address in asked]
    settings.output.show(documents, lambda: lines(["", *map(_summary_line, documents)]))
    silent = {document.name_server for document in documents if document.answered == 0}
    if silent:
        timed_out = any(reply.timed_out for reply in replies if reply.name_server in silent)
        raise typer.Exit(ExitCode.TIMED_OUT if timed_out else ExitCode.UNREACHABLE)


def summary(address: str, replies: Sequence[PingReply]) -> PingDocument:
    """Return the statistics of one name server."""
    times = [reply.millis for reply in replies if reply.failure is None]
    lost = len(replies) - len(times)
    percent = round(100 * lost / len(replies), 1) if replies else 0.0
    figures = (
        (min(times), statistics.fmean(times), max(times), statistics.pstdev(times)) if times else (None,) * 4
    )
    rounded = (None if figure is None else round(figure, 3) for figure in figures)
    return PingDocument(address, len(replies), len(times), percent, *rounded)


async def _ping_all(
    settings: CommandContext,
    addresses: Sequence[str],
    count: int,
    interval_s: float,
    report: Callable[[PingReply], None],
) -> None:
    async with settings.async_name_server() as server, asyncio.TaskGroup() as group:
        for address in addresses:
            pinging = _ping(server.remoting, address, settings.timeout_s, count, interval_s, report)
            group.create_task(pinging)


async def _ping(
    remoting: AsyncRemotingClient,
    address: str,
    timeout_s: float,
    count: int,
    interval_s: float,
    report: Callable[[PingReply], None],
) -> None:
    clock = asyncio.get_running_loop().time
    began_at = clock()
    for sequence in range(1, count + 1) if count else itertools.count(1):
        asked_at = clock()
        try:
            reply = await remoting.invoke(address, REQUEST, timeout_s=timeout_s)
        except RemotingError as error:
            timed_out = isinstance(error, CallTimeout)
            report(PingReply(address, sequence, failure=error.reason, timed_out=timed_out))
        else:
            report(PingReply(address, sequence, (clock() - asked_at) * MS, version_name(reply.version)))
        if sequence != count:
            await asyncio.sleep(max(0.0, began_at + sequence * interval_s - clock()))


def _line(reply: PingReply) -> str:
    text = f"{reply.version} time={reply.millis:.3f} ms" if reply.failure is None else reply.failure
    return f"{reply.name_server}: seq={reply.sequence} {text}"


def _summary_line(document: PingDocument) -> str:
    counts = f"{document.sent} sent, {document.answered} answered, {document.loss_percent:g}% lost"
    times = (document.min_millis, document.avg_millis, document.max_millis, document.mdev_millis)
    figures = "/".join(f"{time:.3f}" for time in times if time is not None)
    return f"{document.name_server}: {counts}" + (f", min/avg/max/mdev = {figures} ms" if figures else "")
