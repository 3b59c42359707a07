"""Who this is for a redis-namesrv, and its principals, tokens and revocations (docs/http-api.md)."""

from collections.abc import Iterator
from typing import Annotated, Final, NamedTuple, TypeVar

import typer

from mqns.cli.commands import command, new_app
from mqns.cli.exit_codes import NotFound
from mqns.cli.http_api import Http, HttpError, name_in_path
from mqns.cli.moments import utc_text
from mqns.cli.output import Document, lines, table
from mqns.cli.previews import approved, preview_by_http
from mqns.cli.settings import CommandContext

T = TypeVar("T")
DAY_MS: Final = 86_400_000
HOUR_MS: Final = 3_600_000
HEADINGS: Final = ("PRINCIPAL", "ROLES", "CREDENTIAL", "EXPIRES", "LAST USE", "")
Row = tuple[str, str, str, str, str, str]
NOT_FOUND: Final = frozenset({"token-not-found", "credential-not-found", "principal-not-found"})

Principal = Annotated[str, typer.Argument(help="Name of a principal", show_default=False)]
TokenId = Annotated[str, typer.Argument(help="Id of a token, its part between the two _", show_default=False)]
Credential = Annotated[
    str,
    typer.Argument(
        help="Id of a credential, such as token:k3v9x2ma or acl:mqadmin; or principal:NAME",
        show_default=False,
    ),
]
Roles = Annotated[
    list[str] | None,
    typer.Option(
        "--role", help="reader, broker, operator, admin or scraper; of a principal of the access file its own"
    ),
]
Days = Annotated[int, typer.Option("--days", help="For how long it is good", min=1, max=366)]
NewDays = Annotated[
    int | None,
    typer.Option(
        "--days",
        help="For how long it is good (default: as long as the old one was created for)",
        min=1,
        max=366,
        show_default=False,
    ),
]
Keep = Annotated[int, typer.Option("--keep-hours", help="For how long the old one is good still", min=0)]


class CallerDocument(Document, frozen=True):
    """The caller, as the name server sees it."""

    actor: str
    principal: str | None
    proof: str | None
    roles: list[str]
    limits: dict[str, list[str] | bool | None] | None
    expires_millis: int | None
    classes: list[str]


class TokenDocument(Document, frozen=True):
    """A token of the store."""

    token_id: str
    principal: str
    roles: list[str] | None
    created_millis: int
    expires_millis: int
    by: str


class ListedTokenDocument(TokenDocument, frozen=True):
    """And when it was used."""

    last_used_millis: int | None


class CreatedDocument(TokenDocument, frozen=True):
    """A new token, shown this once."""

    token: str


class SecretDocument(Document, frozen=True):
    """A secret of an ACL key."""

    file: str
    expires_millis: int | None
    last_used_millis: int | None


class CredentialDocument(Document, frozen=True):
    """What proves a principal."""

    id: str
    kind: str
    expires_millis: int | None
    last_used_millis: int | None
    revoked: bool
    secrets: list[SecretDocument]


class PrincipalDocument(Document, frozen=True):
    """A principal of the access file."""

    name: str
    roles: list[str]
    limits: dict[str, list[str] | bool | None]
    credentials: list[CredentialDocument]


class PrincipalsDocument(Document, frozen=True):
    """All principals, tokens and revocations."""

    principals: list[PrincipalDocument]
    tokens: list[ListedTokenDocument]
    revoked: list[str]


class WrittenDocument(Document, frozen=True):
    """The entry of the event stream, null where nothing changed."""

    event_id: str | None


def add_look(app: typer.Typer, panel: str) -> None:
    """The command `whoami`."""
    command(app, panel=panel)(whoami)


def add(app: typer.Typer, panel: str) -> None:
    """The commands `access …`."""
    group = new_app("Principals, tokens and revocations of a redis-namesrv.")
    command(group, "list")(show)
    command(group, changes="something")(create)
    command(group, changes="takes away")(rotate)
    command(group, changes="takes away")(revoke)
    command(group, changes="something")(restore)
    app.add_typer(group, name="access", rich_help_panel=panel)


def whoami(settings: CommandContext, http: Http) -> None:
    """The caller that a redis-namesrv sees, and what it may ask."""
    caller = settings.http_api(http).request(CallerDocument, "GET", "/v1/whoami")
    settings.output.show(caller, lambda: lines(_about(caller)))


