"""The command `doctor`."""

import asyncio
from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Final

import msgspec
import typer
from rich.console import Group, RenderableType
from rich.text import Text

from mqns.addresses.syntax import parse_addresses
from mqns.cli.commands import command
from mqns.cli.doctor import addresses, brokers, differences, discovery, servers, serving, store, topics
from mqns.cli.doctor.collect import CollectOptions, collect
from mqns.cli.doctor.facts import Facts, NameServerFacts
from mqns.cli.doctor.findings import Finding, Severity, confirmed, counted, in_order
from mqns.cli.doctor.rules import explained
from mqns.cli.exit_codes import ExitCode
from mqns.cli.http_api import VARIABLE, http_url
from mqns.cli.output import Document, plain, table
from mqns.cli.settings import CommandContext
from mqns.errors import ConfigError

RECHECK_S: Final = 2.0
UNKNOWN: Final = "-"
wait = asyncio.sleep
STYLES: Final = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}
CHECKS: Final = (
    *(servers.check, serving.check, store.check, discovery.check),
    *(addresses.check, brokers.check, topics.check),
)


class FailOn(StrEnum):
    """The least severity that ends with exit code 5."""

    ERROR = "error"
    WARNING = "warning"
    NEVER = "never"


class ServerDocument(Document, frozen=True):
    """A checked name server; `failure` is the reason if it did not respond. Unknown counts are null."""

    address: str
    failure: str | None
    version: str | None
    answer_millis: int | None
    clusters: int | None
    brokers: int | None
    topics: int | None


class DoctorDocument(Document, frozen=True):
    """The result; `counts` of findings by severity."""

    name_servers: list[ServerDocument]
    brokers_connected_to: int
    findings: list[Finding]
    counts: dict[str, int]


Addresses = Annotated[
    list[str] | None,
    typer.Argument(help="Name servers (default: those of -n)", metavar="ADDR", show_default=False),
]
Namespaces = Annotated[
    list[str] | None,
    typer.Option("--kv", help="A KV namespace to compare, besides that of order topics", show_default=False),
]
WithRoutes = Annotated[bool, typer.Option("--routes/--no-routes", help="Look at the route of each topic")]
WithProbes = Annotated[bool, typer.Option("--connect/--no-connect", help="Connect to each broker's address")]
Http = Annotated[
    list[str] | None,
    typer.Option(
        "--http",
        help="HTTP side of a redis-namesrv, which reports leases and its clock: one for all name servers, or one for "
        "each",
        metavar="URL",
        envvar=VARIABLE,
        show_default=False,
    ),
]
Recheck = Annotated[
    float,
    typer.Option(
        help="Seconds after which differences are looked at again, since a registration does not arrive everywhere "
        "at once; 0: not at all",
        min=0,
    ),
]
On = Annotated[FailOn, typer.Option("--fail-on", help="The least severity that ends with exit code 5")]


def add(app: typer.Typer, panel: str) -> None:
    """The command `doctor`."""
    command(app, panel=panel)(doctor)


def doctor(
    settings: CommandContext,
    addresses: Addresses = None,
    kv: Namespaces = None,
    routes: WithRoutes = True,
    connect: WithProbes = True,
    http: Http = None,
    recheck: Recheck = RECHECK_S,
    fail_on: On = FailOn.ERROR,
) -> None:
    """Where name servers differ, and what in the set-up would hurt. Changes nothing.

    With --http and no address of a name server it asks the HTTP side alone.

    Exit code 5 if there are findings that are bad enough, 3 or 4 if no name server can be asked."""
    given = parse_addresses(";".join(addresses)) if addresses else settings.named
    only_http = tuple(dict.fromkeys(map(http_url, http or ()))) if not given else ()
    addresses_ = only_http or given or settings.addresses
    urls = dict(zip(only_http, only_http, strict=True)) or _urls(addresses_, http or [])
    plan = CollectOptions(
        tuple(kv or ()), routes, connect, urls, settings.timeout_s, settings.token, bool(only_http)
    )
    facts, findings = asyncio.run(_examine(settings, addresses_, plan, recheck))
    document = DoctorDocument(
        [_server(server) for server in facts.name_servers],
        len(facts.probes),
        findings,
        {severity: sum(f.severity is severity for f in findings) for severity in Severity},
    )
    settings.output.show(document, lambda: _report(document))
    code = _code(facts, findings, fail_on)
    if code is not ExitCode.OK:
        raise typer.Exit(code)


