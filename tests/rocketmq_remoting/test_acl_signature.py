"""ACL 1.0: what RocketMQ's peers sign is verified, whatever else is refused, and no bytes raise."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqns.remoting.acl import AclCredentials
from mqns.remoting.request import Request
from rocketmq_remoting.acl_signature import (
    ACCESS_KEY,
    ONS_CHANNEL,
    SECURITY_TOKEN,
    SIGNATURE,
    ZONE_MODE,
    ZONE_NAME,
    signature,
    signed_text,
    verifies,
)
from rocketmq_remoting.command import Command, SerializeType, decode, encode

KEY = {ACCESS_KEY: "RocketMQ"}
SECRET = "12345678"
OBSERVED = [
    pytest.param({"topic": "TopicTest"} | KEY, b"", SECRET, "0jiwhsaYp5ObE5GObbZH1I8/FT4=", id="105"),
    pytest.param(KEY, b"", SECRET, "IUc8rrO/0gDch8CjObLQsW2rsiA=", id="106, 206, 319"),
    pytest.param(
        {"namespace": "nsé", "key": "k1", "value": "välue"} | KEY,
        b"",
        SECRET,
        "5zYr+7NzNxVwoNKQlTVXqzXpkGs=",
        id="100",
    ),
    pytest.param(KEY, b"orderMessageEnable=true\n", SECRET, "5LS4ObEGftnaOk+bFIDCdDw+h1I=", id="318"),
    pytest.param(
        {"topic": "TopicTest", ACCESS_KEY: "", ONS_CHANNEL: "ALIYUN"},
        b"",
        "",
        "N/YT7X6tJe5UfutmW+uNwTTJ7Fc=",
        id="105 of C++ without credentials",
    ),
]
"""Fields, body and secret of requests of released peers, and their signatures."""
observed = pytest.mark.parametrize(("fields", "body", "secret", "expected"), OBSERVED)
ODD = st.text(max_size=8) | st.text(st.sampled_from("aé\0\uff5e😀\ud83d\ude00"), max_size=8)
"""Surrogates among it, alone and as pairs."""
FIELDS = st.dictionaries(ODD, ODD, max_size=5)


def signed(fields: dict[str, str], body: bytes = b"", secret: str = SECRET) -> dict[str, str]:
    return fields | {SIGNATURE: signature(fields, body, secret)}


def one_bit_off(text: str) -> str:
    """Return the text with one bit of its last character changed, or with a character more."""
    return text[:-1] + chr(ord(text[-1]) ^ 1) if text else "\1"


@pytest.mark.conformance("AC-01")
@observed
def test_requests_of_released_peers_are_verified(
    fields: dict[str, str], body: bytes, secret: str, expected: str
) -> None:
    assert signature(fields, body, secret) == expected
    assert verifies(fields | {SIGNATURE: expected}, body, secret)


@pytest.mark.conformance("AC-01")
@observed
def test_one_bit_off_is_refused(fields: dict[str, str], body: bytes, secret: str, expected: str) -> None:
    whole = fields | {SIGNATURE: expected}
    for name, value in whole.items():
        assert not verifies(whole | {name: one_bit_off(value)}, body, secret), name
    assert not verifies(whole, body + b"\1" if not body else bytes([body[0] ^ 1]) + body[1:], secret)
    assert not verifies(whole, body, one_bit_off(secret))


@pytest.mark.parametrize("kind", list(SerializeType))
def test_both_encodings_of_a_header_give_the_same_signature(kind: SerializeType) -> None:
    fields = {"namespace": "nsé", "key": "k1", "value": "välue 😀"} | KEY
    command = Command(100, 7, ext=signed(fields, b"body"), body=b"body", serialize_type=kind)
    received = decode(encode(command)[4:])
    assert received.ext is not None
    assert received.ext[SIGNATURE] == signature(fields, b"body", SECRET)
    assert verifies(received.ext, received.body, SECRET)


def test_a_request_without_a_signature_is_refused() -> None:
    assert not verifies({}, b"", SECRET)
    assert not verifies(KEY, b"", SECRET)
    assert not verifies(KEY | {SIGNATURE: ""}, b"", SECRET)


def test_a_zone_may_be_added_behind_the_signature_or_before() -> None:
    """Clients of 5.x do one, brokers the other."""
    zone = {ZONE_NAME: "z1", ZONE_MODE: "true"}
    assert verifies(signed(KEY) | zone, b"", SECRET)
    assert verifies(signed(KEY) | {ZONE_NAME: "z1"}, b"", SECRET)
    assert verifies(signed(KEY | zone), b"", SECRET)
    assert not verifies(signed(KEY | zone) | {ZONE_NAME: "z2"}, b"", SECRET)


def test_a_token_may_be_signed_or_not() -> None:
    """The Go client does not sign it."""
    token = {SECURITY_TOKEN: "temporary"}
    assert verifies(signed(KEY) | token, b"", SECRET)
    assert verifies(signed(KEY | token), b"", SECRET)
    assert not verifies(signed(KEY | token) | {SECURITY_TOKEN: "other"}, b"", SECRET)


def test_nothing_else_may_be_added_behind_the_signature() -> None:
    more = {ZONE_NAME: "z1", SECURITY_TOKEN: "temporary"}
    assert not verifies(signed(KEY) | more, b"", SECRET)  # no peer adds both
    assert verifies(signed(KEY | {SECURITY_TOKEN: "temporary"}) | more, b"", SECRET)  # Java with a zone
    assert not verifies(signed(KEY) | {"topic": "T"}, b"", SECRET)
    assert not verifies(signed(KEY) | {ONS_CHANNEL: "ALIYUN"}, b"", SECRET)


def test_names_are_ordered_by_utf_16_as_in_java() -> None:
    assert signed_text({"\uff5e": "2", "\U0001f600": "1", "a": "0"}) == b"012"


def test_surrogates_are_written_as_java_writes_them() -> None:
    assert signed_text({"a": "\ud83d", "b": "\ude00"}) == "😀".encode()
    assert signed_text({"a": "\ude00", "b": "\ud83d"}) == b"??"


@given(FIELDS, st.binary(max_size=20), ODD)
def test_what_was_signed_is_verified(fields: dict[str, str], body: bytes, secret: str) -> None:
    assert verifies(signed(fields, body, secret), body, secret)


@given(FIELDS, ODD, st.binary(max_size=20), ODD)
def test_no_text_raises(fields: dict[str, str], given_signature: str, body: bytes, secret: str) -> None:
    more = {ZONE_NAME: "z", SECURITY_TOKEN: "t", SIGNATURE: given_signature}
    assert not verifies(fields | more, body, secret)


@given(FIELDS, st.binary(max_size=20))
def test_a_client_signs_what_a_server_verifies(fields: dict[str, str], body: bytes) -> None:
    ext = AclCredentials("RocketMQ", SECRET, "token")("127.0.0.1:9876", Request(105, fields, body)).ext
    assert ext is not None
    assert verifies(ext, body, SECRET)
