"""The commands `backup` and `restore`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from mqns.cli.backup.differences import Differences, differences, previews
from mqns.cli.backup.file import Backup, Server, backup_text, print_backup, read_backup, write_backup
from mqns.cli.backup.restoring import Restoring, expect_settable, of_known_brokers
from mqns.cli.backup.state import Part, SavedDrain, State, is_shared, read_state, was_set
from mqns.cli.commands import command
from mqns.cli.exit_codes import NotFound
from mqns.cli.http_api import Http, HttpApi, HttpError, without_login
from mqns.cli.output import Document, lines, table
from mqns.cli.previews import approved, named_text
from mqns.cli.settings import CommandContext
from mqns.cli.signals import sigterm_interrupts
from mqns.errors import ConfigError
from rocketmq_remoting.route_changes import Named

STANDARD_OUTPUT: Final = "-"
ALL_PARTS: Final = ",".join(Part)
BackupFile = Annotated[
    str,
    typer.Argument(
        help="File, replaced once the new one is whole; - is standard output",
        metavar="FILE",
        show_default=False,
    ),
]
RestoredFile = Annotated[Path, typer.Argument(help="File", metavar="FILE", show_default=False)]
Only = Annotated[
    str,
    typer.Option(
        "--only", help="These parts only, as kv,drains (default: all)", metavar="PARTS", show_default=False
    ),
]
Delete = Annotated[
    bool,
    typer.Option(
        "--delete", help="Delete KV values and end drains that the file has not", show_default=False
    ),
]


class BackupDocument(Document, frozen=True):
    """What a file has that was written."""

    file: str
    http: str
    kv_values: int
    settings: int
    drains: int


class RestoreDocument(Document, frozen=True):
    """What a restore did. `drains_over` had ended already, `brokers_unknown` are not registered: both are left out."""

    http: str
    kv_put: int
    kv_deleted: int
    settings_set: tuple[str, ...]
    drained: tuple[str, ...]
    undrained: tuple[str, ...]
    drains_over: tuple[str, ...]
    brokers_unknown: tuple[str, ...]


def add(app: typer.Typer, panel: str) -> None:
    """The commands."""
    command(app, panel=panel)(backup)
    command(app, panel=panel, changes="takes away")(restore)


def backup(settings: CommandContext, http: Http, file: BackupFile = STANDARD_OUTPUT) -> None:
    """KV, shared settings and drains of a redis-namesrv as one JSON file, which `restore` reads.

    Settings are those that were set while it ran; secrets are never among them."""
    saved = _taken(settings.http_api(http))
    text = backup_text(saved)
    if file == STANDARD_OUTPUT:
        print_backup(text)
        return
    with sigterm_interrupts():
        write_backup(Path(file), text)
    values = sum(map(len, saved.kv.values()))
    document = BackupDocument(file, saved.server.url, values, len(saved.settings), len(saved.drains))
    sentence = f"{file}: KV values: {values}; settings: {document.settings}; drains: {document.drains}"
    settings.output.show(document, lambda: lines([sentence]))


def restore(
    settings: CommandContext,
    http: Http,
    file: RestoredFile,
    only: Only = ALL_PARTS,
    delete: Delete = False,
) -> None:
    """Make KV, shared settings and drains of a redis-namesrv those of a backup.

    What the file does not have stays as it is, without --delete. The first refusal ends it."""
    parts = _parts(only)
    saved = _only(parts, read_backup(file).state)
    api = settings.http_api(http)
    before = read_state(api, parts, is_shared)
    now_millis = api.now_millis() if saved.drains else 0
    found = differences(before, saved, now_millis, delete=delete)
    expect_settable(api, found.settings)
    found, unknown = of_known_brokers(api, found)
    if (found.count or settings.intent.dry_run) and not approved(settings, lambda: previews(api.url, found)):
        if settings.intent.dry_run:
            _expect_known(unknown)
        return
    restoring = Restoring(api, before, found, unknown)
    try:
        with settings.output.progress("restore", found.count) as step:
            restoring.run(step)
    finally:
        _show(settings, api, restoring, found)
    if found.over:
        settings.output.error(
            f"drains that are over were left out: {named_text(Named.of(found.over))}; "
            "set those again that are still wanted"
        )
    _expect_known(restoring.unknown)


def _expect_known(unknown: Sequence[str]) -> None:
    if unknown:
        raise NotFound(f"no such brokers, so not drained: {named_text(Named.of(unknown))}")


def _taken(api: HttpApi) -> Backup:
    """Return a backup of what a server has now. Raises HttpError, ConnectError, CallTimeout."""
    taken_millis = api.now_millis()
    state = read_state(api, tuple(Part), was_set)
    drains: dict[str, SavedDrain] = {}
    for name, drain in state.drains.items():
        if drain is None:
            raise HttpError(f"the drain of broker {name} is damaged: set it again, or end it (mqns undrain)")
        drains[name] = drain
    return Backup(taken_millis, Server(without_login(api.url)), state.kv, state.settings, drains)


def _parts(text: str) -> frozenset[Part]:
    try:
        return frozenset(Part(name.strip()) for name in text.split(","))
    except ValueError:
        raise ConfigError(f"--only: {text!r} is no list of {', '.join(Part)}") from None


def _only(parts: frozenset[Part], state: State) -> State:
    return State(
        state.kv if Part.KV in parts else {},
        state.settings if Part.SETTINGS in parts else {},
        state.drains if Part.DRAINS in parts else {},
    )


def _show(settings: CommandContext, api: HttpApi, done: Restoring, wanted: Differences) -> None:
    document = RestoreDocument(
        api.url,
        done.put,
        done.deleted,
        tuple(done.settings),
        tuple(done.drained),
        tuple(done.undrained),
        wanted.over,
        tuple(done.unknown),
    )
    rows = (
        (Part.KV, done.put, done.deleted),
        (Part.SETTINGS, len(done.settings), 0),
        (Part.DRAINS, len(done.drained), len(done.undrained)),
    )
    settings.output.show(document, lambda: table(("PART", "SET", "REMOVED"), rows))
