"""What is in force of the access file and of the store, whatever becomes of the store (docs/access.md)."""

from pathlib import Path

import pytest

from access.live import LivePrincipals, Stored
from access.proof import BadCredential
from tests.access.files import TOKEN, access_file

FILE = """
[principals.a]
roles = ["reader"]
tokens = [{ file = "a.token" }]
"""
ID = "principal:a"
REVOKED = frozenset({ID})


@pytest.fixture
def live(tmp_path: Path) -> LivePrincipals:
    return LivePrincipals(str(access_file(tmp_path, FILE)), lambda result: None)


def is_good(live: LivePrincipals) -> bool:
    try:
        return live.principals.by_token(TOKEN, 0) is not None
    except BadCredential:
        return False


def test_what_is_revoked_is_known_once_the_store_was_read(live: LivePrincipals) -> None:
    assert not live.knows_revoked
    assert live.take(Stored()), "an empty one is news too"
    assert live.knows_revoked
    assert is_good(live)


def test_a_revocation_that_is_taken_back_is_over(live: LivePrincipals) -> None:
    live.take(Stored(revoked=REVOKED, incarnation="1"))
    assert not is_good(live)
    assert live.take(Stored(incarnation="1"))
    assert is_good(live)
    assert live.unnoted == frozenset()


@pytest.mark.parametrize("since", ["", "9-0"])
def test_what_was_revoked_stays_so_where_the_revocations_alone_were_deleted(
    live: LivePrincipals, since: str
) -> None:
    live.take(Stored(revoked=REVOKED, since="5-0", incarnation="1"))
    live.take(Stored(since=since, incarnation="1"))
    assert (is_good(live), live.unnoted) == (False, REVOKED)
    live.take(Stored(revoked=REVOKED, since="9-0", incarnation="1"))
    live.take(Stored(since="9-0", incarnation="1"))
    assert (is_good(live), live.unnoted) == (True, frozenset())


@pytest.mark.parametrize(("incarnation", "lost_writes"), [("2", False), ("", False), ("1", True)])
def test_what_a_store_has_lost_stays_revoked_until_that_is_taken_back(
    live: LivePrincipals, incarnation: str, *, lost_writes: bool
) -> None:
    live.take(Stored(revoked=REVOKED, incarnation="1"))
    live.take(Stored(incarnation=incarnation), lost_writes=lost_writes)
    assert (is_good(live), live.unnoted) == (False, REVOKED)
    live.take(Stored(incarnation="3"))
    assert (is_good(live), live.unnoted) == (False, REVOKED)
    live.take(Stored(revoked=REVOKED, incarnation="3"))
    assert (is_good(live), live.unnoted) == (False, frozenset())
    live.take(Stored(incarnation="3"))
    assert is_good(live)
