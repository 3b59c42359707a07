"""Drains of brokers, by the HTTP API of redis-namesrv: RocketMQ's protocol has no request for them."""

from typing import Annotated
from urllib.parse import quote

import msgspec
import typer

from mqns.cli.commands import command
from mqns.cli.http_api import HttpApi
from mqns.cli.output import Document, table
from mqns.cli.permissions import Brokers
from mqns.cli.settings import CommandContext

Http = Annotated[
    str,
    typer.Option(
        "--http", help="HTTP side of a redis-namesrv", metavar="URL", envvar="MQNS_HTTP", show_default=False
    ),
]
Reason = Annotated[str, typer.Option("--reason", help="Why; others will read it", show_default=False)]
Owner = Annotated[str, typer.Option("--owner", help="Who wants it", envvar="USER", show_default=False)]
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


class _ReadyJson(msgspec.Struct, rename="camel"):
    now_millis: int


def add(app: typer.Typer, panel: str) -> None:
    """The commands `drain` and `undrain`."""
    command(app, panel=panel)(drain)
    command(app, panel=panel)(undrain)


def drain(
    settings: CommandContext,
    brokers: Brokers,
    http: Http,
    reason: Reason,
    owner: Owner,
    seconds: Seconds = None,
) -> None:
    """Keep producers off brokers, whatever these register, restarts included."""
    api = HttpApi(http, settings.timeout_s)
    until_millis = None
    if seconds is not None:
        until_millis = api.request(_ReadyJson, "GET", "/readyz").now_millis + int(seconds * 1000)
    body = {"owner": owner, "reason": reason, "untilMillis": until_millis}
    _show(settings, [_request_drain(api, "PUT", broker, body) for broker in brokers])


def undrain(settings: CommandContext, brokers: Brokers, http: Http) -> None:
    """Let producers come back to brokers: their topics have the permissions again that they had."""
    api = HttpApi(http, settings.timeout_s)
    _show(settings, [_request_drain(api, "DELETE", broker) for broker in brokers])


def _request_drain(api: HttpApi, method: str, broker: str, body: object = None) -> DrainDocument:
    done = api.request(_DrainJson, method, f"/v1/brokers/{quote(broker, safe='')}/drain", body)
    return DrainDocument(broker, done.event_id is not None, done.topic_count)


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