async def _examine(
    settings: CommandContext, addresses_: tuple[str, ...], plan: CollectOptions, recheck_s: float
) -> tuple[Facts, list[Finding]]:
    """Return the facts and the findings; a difference counts if it is found twice, `recheck_s` apart."""
    async with settings.async_name_server() as server:
        facts = await collect(server, addresses_, plan, settings.output)
        differing = list(differences.check(facts))
        if differing and recheck_s > 0:
            await wait(recheck_s)
            again = msgspec.structs.replace(plan, probes=False)
            second = await collect(server, addresses_, again, settings.output)
            differing = confirmed(differing, differences.check(second))
            facts = Facts(second.name_servers, facts.probes, facts.unprobed)
    findings = [*differing, *(finding for check in CHECKS for finding in check(facts))]
    return facts, in_order(explained(findings, facts))


def _urls(addresses_: tuple[str, ...], urls: list[str]) -> dict[str, str]:
    if len(urls) > 1 and len(urls) != len(addresses_):
        raise ConfigError(
            f"{len(urls)} of --http for {counted(len(addresses_), 'name server')}: one, or one for each"
        )
    spread = urls * len(addresses_) if len(urls) == 1 else urls
    return {address: http_url(url) for address, url in zip(addresses_, spread, strict=False)}


def _code(facts: Facts, findings: Iterable[Finding], fail_on: FailOn) -> ExitCode:
    if not facts.reachable:
        return (
            ExitCode.TIMED_OUT
            if any(server.timed_out for server in facts.name_servers)
            else ExitCode.UNREACHABLE
        )
    bad = {
        FailOn.ERROR: {Severity.ERROR},
        FailOn.WARNING: {Severity.ERROR, Severity.WARNING},
        FailOn.NEVER: set[Severity](),
    }
    return ExitCode.FINDINGS if any(f.severity in bad[fail_on] for f in findings) else ExitCode.OK


def _server(server: NameServerFacts) -> ServerDocument:
    if server.failure is not None:
        return ServerDocument(server.address, server.failure, None, None, None, None, None)
    return ServerDocument(
        server.address,
        None,
        server.version or None,
        round(server.answer_s * 1000) if server.version else None,
        len(server.info.cluster_addr_table) if server.lists_brokers else None,
        sum(len(data.broker_addrs) for data in server.info.broker_addr_table.values())
        if server.lists_brokers
        else None,
        None if server.topics is None else len(server.topics),
    )


def _report(document: DoctorDocument) -> RenderableType:
    rows = [
        (
            server.address,
            "silent" if server.failure else server.version or UNKNOWN,
            *map(_number, (server.answer_millis, server.clusters, server.brokers, server.topics)),
        )
        for server in document.name_servers
    ]
    heading = ("NAME SERVER", "RELEASE", "ANSWER MS", "CLUSTERS", "BROKERS", "TOPICS")
    counts = ", ".join(counted(document.counts[severity], severity) for severity in Severity).replace(
        "infos", "info"
    )
    lines = [line for finding in document.findings for line in _lines(finding)]
    return Group(table(heading, rows), Text(), *lines, Text(counts, style="bold"))


def _number(value: int | None) -> str:
    return UNKNOWN if value is None else str(value)


def _lines(finding: Finding) -> list[Text]:
    severity = Text(finding.severity.upper(), style=STYLES[finding.severity])
    return [
        severity + Text(f" {finding.check} at {', '.join(finding.name_servers)}"),
        Text(f"  {plain(finding.what)}"),
        Text(f"  why: {plain(finding.why)}", style="dim"),
        Text(f"  -> {plain(finding.advice)}"),
        Text(f"  $ {plain(finding.command)}", style="dim"),
        Text(),
    ]
