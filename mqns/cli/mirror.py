"""The command `mirror`: keeps the brokers of other name servers at a redis-namesrv."""

import asyncio
import ssl
from collections.abc import Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from math import inf
from typing import Annotated, Final

import typer

from mqns.cli.commands import command
from mqns.cli.doctor.contact import unanswered
from mqns.cli.exit_codes import ExitCode
from mqns.cli.http_api import Http
from mqns.cli.mirror_target import HttpTarget
from mqns.cli.settings import CommandContext, named_addresses
from mqns.errors import ConfigError, RemotingError
from mqns.mirror.mirror import MARK_MOST, Mirror
from mqns.mirror.rounds import Round
from mqns.mirror.service_start import ServiceStart
from mqns.mirror.source import GRACE_S, Source
from mqns.mirror.target import MirroredMember
from mqns.name_server.client import AsyncNameServerClient
from mqns.remoting.connection import ClientConnection
from mqns.remoting.connection_table import tcp_connect
from mqns.tasks import until_signal

EVERY_S: Final = 10.0
RATE: Final = 200.0
NAMED: Final = 5
"""Brokers that a line names."""
ORDER_TOPICS: Final = "ORDER_TOPIC_CONFIG"
Sources = Annotated[
    list[str],
    typer.Argument(help="The name servers to follow, as host:port; host", metavar="ADDR", show_default=False),
]
Every = Annotated[
    float, typer.Option("--every", help="Seconds from round to round", metavar="SECONDS", min=1.0, max=30.0)
]
Rate = Annotated[
    float,
    typer.Option("--rate", help="Routes that are read of each name server in a second, at most", min=1.0),
]
Once = Annotated[bool, typer.Option("--once", help="One round, in which all is read", show_default=False)]
Namespaces = Annotated[
    list[str],
    typer.Option(
        "--kv", help="A namespace of the KV configuration to follow, too; several", metavar="NAMESPACE"
    ),
]
NoKV = Annotated[bool, typer.Option("--no-kv", help="Follow no KV configuration", show_default=False)]


def add(app: typer.Typer, panel: str) -> None:
    """The command `mirror`."""
    command(app, panel=panel, changes="something")(mirror)


def mirror(
    settings: CommandContext,
    sources: Sources,
    http: Http,
    every: Every = EVERY_S,
    rate: Rate = RATE,
    once: Once = False,
    kv: Namespaces = [ORDER_TOPICS],  # noqa: B006 (Typer copies it)
    no_kv: NoKV = False,
) -> None:
    """Keep the brokers of other name servers registered at a redis-namesrv, without the brokers' help.

    Runs until SIGTERM or Ctrl-C; a broker that registers itself is left alone. What is mirrored then stays for the rest
    of its lease (120 s), so that a mirror which is started again goes on without a gap."""
    dry_run = settings.intent.dry_run
    target = HttpTarget(settings.http_api(http), dry_run=dry_run)
    addresses = named_addresses("ADDR", ";".join(sources))
    if len(";".join(addresses)) > MARK_MOST:
        raise ConfigError(f"ADDR: more than {MARK_MOST} characters of name servers")
    report = _Report(settings)

    async def rounds() -> None:
        async with AsyncExitStack() as stack:
            grace_s = 0.0 if once or dry_run else GRACE_S
            followed = [_source(settings, address, rate, grace_s, stack) for address in addresses]
            kept = Mirror(followed, target, () if no_kv else kv)
            await _rounds(kept, report, None if once or dry_run else every)

    asyncio.run(until_signal(rounds()))
    report.end()


class CountedConnects:
    """Opens TCP connections, and counts them."""

    def __init__(self) -> None:
        self.count = 0

    async def __call__(
        self,
        host: str,
        port: int,
        protocol_factory: Callable[[], ClientConnection],
        tls: ssl.SSLContext | None,
    ) -> tuple[object, ClientConnection]:
        made = await tcp_connect(host, port, protocol_factory, tls)
        self.count += 1
        return made


