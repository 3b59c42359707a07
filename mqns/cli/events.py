"""The commands `events` and `audit`: what changed and who did it, by the HTTP API of redis-namesrv."""

import time
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Annotated, Final
from urllib.parse import urlencode

import msgspec
import typer

from mqns.cli.commands import command
from mqns.cli.event_lines import EntryDocument, EntryId, line_of, unknown_kind
from mqns.cli.exit_codes import message_of
from mqns.cli.http_api import Http, HttpApi, HttpError
from mqns.cli.moments import moment_text, parse_moment
from mqns.cli.output import OutputFormat
from mqns.cli.settings import CommandContext
from mqns.errors import ClientError, ConfigError

PAGE_MOST: Final = 1000
INTERVAL_S: Final = 1.0
LIMIT_MOST: Final = 100_000
wait = time.sleep

Since = Annotated[
    str | None,
    typer.Option(
        "--since",
        help="From so long ago on (30m, 1h, 2d), from a time on (2026-11-21T14:03:00Z, or local), or from Unix ms on",
        metavar="TIME",
        show_default=False,
    ),
]
Until = Annotated[
    str | None, typer.Option("--until", help="Up to a time", metavar="TIME", show_default=False)
]
Kinds = Annotated[
    list[str] | None, typer.Option("--kind", "-k", help="Of these kinds only", show_default=False)
]
Topic = Annotated[str | None, typer.Option("--topic", "-t", help="That name this topic", show_default=False)]
Broker = Annotated[
    str | None, typer.Option("--broker", "-b", help="That name this broker", show_default=False)
]
Cluster = Annotated[
    str | None, typer.Option("--cluster", "-c", help="That name this cluster", show_default=False)
]
Actor = Annotated[
    str | None,
    typer.Option("--actor", help="Of this actor, or of its beginning up to a colon", show_default=False),
]
Limit = Annotated[int, typer.Option("--limit", help="How many, the newest ones", min=1, max=LIMIT_MOST)]
Follow = Annotated[bool, typer.Option("--follow", "-f", help="And those that come, until Ctrl-C")]


class _Page(msgspec.Struct):
    events: list[EntryDocument]
    next: EntryId | None
    more: bool


class _Query(msgspec.Struct, frozen=True):
    """A path of the HTTP API, and the parameters that say which of its entries are wanted."""

    api: HttpApi
    path: str
    parameters: tuple[tuple[str, str | int], ...]

    def page(self, order: str, after: str | None, limit: int = PAGE_MOST) -> _Page:
        """Return the next page. Raises ClientError."""
        paging: list[tuple[str, str | int]] = [("order", order), ("limit", limit)]
        if after is not None:
            paging.append(("after", after))
        query = urlencode([*self.parameters, *paging])
        return self.api.request(_Page, "GET", f"{self.path}?{query}")


def add(app: typer.Typer, panel: str) -> None:
    """The commands `events` and `audit`."""
    command(app, "events", panel=panel)(
        _reading("/v1/events", "What changed, and who did it: entries of the event stream, the newest last.")
    )
    command(app, "audit", panel=panel)(
        _reading("/v1/audit", "What operators did, also before the event stream begins, the newest last.")
    )


def _reading(path: str, text: str) -> Callable[..., None]:
    """Return the command that reads this path."""

    def read(
        settings: CommandContext,
        http: Http,
        since: Since = None,
        until: Until = None,
        kind: Kinds = None,
        topic: Topic = None,
        broker: Broker = None,
        cluster: Cluster = None,
        actor: Actor = None,
        limit: Limit = 100,
        follow: Follow = False,
    ) -> None:
        if follow and until is not None:
            raise ConfigError("--until, or --follow: not both")
        for sentence in filter(None, map(unknown_kind, kind or ())):
            settings.output.error(sentence)
        api = settings.http_api(http)
        parameters = {
            "since": _moment(api, "--since", since),
            "until": _moment(api, "--until", until),
            "kind": ",".join(kind or ()) or None,
            "topic": topic,
            "broker": broker,
            "cluster": cluster,
            "actor": actor,
        }
        given = tuple((name, value) for name, value in parameters.items() if value is not None)
        _read(settings, _Query(api, path, given), limit, topic, follow)

    read.__doc__ = text
    return read


def _moment(api: HttpApi, option: str, text: str | None) -> int | None:
    return None if text is None else parse_moment(option, text, lambda: _now_ms(api))


def _now_ms(api: HttpApi) -> int:
    """Return the time by the server's store; by this machine's clock where the server is not ready."""
    try:
        return api.now_millis()
    except HttpError:
        return time.time_ns() // 1_000_000


def _read(settings: CommandContext, query: _Query, limit: int, topic: str | None, follow: bool) -> None:
    newest = _newest(query.api) if follow else None
    entries, whole = _last(settings, query, limit, None if newest is None else _behind(newest))
    if not (follow or whole):
        settings.output.error(f"the last {limit}; there may be others before them (--limit)")
    if not follow and settings.output.form is not OutputFormat.TABLE:
        settings.output.show(entries, lambda: "")  # no table
        return
    coming = _coming(settings, query, newest or (entries[-1].id if entries else None)) if follow else ()
    for entry in chain(entries, coming):
        settings.output.line(entry, line_of(entry, topic))


def _newest(api: HttpApi) -> str | None:
    """Return the id of the newest entry of the event stream, from which on entries are those that come."""
    page = _Query(api, "/v1/events", ()).page("desc", None, 1)
    return page.events[0].id if page.events else None


def _behind(entry_id: str) -> str:
    """Return an id whose page, newest first, begins with this entry."""
    ms, _, number = entry_id.partition("-")
    return f"{ms}-{int(number) + 1}"


def _last(
    settings: CommandContext, query: _Query, limit: int, after: str | None
) -> tuple[list[EntryDocument], bool]:
    """Return the last entries, oldest first, and whether there are no others before them."""
    entries: list[EntryDocument] = []
    with settings.output.status("events") as say:
        while len(entries) < limit:
            page = query.page("desc", after, min(PAGE_MOST, limit - len(entries)))
            entries += page.events
            after = page.next
            if after is None:
                break
            say(f"{len(entries)} back to {moment_text(int(after.partition('-')[0]), 'seconds')}")
    return entries[::-1], after is None


def _coming(settings: CommandContext, query: _Query, after: str | None) -> Iterator[EntryDocument]:
    """Yield entries as they are recorded; a server that is away is reported once, and asked until it answers."""
    away = False
    while True:
        try:
            page = query.page("asc", after)
        except ClientError as error:
            if not away:
                settings.output.error(f"{message_of(error)}; goes on when it answers")
            away = True
            wait(INTERVAL_S)
            continue
        away = False
        after = page.next
        yield from page.events
        if not page.more:
            wait(INTERVAL_S)
