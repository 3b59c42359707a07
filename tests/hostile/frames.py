"""Frames as bytes, right and wrong."""

from struct import pack

from rocketmq_remoting.command import Command, SerializeType, encode

LONGEST = 16 << 20
"""Bytes of a whole frame, with its length."""
ASKED = (
    Command(105, 7, version=373, ext={"topic": "no-such-topic"}),
    Command(105, 7, version=373, ext={"topic": "no-such-topic"}, serialize_type=SerializeType.ROCKETMQ),
)
TLS_HELLO_START = bytes.fromhex("16030100f8010000f40303")


def json_frame(header: bytes, body: bytes = b"") -> bytes:
    return pack(">iI", 4 + len(header) + len(body), len(header)) + header + body


def frame_of(size: int) -> bytes:
    """A request of an unknown code whose frame has `size` bytes in all."""
    command = Command(99999, 7, version=373)
    return encode(Command(99999, 7, version=373, body=bytes(size - len(encode(command)))))
