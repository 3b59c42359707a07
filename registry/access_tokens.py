"""Bearer tokens and revocations: what of principals is in the store. Tokens themselves are not, only their SHA-256.

Each change is an entry `access_changed` of the event stream, by which workers read both tables again."""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Final

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from registry.access_changes import DAY_MS, MOST, Row, change
from registry.clock import now_ms
from registry.damage.texts import is_text
from registry.errors import InvalidField, TableFull
from registry.keys import Keys
from registry.plans import Batch, Origin, Plan, as_json, call
from registry.secret import Secret
from rocketmq_remoting.typed import decoded

__all__ = [
    *(
        "PRINCIPAL_FORM",
        "PRINCIPAL_NAME",
        "REVOKED_MOST",
        "TOKENS_MOST",
        "UNKNOWN",
        "VALID_MOST_MS",
        "VALID_MS",
    ),
    *(
        "Grant",
        "Token",
        "create",
        "read",
        "read_all",
        "restore",
        "revoke",
        "revoke_again",
        "revoked",
        "rotate",
    ),
]

PRINCIPAL_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
PRINCIPAL_FORM: Final = "has 1 to 64 of A-Z a-z 0-9 . _ -"
"""The same in words."""
TOKENS_MOST: Final = MOST["tokens"]
REVOKED_MOST: Final = MOST["revoked"]
VALID_MS: Final = 90 * DAY_MS
VALID_MOST_MS: Final = 366 * DAY_MS
OVER_KEPT_MS: Final = 30 * DAY_MS
"""Tokens that were over for so long go when one is created; until then a caller is shown that they are over."""
LAST_MS: Final = 253_402_300_799_999
"""The end of the year 9999, behind which no calendar goes."""
ID_MOST: Final = 512
TOKEN: Final = "token:"
UNKNOWN: Final = "unknown"
"""The principal in entries about a credential that the access file has no more."""
SINCE: Final = "since"
"""The field of the revocations that says since when there are some; no id is so short."""
ANY: Final = "*"
"""As text before: whatever is there."""


class Token(msgspec.Struct, frozen=True):
    """A stored token; `roles` are its own, None those of its principal. `valid_ms` is for how long it was created: it
    ends sooner once another one replaces it. msgspec encodes none, because of the hash."""

    id: str
    digest: Secret
    principal: str
    created_ms: int
    expires_ms: int
    valid_ms: int
    by: str = ""
    roles: tuple[str, ...] | None = None


class Grant(msgspec.Struct, frozen=True):
    """A token to be stored, by its id and its SHA-256 in hexadecimal. `valid_ms` None: as long as that which it
    replaces, without one VALID_MS."""

    id: str
    digest: Secret
    principal: str
    roles: tuple[str, ...] | None = None
    valid_ms: int | None = None


Millis = Annotated[int, Meta(ge=0, le=LAST_MS)]


class _Record(msgspec.Struct, omit_defaults=True):
    """A token as it is stored; what is out of these bounds, no server has written. `valid_ms` where that is not until
    its end."""

    hash: Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]
    principal: Annotated[str, Meta(pattern=rf"\A{PRINCIPAL_NAME.pattern}\Z")]
    created_ms: Millis
    expires_ms: Millis
    valid_ms: Millis | None = None
    by: str = ""
    roles: tuple[str, ...] | None = None


def read(keys: Keys) -> Plan[tuple[Token, ...]]:
    """Return the stored tokens by their ids, those that are over too; a record that cannot be read is left out."""
    return _tokens((yield call("HGETALL", keys.access_tokens)))


def revoked(keys: Keys) -> Plan[frozenset[str]]:
    """Return the ids of credentials and principals that are revoked: `acl:<key>`, `token:<id>`, `principal:<name>` …"""
    return frozenset((yield call("HGETALL", keys.access_revoked))) - {SINCE}


def read_all(keys: Keys) -> Plan[tuple[tuple[Token, ...], frozenset[str], str, str]]:
    """Return the stored tokens, what is revoked, since when there are revocations, and the incarnation of the event
    stream; "" for before the first one.

    In one round trip, the incarnation last: rows of before are not taken for those of a store emptied meanwhile."""
    rows, noted, incarnation = yield Batch(
        (
            call("HGETALL", keys.access_tokens),
            call("HGETALL", keys.access_revoked),
            call("HGET", keys.events_meta, "inc"),
        )
    )
    return _tokens(rows), frozenset(noted) - {SINCE}, noted.get(SINCE, ""), incarnation or ""


def create(keys: Keys, new: Grant, origin: Origin) -> Plan[Token]:
    """Store a token and return it. Raises InvalidField, TableFull."""
    while True:
        now = yield from now_ms()
        token = _made(new, VALID_MS, now, origin)
        rows: Mapping[str, str] = yield call("HGETALL", keys.access_tokens)
        _check_new(new.id, rows)
        over = [
            ("tokens", id, text, "") for id, text in rows.items() if _is_over(id, text, now - OVER_KEPT_MS)
        ]
        if (
            yield from _write(keys, "created", token, [*over, ("tokens", token.id, "", _text(token))], origin)
        ):
            return token


def rotate(keys: Keys, token_id: str, new: Grant, keep_ms: int, origin: Origin) -> Plan[Token | None]:
    """Store a token beside the one that it replaces, and return it; None without that one. It has the principal and the
    roles of the old one, which is over in `keep_ms`, if not before. Raises InvalidField, TableFull."""
    while True:
        now = yield from now_ms()
        text, there = yield call("HMGET", keys.access_tokens, token_id, new.id)
        _check_new(new.id, [new.id] if there else ())
        old = _token(token_id, text or "")
        if old is None:
            return None
        grant = replace(new, principal=old.principal, roles=old.roles)
        token = _made(grant, old.valid_ms, now, origin)
        ends = replace(old, expires_ms=min(old.expires_ms, now + max(keep_ms, 0)))
        rows = [("tokens", old.id, text, _text(ends)), ("tokens", token.id, "", _text(token))]
        if (yield from _write(keys, "rotated", token, rows, origin, ("replaces", f"{TOKEN}{old.id}"))):
            return token


