"""Commands: flags, replies, and the round trip of both header forms."""

import pytest

from rocketmq_remoting.command import Command, SerializeType, decode, encode, encode_header

LONG = 16777215


@pytest.mark.conformance("FR-31")
@pytest.mark.parametrize(
    ("length", "kind", "word"),
    [
        pytest.param(261, SerializeType.JSON, "00000105", id="FR-31 JSON header of 261 bytes"),
        pytest.param(LONG, SerializeType.ROCKETMQ, "01ffffff", id="FR-31 binary header of 16777215 bytes"),
    ],
)
def test_the_header_word_holds_type_and_length(length: int, kind: SerializeType, word: str) -> None:
    bare = len(encode(Command(0, 0, remark="x", serialize_type=kind))) - 8 - 1
    frame = encode(Command(0, 0, remark="x" * (length - bare), serialize_type=kind))
    assert frame[4:8].hex() == word
    assert len(frame) == 8 + length


@pytest.mark.conformance("FR-32")
@pytest.mark.parametrize("body", [b"", b"\x00{body}\xff"], ids=["FR-32 no body", "FR-32 body"])
@pytest.mark.parametrize("ext", [None, {"a": "1", "b": "zwei"}], ids=["no ext", "ext"])
@pytest.mark.parametrize("remark", [None, "warum\n"], ids=["no remark", "remark"])
@pytest.mark.parametrize("kind", SerializeType, ids=lambda kind: kind.name)
def test_a_command_survives_the_round_trip(
    kind: SerializeType, remark: str | None, ext: dict[str, str] | None, body: bytes
) -> None:
    command = Command(103, -5, 2, 513, 9, remark, ext, body, kind)
    frame = encode(command)
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    assert decode(frame[4:]) == command
    assert decode(memoryview(frame)[4:]) == command
    assert frame == encode_header(command, len(body)) + body


@pytest.mark.parametrize(
    ("flag", "is_response", "is_oneway"),
    [
        pytest.param(0, False, False, id="request"),
        pytest.param(1, True, False, id="response"),
        pytest.param(2, False, True, id="oneway request"),
        pytest.param(3, True, True, id="both"),
        pytest.param(4, False, False, id="other bits mean nothing"),
    ],
)
def test_the_flag_tells_what_a_command_is(flag: int, is_response: bool, is_oneway: bool) -> None:
    command = Command(105, 1, flag)
    assert (command.is_response, command.is_oneway) == (is_response, is_oneway)


@pytest.mark.parametrize("kind", SerializeType, ids=lambda kind: kind.name)
@pytest.mark.parametrize("opaque", [0, -5, 2147483647, None])
def test_a_reply_keeps_opaque_and_encoding_and_nothing_else(kind: SerializeType, opaque: int | None) -> None:
    request = Command(105, opaque, 2, 373, 9, "remark", {"topic": "T"}, b"body", kind)
    assert request.reply(17) == Command(17, opaque, 1, 513, 0, None, None, b"", kind)
    assert request.reply(0, remark="r", ext={"a": "b"}, body=b"x") == Command(
        0, opaque, 1, 513, 0, "r", {"a": "b"}, b"x", kind
    )


def test_an_ext_field_is_got_by_name() -> None:
    assert Command(105, 1, ext={"topic": "T"}).get("topic") == "T"
    assert Command(105, 1, ext={"topic": "T"}).get("other") is None
    assert Command(105, 1).get("topic") is None
