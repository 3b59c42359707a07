"""Binary headers: their lengths, and what Java lets pass."""

import struct

import pytest

from rocketmq_remoting.command import Command, SerializeType, decode, encode
from rocketmq_remoting.errors import FrameError

ROCKETMQ = SerializeType.ROCKETMQ


def header(
    remark: bytes = b"",
    ext: bytes = b"",
    *,
    remark_length: int | None = None,
    ext_length: int | None = None,
    language: int = 0,
) -> bytes:
    fixed = struct.pack(">hbhii", 105, language, 373, 7, 0)
    remark_length = len(remark) if remark_length is None else remark_length
    ext_length = len(ext) if ext_length is None else ext_length
    return fixed + struct.pack(">i", remark_length) + remark + struct.pack(">i", ext_length) + ext


def field(key: bytes, value: bytes) -> bytes:
    return struct.pack(">h", len(key)) + key + struct.pack(">i", len(value)) + value


def read(data: bytes) -> Command:
    return decode(struct.pack(">I", 1 << 24 | len(data)) + data)


def command(**members: object) -> Command:
    return Command(105, 7, 0, 373, serialize_type=ROCKETMQ, **members)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(header(), command(), id="21 bytes"),
        pytest.param(header(language=99), command(language=99), id="unknown language"),
        pytest.param(header(b"why"), command(remark="why"), id="a remark"),
        pytest.param(
            header(ext=field(b"topic", "主题".encode())), command(ext={"topic": "主题"}), id="an ext field"
        ),
        pytest.param(header(ext=field(b"topic", b"")), command(ext={"topic": ""}), id="an empty value"),
        pytest.param(header(ext=field(b"", b"x")), command(ext={"": "x"}), id="an empty key"),
        pytest.param(
            header(ext=field(b"a", b"1") + field(b"b", b"2") + field(b"a", b"3")),
            command(ext={"a": "3", "b": "2"}),
            id="the last of equal keys",
        ),
        pytest.param(header(ext=field(b"a", b"\xff")), command(ext={"a": "\ufffd"}), id="no UTF-8"),
        pytest.param(header() + b"rest", command(), id="bytes left over"),
    ],
)
def test_a_binary_header_is_read(data: bytes, expected: Command) -> None:
    assert read(data) == expected


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(header()[:20], id="too short"),
        pytest.param(header(remark_length=1), id="remark over the end"),
        pytest.param(header(b"x" * 50, remark_length=51), id="remark over the ext length"),
        pytest.param(header(remark_length=-1), id="remark negative"),
        pytest.param(header(remark_length=-8), id="remark back to the flag"),
        pytest.param(header(remark_length=2**31 - 1), id="remark of 2 GiB"),
        pytest.param(header(ext_length=1), id="ext fields over the end"),
        pytest.param(header(ext_length=-1), id="ext fields negative"),
        pytest.param(header(ext=b"\x00"), id="half a key length"),
        pytest.param(header(ext=b"\x00\x05top"), id="key over the end"),
        pytest.param(header(ext=struct.pack(">h", -1) + bytes(8)), id="key negative"),
        pytest.param(header(ext=struct.pack(">h", -6) + bytes(8)), id="key back to the ext length"),
        pytest.param(header(ext=b"\x00\x01a\x00\x00"), id="half a value length"),
        pytest.param(header(ext=b"\x00\x01a" + struct.pack(">i", 1)), id="value over the end"),
        pytest.param(header(ext=b"\x00\x01a" + struct.pack(">i", -7) + bytes(9)), id="value negative"),
        pytest.param(header(ext=field(b"a", b"bc"), ext_length=8) + b"x", id="value over the ext fields"),
    ],
)
def test_a_binary_header_whose_lengths_do_not_fit_is_refused(data: bytes) -> None:
    with pytest.raises(FrameError) as refused:
        read(data)
    assert refused.value.reason == "header"


def test_only_what_fits_is_written() -> None:
    """A code takes 16 bits, a version too; an opaque that JSON left out is 0."""
    written = encode(Command(65536 + 105, None, 0, 373, serialize_type=ROCKETMQ))
    assert decode(written[4:]) == Command(105, 0, 0, 373, serialize_type=ROCKETMQ)


def test_an_empty_remark_and_no_remark_are_the_same() -> None:
    assert encode(command(remark="")) == encode(command())
    assert len(encode(command())) == 8 + 21


@pytest.mark.parametrize("key", [b"", b"a"])
def test_very_many_ext_fields_are_refused(key: bytes) -> None:
    assert read(header(ext=field(key, b"v") * 10_000)).ext == {key.decode(): "v"}
    with pytest.raises(FrameError, match="more than 10000 ext fields"):
        read(header(ext=field(key, b"v") * 10_001))
