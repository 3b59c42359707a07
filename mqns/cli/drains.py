"""Drains of brokers, by the HTTP API of redis-namesrv: RocketMQ's protocol has no request for them."""

import getpass
import os
from collections.abc import Callable
from typing import Annotated, Final

import msgspec
import typer

from mqns.cli.commands import command
from mqns.cli.drain_list import time_text
from mqns.cli.http_api import Http, HttpApi, HttpError, name_in_path
from mqns.cli.output import Document, table
from mqns.cli.permissions import Brokers
from mqns.cli.previews import Preview, approved, preview_by_http
from mqns.cli.settings import CommandContext
from mqns.errors import ClientError, RemotingError

DAMAGED: Final = "value-damaged"
"""The kind of the answer about a drain that is in force, and damaged."""
NOT_DRAINED: Final = "drain-not-found"
Reason = Annotated[str, typer.Option("--reason", help="Why; others will read it", show_default=False)]
Owner = Annotated[
    str | None,
    typer.Option(
        "--owner", help="Who wants it (default: this user's name)", envvar="USER", show_default=False
    ),
]
Seconds = Annotated[
    float | None,
    typer.Option(
        "--for",
        help="For how long (default: until it is undrained)",
        metavar="SECONDS",
        min=1.0,
        show_default=False,
    ),
]


class DrainDocument(Document, frozen=True):
    """The result of a drain; `topic_count` is the number of the broker's topics."""

    broker_name: str
    changed: bool
    topic_count: int


class _DrainJson(msgspec.Struct, rename="camel"):
    topic_count: int
    event_id: str | None


class _StandingJson(msgspec.Struct, rename="camel"):
    """The drain of a broker that is in force."""

    owner: str
    reason: str
    until_millis: int | None


class _AnyJson(msgspec.Struct):
    """A success, whatever it says."""


def add(app: typer.Typer, panel: str) -> None:
    """The commands `drain` and `undrain`."""
    command(app, panel=panel, changes="takes away")(drain)
    command(app, panel=panel, changes="something")(undrain)


def drain(
    settings: CommandContext,
    brokers: Brokers,
    http: Http,
    reason: Reason,
    owner: Owner = None,
    seconds: Seconds = None,
) -> None:
    """Keep producers off brokers, whatever these register, restarts included.

    If one of several is unknown, none is drained."""
    api = settings.http_api(http)
    until_millis = None
    if seconds is not None:
        until_millis = api.now_millis() + int(seconds * 1000)
    name = owner or _user()
    body = {"owner": name, "reason": reason, "untilMillis": until_millis}

    def preview(broker: str) -> Preview:
        return preview_by_http(api, f"drain {broker} for {name}: {reason}", "PUT", drain_path(broker), body)

    if not approved(settings, lambda: [preview(broker) for broker in brokers]):
        return

    def request(broker: str) -> DrainDocument:
        before = _standing(api, broker)
        document = _request_drain(api, "PUT", broker, body)
        if before is not None and before.owner != name:
            settings.output.error(
                f"{broker} was drained by {before.owner}{_end(before)} ({before.reason}); that drain is replaced"
            )
        return document

    _each(settings, api, brokers, request)


def undrain(settings: CommandContext, brokers: Brokers, http: Http) -> None:
    """Let producers come back to brokers: their topics have the permissions again that they had.

    If one of several is unknown, none is undrained."""
    api = settings.http_api(http)

    def preview(broker: str) -> Preview:
        return preview_by_http(api, f"end the drain of {broker}", "DELETE", drain_path(broker))

    if not approved(settings, lambda: [preview(broker) for broker in brokers]):
        return
    _each(settings, api, brokers, lambda broker: _request_drain(api, "DELETE", broker))


def _user() -> str:
    """Return the name of the user of this process; its number if there is no name, as in many containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


def _each(
    settings: CommandContext, api: HttpApi, brokers: list[str], request: Callable[[str], DrainDocument]
) -> None:
    """Make a request for each broker if all are known, and show what was done, also if it was refused for others.

    Raises the first refusal after all were requested, a RemotingError at once; its text names those not done."""
    if len(brokers) > 1:
        _expect_known(api, brokers)
    done: list[DrainDocument] = []
    refused: list[str] = []
    failure: ClientError | None = None
    for broker in brokers:
        try:
            done.append(request(broker))
        except HttpError as error:
            refused.append(broker)
            failure = failure or error
        except RemotingError as error:
            failure = error
            break
    if done:
        _show(settings, done)
    if failure is not None:
        left = [*refused, *brokers[len(done) + len(refused) :]]
        raise _with_left(failure, left) if len(brokers) > 1 else failure


def _expect_known(api: HttpApi, brokers: list[str]) -> None:
    """Raise HttpError that names all brokers that are neither registered nor drained."""
    try:
        unknown = [broker for broker in dict.fromkeys(brokers) if not _is_known(api, broker)]
    except ClientError as error:
        raise _with_left(error, brokers) from None
    if unknown:
        raise HttpError(f"no broker {', '.join(map(repr, unknown))}; nothing was done for the others")


def _is_known(api: HttpApi, broker: str) -> bool:
    """Return whether the broker is registered, or is gone and has a drain."""
    path = f"/v1/brokers/{name_in_path(broker)}"
    return _is_there(api, path, "broker-not-found") or _is_there(api, f"{path}/drain", NOT_DRAINED)


def _is_there(api: HttpApi, path: str, absent: str) -> bool:
    try:
        api.request(_AnyJson, "GET", path)
    except HttpError as error:
        if error.kind not in (absent, DAMAGED):
            raise
        return error.kind == DAMAGED
    return True


def _with_left(failure: ClientError, brokers: list[str]) -> ClientError:
    text = f"(not done: {', '.join(brokers)})"
    if isinstance(failure, RemotingError):
        return type(failure)(failure.address, f"{failure.reason} {text}")
    return HttpError(f"{failure} {text}")


def _standing(api: HttpApi, broker: str) -> _StandingJson | None:
    """Return the drain that is in force; None without one, and for a damaged one."""
    try:
        return api.request(_StandingJson, "GET", drain_path(broker))
    except HttpError as error:
        if error.kind not in (NOT_DRAINED, DAMAGED):
            raise
        return None


def _end(drain: _StandingJson) -> str:
    return "" if drain.until_millis is None else f" until {time_text(drain.until_millis)}"


def _request_drain(api: HttpApi, method: str, broker: str, body: object = None) -> DrainDocument:
    done = api.request(_DrainJson, method, drain_path(broker), body)
    return DrainDocument(broker, done.event_id is not None, done.topic_count)


def drain_path(broker: str) -> str:
    """Return the path of a broker's drain."""
    return f"/v1/brokers/{name_in_path(broker)}/drain"


def _show(settings: CommandContext, documents: list[DrainDocument]) -> None:
    settings.output.show(
        documents,
        lambda: table(
            ("BROKER", "CHANGED", "TOPICS"),
            [
                (document.broker_name, "yes" if document.changed else "no", document.topic_count)
                for document in documents
            ],
        ),
    )
