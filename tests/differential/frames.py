"""Frames that are no good requests."""

import json
import struct

from rocketmq_remoting.codes import RequestCode


def _frame(header: bytes, body: bytes = b"", kind: int = 0) -> bytes:
    return struct.pack(">iI", 4 + len(header) + len(body), kind << 24 | len(header)) + header + body


def _json(**members: object) -> bytes:
    base = {
        "code": int(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER),
        "flag": 0,
        "opaque": 77,
        "version": 373,
    }
    return json.dumps(base | members).encode()


def _binary(remark_length: int = 0, ext: bytes = b"", ext_length: int | None = None, kind: int = 0) -> bytes:
    fixed = struct.pack(">hBhii", int(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER), kind, 373, 77, 0)
    length = len(ext) if ext_length is None else ext_length
    return fixed + struct.pack(">i", remark_length) + struct.pack(">i", length) + ext


FRAMES: dict[str, bytes] = {
    "nothing": b"",
    "length -1": struct.pack(">i", -1),
    "length 0": struct.pack(">i", 0),
    "length 3": struct.pack(">i", 3) + b"abc",
    "length beyond 16 MiB": struct.pack(">i", 16777213),
    "header longer than the frame": struct.pack(">iI", 10, 7) + b"{}{}{}",
    "header of no length": struct.pack(">iI", 4, 0),
    "serialize type 2": _frame(_json(), kind=2),
    "cut JSON": _frame(b'{"code":105'),
    "no JSON": _frame(b"hello"),
    "an array": _frame(b"[]"),
    "an empty object": _frame(b"{}"),
    "HTTP": b"GET / HTTP/1.1\r\n\r\n",
    "a response": _frame(_json(flag=1)),
    "a oneway response": _frame(_json(flag=3)),
    "flag 4": _frame(_json(flag=4)),
    "opaque beyond 32 bits": _frame(_json(opaque=2147483648)),
    "opaque below 0": _frame(_json(opaque=-5)),
    "opaque as text": _frame(_json(opaque="78")),
    "code as text": _frame(_json(code="206")),
    "code as a word": _frame(_json(code="x")),
    "code null": _frame(_json(code=None)),
    "version null": _frame(_json(version=None)),
    "language unknown": _frame(_json(language="PERL")),
    "language 99": _frame(_json(language=99)),
    "ext fields null": _frame(_json(extFields=None)),
    "ext fields an array": _frame(_json(extFields=[])),
    "ext fields text": _frame(_json(extFields="x")),
    "ext field a number": _frame(_json(code=105, extFields={"topic": 12})),
    "ext field true": _frame(_json(code=105, extFields={"topic": True})),
    "ext field null": _frame(_json(code=105, extFields={"topic": None})),
    "ext field an object": _frame(_json(code=105, extFields={"topic": {"a": 1}})),
    "ext field twice": _frame(b'{"code":105,"opaque":77,"extFields":{"topic":"a","topic":"b"}}'),
    "unknown members": _frame(_json(what={"deep": [1, 2]}, serializeTypeCurrentRPC="JSON")),
    "line feed in the header": _frame(_json() + b"\n"),
    "garbage in the header": _frame(_json() + b"x"),
    "binary": _frame(_binary(), kind=1),
    "binary, language 99": _frame(_binary(kind=99), kind=1),
    "binary, cut": _frame(_binary()[:-3], kind=1),
    "binary, remark too long": _frame(_binary(remark_length=1000), kind=1),
    "binary, remark length -1": _frame(_binary(remark_length=-1), kind=1),
    "binary, ext too long": _frame(_binary(ext_length=1000), kind=1),
    "binary, ext length -1": _frame(_binary(ext_length=-1), kind=1),
    "binary, ext cut": _frame(_binary(ext=b"\x00\x05topi"), kind=1),
    "binary, surplus": _frame(_binary() + b"more", kind=1),
}