def show(settings: CommandContext, http: Http) -> None:
    """Principals with their credentials, tokens of the store, and what is revoked."""
    found = settings.http_api(http).request(PrincipalsDocument, "GET", "/v1/access/principals")
    rows = [row for one in found.principals for row in _rows_of(one)]
    rows += [
        (
            *(one.principal, ", ".join(one.roles or ()), f"token:{one.token_id}"),
            *(_time(one.expires_millis), _minute(one.last_used_millis), ""),
        )
        for one in found.tokens
    ]
    settings.output.show(found, lambda: table(HEADINGS, rows))


def create(
    settings: CommandContext, principal: Principal, http: Http, role: Roles = None, days: Days = 90
) -> None:
    """Create a token. It is printed this once; the server has its hash alone."""
    body = {"principal": principal, "roles": role or None, "validMillis": days * DAY_MS}
    _created(settings, http, f"create a token of {principal}", "/v1/access/tokens", body)


def rotate(
    settings: CommandContext, token_id: TokenId, http: Http, keep_hours: Keep = 24, days: NewDays = None
) -> None:
    """Create a token in the place of another one, which is good for a while still."""
    body = {"keepMillis": keep_hours * HOUR_MS}
    if days is not None:
        body["validMillis"] = days * DAY_MS
    change = f"create a token in the place of {token_id}, which ends in {keep_hours} h"
    _created(settings, http, change, f"/v1/access/tokens/{name_in_path(token_id)}/rotate", body)


def revoke(settings: CommandContext, credential: Credential, http: Http) -> None:
    """Revoke a credential or a principal; each worker follows within a second."""
    body = {"credential": credential}
    change = _Change(f"revoke {credential}", "POST", "/v1/access/revocations", body)
    _write(settings, http, change, "revoked")


def restore(settings: CommandContext, credential: Credential, http: Http) -> None:
    """Take a revocation back. A token of the store that was revoked is gone for good."""
    path = f"/v1/access/revocations/{name_in_path(credential)}"
    _write(settings, http, _Change(f"restore {credential}", "DELETE", path), "restored")


class _Change(NamedTuple):
    """A request, and what it does in words."""

    words: str
    method: str
    path: str
    body: object = None


def _created(settings: CommandContext, http: str, words: str, path: str, body: object) -> None:
    created = _request(settings, http, CreatedDocument, _Change(words, "POST", path, body))
    if created is None:
        return
    settings.output.show(created, lambda: lines([created.token]))
    settings.output.error(
        f"token {created.token_id} of {created.principal}, until {_time(created.expires_millis)}; it is not shown again"
    )


def _write(settings: CommandContext, http: str, change: _Change, done: str) -> None:
    written = _request(settings, http, WrittenDocument, change)
    if written is not None:
        settings.output.show(written, lambda: lines([done if written.event_id else f"{done} already"]))


def _request(settings: CommandContext, http: str, shape: type[T], change: _Change) -> T | None:
    """Return the answer to a request, None if it was not to be sent. Raises NotFound, HttpError."""
    api = settings.http_api(http)
    try:
        if not approved(settings, lambda: [preview_by_http(api, *change)]):
            return None
        return api.request(shape, change.method, change.path, change.body)
    except HttpError as error:
        if error.kind in NOT_FOUND:
            raise NotFound(str(error)) from None
        raise


def _rows_of(principal: PrincipalDocument) -> Iterator[Row]:
    """Yield a row for each credential, of an ACL key one for each of its secrets."""
    about = principal.name, ", ".join(principal.roles)
    if not principal.credentials:
        yield *about, "", "-", "-", ""
    for one in principal.credentials:
        state = "revoked" if one.revoked else ""
        for secret in one.secrets:
            times = _time(secret.expires_millis), _minute(secret.last_used_millis)
            yield *about, f"{one.id} ({secret.file})", *times, state
        if not one.secrets:
            yield *about, one.id, _time(one.expires_millis), _minute(one.last_used_millis), state


def _about(caller: CallerDocument) -> list[str]:
    shown = {
        "actor": caller.actor,
        "principal": caller.principal or "none",
        "roles": ", ".join(caller.roles) or "none",
        "expires": _time(caller.expires_millis),
        "may ask": ", ".join(caller.classes) or "nothing",
    }
    limits = {} if caller.limits is None else caller.limits
    shown |= {
        f"limits: {name}": ", ".join(patterns)
        for name, patterns in limits.items()
        if isinstance(patterns, list)
    }
    return [f"{name:<10} {text}" for name, text in shown.items()]


def _time(millis: int | None) -> str:
    return "-" if millis is None else utc_text(millis, "%Y-%m-%d %H:%M:%SZ")


def _minute(millis: int | None) -> str:
    return "-" if millis is None else utc_text(millis, "%Y-%m-%d %H:%MZ")
