"""The command `watch`: changes of routes and clusters."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager, suppress
from datetime import datetime
from functools import partial
from itertools import count
from typing import Annotated, Any, Final, NamedTuple

import typer
from rich.console import Group
from rich.live import Live
from rich.text import Text

from mqns.changes.stream import ChangeStream
from mqns.cli.changed import Pause, until_changed
from mqns.cli.clusters import members
from mqns.cli.commands import command
from mqns.cli.exit_codes import message_of
from mqns.cli.http_api import VARIABLE, http_url
from mqns.cli.output import Document, Printer, builtins, plain, table
from mqns.cli.routes import addresses_text, document
from mqns.cli.settings import CommandContext
from mqns.errors import ClientError, ConfigError
from mqns.name_server.client import AsyncNameServerClient
from rocketmq_remoting.permission import perm_text

SHOWN: Final = 10
"""Changes shown on the screen."""
wait = asyncio.sleep
Row = Mapping[str, Any]
Snapshot = dict[tuple[str, ...], Row]
"""Rows by topic and broker name, or by cluster, broker name and broker id."""

Topics = Annotated[
    list[str] | None,
    typer.Argument(help="Topics; clusters, if none is named", metavar="TOPIC", show_default=False),
]
Clusters = Annotated[bool, typer.Option("--clusters", help="The brokers of all clusters")]
Interval = Annotated[float, typer.Option("-i", "--interval", help="Seconds between two looks", min=0.01)]
Count = Annotated[int, typer.Option("-c", "--count", help="How many looks; 0: until interrupted", min=0)]


WatchedHttp = Annotated[
    str | None,
    typer.Option(
        "--http",
        help="HTTP side of a redis-namesrv, which sends changes: looks when there is one, in place of each interval",
        metavar="URL",
        envvar=VARIABLE,
        show_default=False,
    ),
]


class ChangeDocument(Document, frozen=True):
    """An added, changed or removed row; `at` is the local time of the poll."""

    at: str
    change: str
    before: Row | None
    after: Row | None


def add(app: typer.Typer, panel: str) -> None:
    """The command `watch`."""
    command(app, panel=panel)(watch)


def watch(
    settings: CommandContext,
    topics: Topics = None,
    clusters: Clusters = False,
    interval: Interval = 1.0,
    looks: Count = 0,
    http: WatchedHttp = None,
) -> None:
    """Routes of topics, or clusters, as they change. Ctrl-C ends it.

    On a terminal the state and the last changes, else a line for each change (with -o json a document a line)."""
    if topics and clusters:
        raise ConfigError("topics, or --clusters: not both")
    stream = None if http is None else ChangeStream(http_url(http), token=settings.token)
    with suppress(KeyboardInterrupt), _screen(settings.output) as screen:
        asyncio.run(_watch(settings, _Looks(topics or [], interval, looks), stream, screen))


def changes(before: Snapshot, after: Snapshot, at: str) -> list[ChangeDocument]:
    """Return the differences of two snapshots, sorted."""
    return [
        ChangeDocument(at, _verb(before.get(key), after.get(key)), before.get(key), after.get(key))
        for key in sorted(before.keys() | after.keys())
        if before.get(key) != after.get(key)
    ]


Screen = Callable[[Snapshot, Sequence[ChangeDocument], str], None]
"""Called with the snapshot, its changes, and the error of the poll (empty: none)."""


class _Looks(NamedTuple):
    topics: Sequence[str]
    interval_s: float
    number: int


async def _watch(
    settings: CommandContext, looks: _Looks, stream: ChangeStream | None, screen: Screen
) -> None:
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(settings.async_name_server())
        pause: Pause = partial(wait, looks.interval_s)
        if stream is not None:
            pause = await stack.enter_async_context(until_changed(stream, pause, settings.output.error))
        await _look_again(server, looks, pause, screen)


async def _look_again(server: AsyncNameServerClient, looks: _Looks, pause: Pause, screen: Screen) -> None:
    before: Snapshot | None = None
    for look in count(1):
        try:
            after = await (_routes(server, looks.topics) if looks.topics else _brokers(server))
        except ClientError as error:
            screen(before or {}, (), message_of(error))
        else:
            now = datetime.now().astimezone().isoformat(timespec="milliseconds")
            screen(after, () if before is None else changes(before, after, now), "")
            before = after
        if look == looks.number:
            return
        await pause()


async def _routes(server: AsyncNameServerClient, topics: Sequence[str]) -> Snapshot:
    answers = await asyncio.gather(*(server.get_route(topic) for topic in topics))
    found: Snapshot = {}
    for topic, answer in zip(topics, answers, strict=True):
        route = None if answer is None else document(topic, answer)
        for queue in route.queue_datas if route else ():
            brokers = [b for b in route.broker_datas if b.broker_name == queue.broker_name] if route else []
            addresses = brokers[0].broker_addrs if brokers else {}
            row = {"topic": topic, "brokerAddrs": builtins(addresses)} | builtins(queue)
            found[topic, queue.broker_name] = row
    return found


async def _brokers(server: AsyncNameServerClient) -> Snapshot:
    listed = members(await server.get_cluster_info())
    return {(m.cluster, m.broker_name, f"{m.broker_id:019}"): builtins(m) for m in listed}


@contextmanager
def _screen(output: Printer) -> Iterator[Screen]:
    """Yield a live screen on a terminal, else a printer of lines."""
    if not output.on_terminal or output.form != "table":
        yield _Lines(output)
        return
    with Live(console=output.console, auto_refresh=False) as live:
        yield _LiveScreen(live)


class _Lines:
    """Prints changes; a failure and its end once, on standard error."""

    def __init__(self, output: Printer) -> None:
        self._output = output
        self._failure = ""

    def __call__(self, snapshot: Snapshot, changed: Sequence[ChangeDocument], failure: str) -> None:
        if failure != self._failure:
            self._output.error(failure or "answered again")
            self._failure = failure
        for change in changed:
            self._output.line(change, _line(change))


class _LiveScreen:
    """Shows the state and below it the last changes."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._last: deque[ChangeDocument] = deque(maxlen=SHOWN)

    def __call__(self, snapshot: Snapshot, changed: Sequence[ChangeDocument], failure: str) -> None:
        self._last.extend(changed)
        rows = [_cells(row) for _, row in sorted(snapshot.items())]
        headings = ("TOPIC", "BROKER", "ADDRESSES", "READ", "WRITE", "PERM")
        if not any("topic" in row for row in snapshot.values()):
            headings = ("CLUSTER", "BROKER", "ID", "ADDRESS", "ROLE", "ZONE")
        parts = [Text(plain(_line(change))) for change in self._last]
        if failure:
            parts.append(Text(plain(failure), style="bold red"))
        self._live.update(Group(table(headings, rows), Text(), *parts), refresh=True)


def _cells(row: Row) -> tuple[object, ...]:
    if "topic" in row:
        addresses = addresses_text({int(number): address for number, address in row["brokerAddrs"].items()})
        queues = (row["readQueueNums"], row["writeQueueNums"])
        return (row["topic"], row["brokerName"], addresses, *queues, perm_text(row["perm"]))
    return (
        row["cluster"],
        row["brokerName"],
        row["brokerId"],
        row["brokerAddr"],
        row["role"],
        row["zoneName"] or "",
    )


def _line(change: ChangeDocument) -> str:
    was = f" (was {_words(change.before)})" if change.before and change.after else ""
    return f"{change.at} {change.change} {_words(change.after or change.before or {})}{was}"


def _words(row: Row) -> str:
    return " ".join(filter(None, map(str, _cells(row))))


def _verb(before: Row | None, after: Row | None) -> str:
    if before is None:
        return "added"
    return "removed" if after is None else "changed"
