"""Bearer tokens: their form, and what is stored of them."""

import hashlib
import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from access.credentials import TokenHash
from access.tokens import digest_of, id_of, new_token, proves
from registry.secret import Secret
from tests.access.files import TOKEN

LAST = "AEIMQUYcgkosw048"


def test_a_token_has_its_id_and_256_random_bits() -> None:
    tokens = [new_token() for _ in range(200)]
    for one in tokens:
        text = one.token.reveal()
        assert re.fullmatch(r"mqns_[a-z0-9]{8}_[A-Za-z0-9_-]{43}", text)
        assert id_of(text) == one.id
        assert one.digest == digest_of(text)
    assert len({one.id for one in tokens}) == len({one.token for one in tokens}) == 200


def test_the_sha_256_of_the_whole_token_is_stored() -> None:
    assert digest_of(TOKEN).reveal() == hashlib.sha256(TOKEN.encode()).hexdigest()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "mqns_",
        TOKEN[:-1],
        f"{TOKEN}A",
        f"{TOKEN}\n",
        f" {TOKEN}",
        TOKEN.upper(),
        TOKEN.replace("_abcd", "_ABCD"),
        TOKEN.replace("mqns_", "mqnt_"),
        f"{TOKEN[:-2]}=A",
        f"{TOKEN[:-2]}éA",
        f"{TOKEN[:-1]}B",
    ],
)
def test_what_has_another_form_is_no_token(text: str) -> None:
    assert id_of(text) is None


def test_a_token_is_written_in_one_way_only() -> None:
    """43 letters have two bits more than 32 bytes; other letters at the end would be the same bytes."""
    letters = string.ascii_letters + string.digits + "_-"
    assert {last for last in letters if id_of(TOKEN[:-1] + last)} == set(LAST)


def test_only_the_token_itself_proves() -> None:
    token = new_token()
    stored = TokenHash(token.id, token.digest)
    assert proves(token.token.reveal(), stored)
    assert not proves(new_token().token.reveal(), stored)
    assert not proves(token.token.reveal(), TokenHash(token.id, Secret("")))


@given(st.text(max_size=80) | st.from_regex(r"mqns_[a-z0-9]{8}_[A-Za-z0-9_-]{42,44}\n?", fullmatch=True))
def test_any_text_is_a_token_or_none(text: str) -> None:
    token_id = id_of(text)
    assert token_id is None or text[5:13] == token_id
