"""The principals of a running process: those of its access file, with the tokens and revocations of the store."""

import logging
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from access.access_file import InvalidAccessFile, Loaded
from access.description import Change, Description, changed
from access.principal import StoredToken
from access.principals import Principals
from access.watched_access_file import WatchedAccessFile
from registry import access_tokens
from registry.keys import Keys
from registry.plans import Origin, Plan

__all__ = ["POLL_S", "LivePrincipals", "Stored", "Take", "follow_stored"]

POLL_S: Final = 1.0
"""How often `poll` is to be called."""

log = logging.getLogger(__name__)

Count = Callable[[str], None]
Read = Loaded | InvalidAccessFile | None


class Stored(msgspec.Struct, frozen=True):
    """What of principals is in the store; `since` is when the first revocation was, `incarnation` that of its event
    stream, "" before these."""

    tokens: tuple[StoredToken, ...] = ()
    revoked: frozenset[str] = frozenset()
    since: str = ""
    incarnation: str = ""


Take = Callable[[Stored], Mapping[str, str]]
"""Takes what of principals is in the store, and returns what is to be revoked there, with its principals."""


def follow_stored(keys: Keys, take: Take, origin: Origin) -> Plan[None]:
    """Give `take` what of principals is in the store; what it returns is revoked there again, for other processes."""
    unnoted = take((yield from _stored(keys)))
    yield from access_tokens.revoke_again(keys, unnoted, origin)


class LivePrincipals:
    """`principals` are those in force; `count` gets the result of each reload of the file, `allowed` or `denied`.
    Raises InvalidAccessFile.

    `unnoted` is what was revoked in a store that has been emptied, or has lost writes or its revocations since: it
    stays revoked, until the store has noted it again."""

    def __init__(self, path: str, count: Count) -> None:
        self._file = WatchedAccessFile(Path(path)) if path else None
        self._count = count
        self._stored: Stored | None = None
        self.unnoted: frozenset[str] = frozenset()
        self.description: Description = {} if self._file is None else self._file.loaded.description
        """What the file says."""
        self.change = Change()
        """How that differs from what it said before."""
        self.refused: str | None = None
        """Why the file, as it is now, is not in force; None while it is."""
        self._combine()

    @property
    def last_reload_successful(self) -> bool | None:
        """Return whether what is in force is what the file has now; None without a file."""
        return None if self._file is None else self.refused is None

    @property
    def knows_revoked(self) -> bool:
        """Return whether the store was ever read: before that, any credential may be a revoked one."""
        return self._stored is not None

    @property
    def has_file(self) -> bool:
        """Return whether there is a file that may change."""
        return self._file is not None

    def poll(self, now: float) -> bool:
        """Take what the file has now (Unix s); return whether that is something else."""
        return self.take_read(self.read(now))

    def read(self, now: float) -> Read:
        """Return what a change of the file leads to, None without one; for a thread, as a long file takes a second."""
        return None if self._file is None else self._file.poll(now)

    def take_read(self, read: Read) -> bool:
        """Take what was read of the file; return whether that is something else. A bad file leaves all as it is, logged
        once for each content."""
        if read is None:
            return False
        if isinstance(read, InvalidAccessFile):
            self.refused = str(read)
            self._count("denied")
            log.error(
                "the access file is not taken, and what it had before stays in force: %s; correct it",
                self.refused,
            )
            return False
        self.refused = None
        self._count("allowed")
        for warning in read.warnings:
            log.warning("the access file: %s; take a longer one", warning)
        log.info("the access file was taken: %d principals", len(read.principals))
        self.change = changed(self.description, read.description)
        self.description = read.description
        self._combine()
        return True

    def take(self, stored: Stored, *, lost_writes: bool = False) -> bool:
        """Take what the store has now; return whether that is something else.

        `lost_writes`: it is as it was earlier, or was emptied."""
        before = self._stored
        if before is not None and (lost_writes or _is_another(stored, before)):
            self.unnoted |= before.revoked
        self.unnoted -= stored.revoked
        if stored == before:
            return False
        self._stored = stored
        self._combine()
        return True

    def unnoted_with_owners(self) -> dict[str, str]:
        """Return `unnoted`, with the names of their principals."""
        owner_of = self.principals.owner_of
        return {one: owner_of(one) or access_tokens.UNKNOWN for one in self.unnoted}

    def has_in_file(self, credential: str) -> bool:
        """Return whether a token is the access file's."""
        return any(token.id == credential for principal in self._of_file for token in principal.tokens)

    @property
    def _of_file(self) -> Principals:
        return Principals() if self._file is None else self._file.loaded.principals

    def _combine(self) -> None:
        stored = self._stored or Stored()
        revoked = stored.revoked | self.unnoted
        self.principals = self._of_file.with_tokens(stored.tokens).without(revoked)


def _stored(keys: Keys) -> Plan[Stored]:
    """Return what of principals is in the store."""
    tokens, revoked, since, incarnation = yield from access_tokens.read_all(keys)
    return Stored(_readable(tokens), revoked, since, incarnation)


def _is_another(stored: Stored, before: Stored) -> bool:
    """Return whether a store was emptied since, or only its revocations were deleted."""
    return stored.incarnation != before.incarnation or before.since not in ("", stored.since)


def _readable(tokens: Iterable[access_tokens.Token]) -> tuple[StoredToken, ...]:
    return tuple(token for token in map(StoredToken.of, tokens) if token is not None)
