"""What a command would change, before it does: by `--dry-run`, and on a terminal where it takes something away."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import msgspec
import typer

from mqns.cli.http_api import NO_HEADERS, HttpApi
from mqns.cli.output import Document, lines, plain
from mqns.cli.settings import CommandContext
from mqns.errors import ClientError
from rocketmq_remoting.route_changes import Named, QueueCounts, RouteChanges

__all__ = ["Declined", "Preview", "approved", "named_text", "preview_by_http"]

DRY_RUN: Final = "?dryRun=true"
QUESTION: Final = "Go on?"


class Declined(ClientError):
    """The answer on the terminal was no."""


class Preview(Document, frozen=True):
    """What a change would mean at one name server: its address, or the URL of its HTTP side. `routes` null: no route
    depends on it, or that is not known."""

    name_server: str
    change: str
    changes: bool
    brokers: Named | None = None
    routes: RouteChanges | None = None


class _DryRunJson(msgspec.Struct):
    events: dict[str, int]
    brokers: Named
    routes: RouteChanges


class _AnswerJson(msgspec.Struct, rename="camel"):
    dry_run: _DryRunJson


def approved(settings: CommandContext, previews: Callable[[], Sequence[Preview]]) -> bool:
    """Return whether the command is to go on, once it has shown what it would change where it has to.

    Raises Declined for no, and what the previews raise: what would be refused is so before anything is done."""
    intent = settings.intent
    if intent.dry_run:
        found = previews()
        settings.output.show(found, lambda: lines(_words(found)))
        return False
    if not intent.asks or not (sys.stdin.isatty() and settings.output.errors.is_terminal):
        return True
    for line in _words(previews()):
        print(plain(line), file=settings.output.errors.file)
    if typer.confirm(QUESTION, err=True):
        return True
    raise Declined("nothing was changed; --yes asks no question")


def preview_by_http(
    api: HttpApi,
    change: str,
    method: str,
    path: str,
    body: object = None,
    conditions: Mapping[str, str] = NO_HEADERS,
) -> Preview:
    """Return what a request to a redis-namesrv would change, as that says. Raises HttpError as the request would."""
    answer, _ = api.request_tagged(_AnswerJson, method, path + DRY_RUN, body, conditions)
    dry_run = answer.dry_run
    return Preview(api.url, change, bool(dry_run.events), dry_run.brokers, dry_run.routes)


def _words(previews: Sequence[Preview]) -> Iterator[str]:
    for preview in previews:
        yield f"{preview.name_server}: {preview.change}"
        yield from (f"  {line}" for line in _meaning(preview))


def _meaning(preview: Preview) -> Iterator[str]:
    if not preview.changes:
        yield "nothing changes: it is so already"
        return
    if preview.brokers is not None and preview.brokers.count:
        yield f"brokers: {named_text(preview.brokers)}"
    routes = preview.routes
    if routes is None:
        return
    if not routes.changed.count:
        yield "no route changes"
        return
    yield f"routes that change: {named_text(routes.changed)}"
    if routes.ended.count:
        yield f"left without a broker: {named_text(routes.ended)}"
    if routes.unwritable.count:
        yield f"left without a queue to write to: {named_text(routes.unwritable)}"
    yield f"queues to read: {_counts(routes.read_queues)}; to write: {_counts(routes.write_queues)}"
    if routes.unexamined:
        yield f"not looked at: {routes.unexamined} more topics"


def named_text(named: Named) -> str:
    """Return `2 (a, b)`; an ellipsis stands for names that are not shown."""
    more = ", …" if named.count > len(named.names) else ""
    return f"{named.count} ({', '.join(named.names)}{more})"


def _counts(counts: QueueCounts) -> str:
    return f"{counts.before} -> {counts.after}"
