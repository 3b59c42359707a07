"""Frame headers as JSON (serialize type 0).

Decoded strictly first, which fits every RocketMQ peer, else leniently, as Java's JSON library does
(that of 5.5.0 where releases differ)."""

from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from rocketmq_remoting.errors import FrameError
from rocketmq_remoting.integers import Int32
from rocketmq_remoting.json_decoding import decode_json
from rocketmq_remoting.language import LanguageCode
from rocketmq_remoting.remoting_command import FIELDS_MOST, Command, SerializeType

_LOOSE_MAX_LENGTH: Final = 65536
"""Longer headers are not decoded leniently, which takes up to 0.5 µs a byte."""

_QUOTES_MOST: Final = 4 * FIELDS_MOST + 64
"""Quotes of the ext fields with their values, and of the rest."""

_JSON: Final = SerializeType.JSON
_LANGUAGE_CODES: Final[dict[str, int]] = {language.name: int(language) for language in LanguageCode}
_LANGUAGE_NAMES: Final[dict[int, str]] = {int(language): language.name for language in LanguageCode}


class _StrictHeader(msgspec.Struct, gc=False):
    code: Int32 = 0
    language: str = "JAVA"
    version: Int32 = 0
    opaque: Int32 | UnsetType = UNSET
    flag: Int32 = 0
    remark: str | None = None
    ext: dict[str, str] | None = msgspec.field(default=None, name="extFields")


class _LooseHeader(msgspec.Struct):
    """Numbers may be text or have a fraction, values of ext fields may be of any type."""

    code: int | float | None = 0
    language: Any = None
    version: int | float | None = 0
    opaque: int | float | UnsetType | None = UNSET
    flag: int | float | None = 0
    remark: Raw = Raw(b"null")
    ext: dict[str, Raw] | None = msgspec.field(default=None, name="extFields")


class _WrittenHeader(msgspec.Struct, gc=False, kw_only=True, omit_defaults=True):
    """The members in the order Java writes them."""

    code: int
    ext: dict[str, str] | None = msgspec.field(default=None, name="extFields")
    flag: int
    language: str | None = None
    opaque: int | None = None
    remark: str | None = None
    serialize_type: str = msgspec.field(name="serializeTypeCurrentRPC")
    version: int


_decode_strict: Final = msgspec.json.Decoder(_StrictHeader).decode
_encode: Final = msgspec.json.Encoder().encode


def encode_json_header(command: Command) -> bytes:
    """Return the header as Java writes it: members alphabetical, no blanks, without members that are null."""
    return _encode(
        _WrittenHeader(
            code=command.code,
            ext=command.ext,
            flag=command.flag,
            language=_LANGUAGE_NAMES.get(command.language),
            opaque=command.opaque,
            remark=command.remark,
            serialize_type="JSON",
            version=command.version,
        )
    )


def decode_json_command(header: bytes, body: bytes) -> Command:
    """Return the command of a header and a body; FrameError("header") if Java could not decode the header either, or
    for too many ext fields."""
    if len(header) > _QUOTES_MOST and _quotes(header) > _QUOTES_MOST:
        raise FrameError("header", f"more than {FIELDS_MOST} ext fields")
    try:
        read = _decode_strict(header)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _decode_loosely(header, body)
    opaque = read.opaque
    return Command(
        read.code,
        None if opaque is UNSET else opaque,
        read.flag,
        read.version,
        _LANGUAGE_CODES.get(read.language, 0),
        read.remark or None,
        read.ext,
        body,
        _JSON,
    )


def _quotes(header: bytes) -> int:
    """Return how many quotes begin or end a text: decoding takes most of its time for texts, not for their bytes."""
    if b"\\" not in header:
        return header.count(b'"')
    unescaped = header.replace(b"\\\\", b"")
    return unescaped.count(b'"') - unescaped.count(b'\\"')


def _decode_loosely(header: bytes, body: bytes) -> Command:
    if len(header) > _LOOSE_MAX_LENGTH:
        raise FrameError("header", f"unreadable JSON header of {len(header)} bytes")
    try:
        read = decode_json(header, _LooseHeader)
        return Command(
            _int32(read.code),
            None if isinstance(read.opaque, UnsetType) else _int32(read.opaque),
            _int32(read.flag),
            _int32(read.version),
            _language(read.language),
            _text(read.remark) or None,
            None if read.ext is None else {k: t for k, v in read.ext.items() if (t := _text(v)) is not None},
            body,
            _JSON,
        )
    except (OverflowError, ValueError) as error:
        raise FrameError("header", f"unreadable JSON header: {error}") from error


def _int32(number: int | float | None) -> int:
    """Return the number without its fraction; null is 0."""
    whole = int(number or 0)
    if not -(2**31) <= whole < 2**31:
        raise OverflowError(f"{number} is no 32-bit integer")
    return whole


def _language(value: object) -> int:
    """Return the code of a name or a number; an unknown name is JAVA."""
    if isinstance(value, int):
        return value
    return _LANGUAGE_CODES.get(value, 0) if isinstance(value, str) else 0


def _text(value: Raw) -> str | None:
    """Return JSON as Java converts it to text: a string's content, None for null, other values as compact JSON."""
    written = bytes(value)
    if written.startswith(b'"'):
        return decode_json(written, str)
    text = msgspec.json.format(written, indent=-1).decode()
    return None if text == "null" else text