def _source(
    settings: CommandContext, address: str, rate: float, grace_s: float, stack: AsyncExitStack
) -> Source:
    connects = CountedConnects()
    client = AsyncNameServerClient(
        (address,), options=settings.options, timeout_s=settings.timeout_s, connect=connects
    )
    stack.push_async_callback(client.close)
    return Source(
        address,
        client.at(address),
        lambda: connects.count,
        service_start=ServiceStart(client.remoting, address, lambda: connects.count, settings.timeout_s),
        why=partial(_why, address),
        rate=rate,
        grace_s=grace_s,
    )


async def _why(address: str, error: RemotingError) -> str:
    """Return why an address gave no answer, or what is there instead of a name server."""
    return (await unanswered(address, error)).failure or error.reason


async def _rounds(kept: Mirror, report: "_Report", every_s: float | None) -> None:
    """Make one round, or rounds until this is cancelled."""
    clock = asyncio.get_running_loop().time
    while True:
        began = clock()
        report.show(await kept.round(inf if every_s is None else every_s))
        if every_s is None:
            return
        await asyncio.sleep(max(0.0, began + every_s - clock()))


class _Report:
    """Prints a line for each round that changed something, or in which something else failed than before."""

    def __init__(self, settings: CommandContext) -> None:
        self._output = settings.output
        self._prefix = "dry run: " if settings.intent.dry_run else ""
        self._last: Round | None = None
        self._counts = dict.fromkeys(("registered", "changed", "removed"), 0)
        self._rounds = 0

    def show(self, done: Round) -> None:
        """Print a round, if there is something to tell."""
        self._rounds += 1
        for name in self._counts:
            self._counts[name] += len(getattr(done, name))
        before, self._last = self._last, done
        if before is None or done.changes or _troubles(before) != _troubles(done):
            self._output.line(done, f"{self._prefix}{round_line(done)}")

    def end(self) -> None:
        """Print what all rounds did, where there were several. Raises Exit for a last round that was not whole."""
        last = self._last
        if last is None:
            return
        if self._rounds > 1:
            counts = ", ".join(f"{count} {name}" for name, count in self._counts.items())
            self._output.error(
                f"{self._rounds} rounds: {counts}; {last.mirrored} brokers are mirrored at the end"
            )
        elif not last.is_whole:
            failed = any(last.sources.values()) or not last.target_answered
            raise typer.Exit(ExitCode.UNREACHABLE if failed else ExitCode.REFUSED)


def _troubles(done: Round) -> tuple[object, ...]:
    return done.failures, bool(done.reading), done.sources, bool(done.topics_left_out)


def round_line(done: Round) -> str:
    """Return what a round did, on one line."""
    parts = [f"{done.mirrored} mirrored, {done.registered_themselves} registered themselves"]
    for what, members in (
        ("registered", done.registered),
        ("changed", done.changed),
        ("removed", done.removed),
        ("registered themselves since", done.own),
    ):
        if members:
            parts.append(f"{what}: {_named(map(_title, members), len(members))}")
    if done.kv:
        parts.append(f"KV: {_named(done.kv, len(done.kv))}")
    if done.reading:
        parts.append(f"topics are being read of {_named(done.reading, len(done.reading))}")
    if done.topics_left_out:
        parts.append(
            f"{done.topics_left_out} topics are not mirrored, since they are static or not valid here"
        )
    parts += [f"{address}: {failure}" for address, failure in done.sources.items() if failure]
    parts += done.failures[:NAMED]
    return "; ".join(parts)


def _title(member: MirroredMember) -> str:
    return f"{member.broker_name} (id {member.broker_id}, {member.broker_addr})"


def _named(names: Iterable[str], number: int) -> str:
    shown: Sequence[str] = [name for name, _ in zip(names, range(NAMED), strict=False)]
    return ", ".join(shown) + (f" and {number - NAMED} more" if number > NAMED else "")
