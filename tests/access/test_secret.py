"""A secret is shown nowhere."""

import copy
import logging
import pickle

import msgspec
import pytest

from access.credentials import AclKey, AclSecret, TokenHash
from access.principal import Principal, StoredToken
from access.proof import Proof
from access.roles import Role
from access.tokens import new_token
from registry.secret import Secret

TEXT = "12345678abcdefgh"
KEY = AclKey("K", (AclSecret("k.key", Secret(TEXT)),))
TOKEN = TokenHash("abcd1234", Secret(TEXT))
PRINCIPAL = Principal("p", frozenset({Role.ADMIN}), keys=(KEY,), tokens=(TOKEN,))
VALUES = [
    *(Secret(TEXT), KEY, TOKEN, PRINCIPAL),
    *(Proof("acl", PRINCIPAL, "acl:K#k.key"), StoredToken("p", TOKEN)),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_no_text_of_a_value_has_it(value: object, caplog: pytest.LogCaptureFixture) -> None:
    """AC-28, of values in memory."""
    logging.getLogger(__name__).warning("%s %r", value, value)
    assert TEXT not in f"{value} {value!r} {[value]} {caplog.text}"
    assert "Secret(…)" in repr(value)


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_no_encoder_takes_it(value: object) -> None:
    encoders = (msgspec.json.encode, msgspec.msgpack.encode, msgspec.to_builtins, pickle.dumps)
    for encode in encoders:
        with pytest.raises(TypeError):
            encode(value)
    with pytest.raises(TypeError):
        copy.copy(Secret(TEXT))


def test_a_new_token_is_not_shown() -> None:
    token = new_token()
    assert token.token.reveal() not in f"{token} {token!r}"
    assert token.digest.reveal() not in f"{token} {token!r}"


def test_secrets_are_equal_as_their_texts_are() -> None:
    assert Secret(TEXT) == Secret(TEXT)
    assert hash(Secret(TEXT)) == hash(Secret(TEXT))
    assert Secret("é\ud800") != Secret("é")
    assert Secret(TEXT) != TEXT
