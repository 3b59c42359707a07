"""What an access file says, without what is in the files of secrets: for entries that say that it has changed."""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from access.limits import Limits
from access.principal import Principal

__all__ = ["Change", "changed", "described", "digest"]

NAMES_MOST: Final = 50
Description = Mapping[str, str]
"""By principal, a digest of what is said of it."""


class Change(msgspec.Struct, frozen=True):
    """Names of principals that were added, changed and removed; `count` is how many, of which the first are named."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    count: int = 0


def described(principals: Iterable[Principal]) -> Description:
    """Return a digest for each principal: of roles, limits, ids and ends of its credentials, names of secrets' files.

    A secret that is replaced in its file changes none: a digest of secrets would let them be guessed from it."""
    return {principal.name: _digest(_facts(principal)) for principal in principals}


def digest(description: Description) -> str:
    """Return one for all principals."""
    return _digest(sorted(description.items()))


def changed(before: Description, after: Description) -> Change:
    """Return which principals are others."""
    added, removed = sorted(after.keys() - before.keys()), sorted(before.keys() - after.keys())
    others = sorted(name for name in before.keys() & after.keys() if before[name] != after[name])
    return Change(
        tuple(added[:NAMES_MOST]),
        tuple(others[:NAMES_MOST]),
        tuple(removed[:NAMES_MOST]),
        len(added) + len(others) + len(removed),
    )


def _facts(principal: Principal) -> object:
    return (
        sorted(principal.roles),
        _limits(principal.limits),
        [
            (key.access_key, [(secret.name, secret.expires) for secret in key.secrets])
            for key in principal.keys
        ],
        [one.id for one in principal.certificates],
        [(one.id, one.expires) for one in principal.tokens],
    )


def _limits(limits: Limits) -> object:
    lists = (limits.clusters, limits.brokers, limits.topics, limits.kv)
    return [None if patterns is None else patterns.texts for patterns in lists], limits.limit_reads


def _digest(facts: object) -> str:
    return hashlib.sha256(msgspec.json.encode(facts)).hexdigest()[:16]
