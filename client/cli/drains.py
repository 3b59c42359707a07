"""Drains of brokers, which a redis-namesrv keeps: of its HTTP side, since Java's protocol has no request for them."""

from typing import Annotated
from urllib.parse import quote

import msgspec
import typer

from client.cli.commands import command
from client.cli.http_api import HttpApi
from client.cli.output import Document, table
from client.cli.permissions import Brokers
from client.cli.settings import Settings

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
    """`changed`: whether it was otherwise before; `topic_count` of the broker's topics."""

    broker_name: str
    changed: bool
    topic_count: int


class _Written(msgspec.Struct, rename="camel"):
    topic_count: int
    event_id: str | None


class _Ready(msgspec.Struct, rename="camel"):
    now_millis: int


def add(app: typer.Typer, panel: str) -> None:
    """The commands `drain` and `undrain`."""
    command(app, panel=panel)(drain)
    command(app, panel=panel)(undrain)


def drain(
    settings: Settings, brokers: Brokers, http: Http, reason: Reason, owner: Owner, seconds: Seconds = None
) -> None:
    """Keep producers off brokers, whatever these register, restarts included."""
    api = HttpApi(http, settings.timeout_s)
    until_millis = None
    if seconds is not None:
        until_millis = api.ask(_Ready, "GET", "/readyz").now_millis + int(seconds * 1000)
    body = {"owner": owner, "reason": reason, "untilMillis": until_millis}
    _show(settings, [_asked(api, "PUT", broker, body) for broker in brokers])


def undrain(settings: Settings, brokers: Brokers, http: Http) -> None:
    """Let producers come back to brokers: their topics have the permissions again that they had."""
    api = HttpApi(http, settings.timeout_s)
    _show(settings, [_asked(api, "DELETE", broker) for broker in brokers])


def _asked(api: HttpApi, method: str, broker: str, body: object = None) -> DrainDocument:
    done = api.ask(_Written, method, f"/v1/brokers/{quote(broker, safe='')}/drain", body)
    return DrainDocument(broker, done.event_id is not None, done.topic_count)


def _show(settings: Settings, documents: list[DrainDocument]) -> None:
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
