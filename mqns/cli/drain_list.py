"""The drains in force, by the HTTP API of redis-namesrv, and how other commands show them."""

from collections.abc import Mapping
from typing import Final

import msgspec
import typer

from mqns.cli.commands import command
from mqns.cli.http_api import Http, HttpApi
from mqns.cli.moments import utc_text
from mqns.cli.output import Document, table
from mqns.cli.settings import CommandContext
from mqns.errors import ClientError

PAGE: Final = 1000
UNKNOWN: Final = "-"


class DrainState(Document, frozen=True):
    """A drain in force; Unix ms by the server's clock. `damaged`: what is stored is none, and all else is null."""

    owner: str | None
    reason: str | None
    since_millis: int | None
    until_millis: int | None
    damaged: bool


class DrainDocument(Document, frozen=True):
    """The drain of a broker name, which has `topic_count` topics; `cluster` is None while no member is registered."""

    broker_name: str
    cluster: str | None
    owner: str | None
    reason: str | None
    since_millis: int | None
    until_millis: int | None
    topic_count: int
    damaged: bool

    @property
    def state(self) -> DrainState:
        """The drain without its broker."""
        return DrainState(self.owner, self.reason, self.since_millis, self.until_millis, self.damaged)


class DrainPage(msgspec.Struct, frozen=True):
    """A page of `GET /v1/drains`."""

    drains: list[DrainDocument]
    next: str | None = None


def add(app: typer.Typer, panel: str) -> None:
    """The command `drains`."""
    command(app, panel=panel)(drains)


def drains(settings: CommandContext, http: Http) -> None:
    """Drained brokers: whose drains they are, why, since when and until when."""
    documents = read_drains(settings.http_api(http))
    settings.output.show(
        documents,
        lambda: table(
            ("BROKER", "CLUSTER", "OWNER", "SINCE", "UNTIL", "TOPICS", "REASON"),
            [
                (
                    drain.broker_name,
                    UNKNOWN if drain.cluster is None else drain.cluster,
                    owner_text(drain.state),
                    time_text(drain.since_millis),
                    time_text(drain.until_millis),
                    drain.topic_count,
                    drain.reason or "",
                )
                for drain in documents
            ],
        ),
    )


def read_drains(api: HttpApi) -> list[DrainDocument]:
    """Return all drains in force, sorted by broker name. Raises HttpError, ConnectError, CallTimeout."""
    pages = api.pages(DrainPage, f"/v1/drains?limit={PAGE}")
    return [drain for page in pages for drain in page.drains]


def states_if_asked(
    settings: CommandContext, http: str | None
) -> tuple[Mapping[str, DrainState] | None, ClientError | None]:
    """Return the drains by broker name, None where there is no HTTP side to ask or it failed; and its failure.

    A command shows what it has without them, and then raises the failure. Raises ConfigError for no URL."""
    if http is None:
        return None, None
    api = settings.http_api(http)
    try:
        listed = read_drains(api)
    except ClientError as error:
        return None, error
    return {drain.broker_name: drain.state for drain in listed}, None


def owner_text(drain: DrainState | None) -> str:
    """Return the owner for a table; of a damaged drain that it is, "" for none."""
    if drain is None:
        return ""
    return "(damaged)" if drain.damaged else drain.owner or ""


def time_text(millis: int | None) -> str:
    """Return `2026-11-28T04:36:13Z`; a number that is no time as it is."""
    return UNKNOWN if millis is None else utc_text(millis, "%Y-%m-%dT%H:%M:%SZ")