def revoke(keys: Keys, credential: str, principal: str, origin: Origin) -> Plan[str]:
    """Revoke a credential of a principal, or the principal, by its id; return the event id, "" if that is so already.

    A stored token is deleted, all others are noted as revoked. Raises InvalidField, TableFull."""
    if not is_text(credential) or not 0 < len(credential.encode()) <= ID_MOST:
        raise InvalidField("credential", f"has 1 to {ID_MOST} bytes of UTF-8")
    _check_principal(principal)
    while True:
        now = yield from now_ms()
        token_id = credential.removeprefix(TOKEN) if credential.startswith(TOKEN) else ""
        text, noted = yield Batch(
            (call("HGET", keys.access_tokens, token_id), call("HGET", keys.access_revoked, credential))
        )
        if noted is not None and text is None:
            return ""
        row = ("tokens", token_id, ANY, "")
        if text is None:
            row = ("revoked", credential, "", as_json({"at_ms": now, "by": origin.actor}).decode())
        subject = _Subject(credential, principal)
        if event_id := (yield from _write(keys, "revoked", subject, [row], origin)):
            return event_id


def revoke_again(keys: Keys, unnoted: Mapping[str, str], origin: Origin) -> Plan[None]:
    """Revoke what a store that was emptied, or has lost writes, has no note of: credentials with their principals, as
    many as it has room for."""
    with suppress(TableFull):
        for credential, principal in sorted(unnoted.items()):
            yield from revoke(keys, credential, principal, origin)


def restore(keys: Keys, credential: str, principal: str, origin: Origin) -> Plan[str]:
    """Take a revocation back; return the event id, "" without one. A stored token that was revoked is gone for good.

    Raises InvalidField."""
    _check_principal(principal)
    while True:
        noted: str | None = yield call("HGET", keys.access_revoked, credential)
        if noted is None or credential == SINCE:
            return ""
        rows = [("revoked", credential, ANY, "")]
        subject = _Subject(credential, principal)
        if event_id := (yield from _write(keys, "restored", subject, rows, origin)):
            return event_id


class _Subject(msgspec.Struct, frozen=True):
    """What an entry is about."""

    credential: str
    principal: str


def _write(
    keys: Keys,
    cause: str,
    subject: Token | _Subject,
    rows: Sequence[Row],
    origin: Origin,
    *more: tuple[str, str],
) -> Plan[str]:
    """Write rows with their entry and return its id; "" if another writer was faster. Raises TableFull."""
    fields = (*_fields(subject), *more)
    return change(keys, cause, fields, rows, origin, _full(subject))


def _full(subject: Token | _Subject) -> TableFull:
    if isinstance(subject, Token):
        return TableFull(f"a token of {subject.principal}", TOKENS_MOST, "tokens", "revoke some")
    cure = "take credentials out of the access file, and restore them"
    return TableFull(f"the revocation of {subject.credential}", REVOKED_MOST, "revocations", cure)


def _fields(subject: Token | _Subject) -> Iterable[tuple[str, str]]:
    yield "principal", subject.principal
    if isinstance(subject, _Subject):
        yield "credential", subject.credential
        return
    yield "credential", f"{TOKEN}{subject.id}"
    if subject.roles is not None:
        yield "roles", as_json(subject.roles).decode()
    yield "expires_ms", str(subject.expires_ms)


def _made(new: Grant, else_valid_ms: int, now: int, origin: Origin) -> Token:
    _check_principal(new.principal)
    valid_ms = else_valid_ms if new.valid_ms is None else new.valid_ms
    if not 0 < valid_ms <= VALID_MOST_MS:
        raise InvalidField("validMillis", f"is from 1 to {VALID_MOST_MS}, 366 days")
    return Token(new.id, new.digest, new.principal, now, now + valid_ms, valid_ms, origin.actor, new.roles)


def _check_principal(name: str) -> None:
    if not PRINCIPAL_NAME.fullmatch(name):
        raise InvalidField("principal", PRINCIPAL_FORM)


def _check_new(token_id: str, there: Iterable[str]) -> None:
    if token_id in there:
        raise InvalidField("id", f"there is a token {token_id}")


def _text(token: Token) -> str:
    valid_ms = None if token.created_ms + token.valid_ms == token.expires_ms else token.valid_ms
    record = _Record(
        token.digest.reveal(),
        token.principal,
        token.created_ms,
        token.expires_ms,
        valid_ms,
        token.by,
        token.roles,
    )
    return as_json(record).decode()


def _tokens(rows: Mapping[str, str]) -> tuple[Token, ...]:
    return tuple(token for id, text in sorted(rows.items()) if (token := _token(id, text)) is not None)


def _token(token_id: str, text: str) -> Token | None:
    try:
        record = decoded(text, _Record)
    except (ValueError, RecursionError):
        return None
    return Token(
        token_id,
        Secret(record.hash),
        record.principal,
        record.created_ms,
        record.expires_ms,
        record.expires_ms - record.created_ms if record.valid_ms is None else record.valid_ms,
        record.by,
        record.roles,
    )


def _is_over(token_id: str, text: str, at_ms: int) -> bool:
    token = _token(token_id, text)
    return token is not None and token.expires_ms <= at_ms
