"""Encoding and decoding of registrations (REGISTER_BROKER, 103) in all their layouts.

The layout is chosen here; `registration_json` and `registration_zlib` encode and decode it."""

from zlib_ng.zlib_ng import crc32

from rocketmq_remoting.cooperative import Cooperative, run_to_completion
from rocketmq_remoting.data_version import DataVersion
from rocketmq_remoting.register_broker_body import RegisterBrokerBody
from rocketmq_remoting.registration_json import (
    decode_json_body_cooperatively,
    decode_usual_json_body,
    decode_wrapper_cooperatively,
    encode_json_body,
    encode_wrapper,
)
from rocketmq_remoting.registration_zlib import decode_compressed_body_cooperatively, encode_compressed_body
from rocketmq_remoting.table_blocks import TableBlocks
from rocketmq_remoting.version import V3_0_11, V5_0_0

__all__ = [
    "RegisterBrokerBody",
    "as_body_crc32",
    "body_crc32",
    "decode_register_broker_body",
    "decode_register_broker_body_cooperatively",
    "decode_usual_body",
    "encode_register_broker_body",
]

_ZLIB_START = 0x78


def decode_register_broker_body(
    body: bytes, *, version: int, compressed: bool, now_ms: int
) -> RegisterBrokerBody:
    """Return the body, decoded without a pause; see decode_register_broker_body_cooperatively."""
    return run_to_completion(
        decode_register_broker_body_cooperatively(body, version=version, compressed=compressed, now_ms=now_ms)
    )


def decode_register_broker_body_cooperatively(
    body: bytes, *, version: int, compressed: bool, now_ms: int, blocks: TableBlocks | None = None
) -> Cooperative[RegisterBrokerBody]:
    """Return the body of a registration whose header says `version` and `compressed`.

    Below version 37 (V3_0_11) the body is the topic wrapper alone, never compressed, without filter servers.
    Brokers of 5.x compress the body and send compressed=false, so a body that starts like zlib is inflated in any
    case. A missing timestamp is `now_ms`; an empty body is a broker without topics. A null wrapper or topic table
    is an empty one, so that such a broker is stored and expires like any other.
    Topics in unchanged `blocks` of a big JSON body are left out.
    Raises BodyError; unlike Java, also for a body with more than REST_MAX_LENGTH bytes besides its topics."""
    whole = version >= V3_0_11
    if not body:
        return RegisterBrokerBody(DataVersion(), filter_servers=() if whole else None)
    if not whole:
        return (yield from decode_wrapper_cooperatively(body, now_ms))
    if compressed or body[0] == _ZLIB_START:
        return (
            yield from decode_compressed_body_cooperatively(body, now_ms, static_topics=version >= V5_0_0)
        )
    return (yield from decode_json_body_cooperatively(body, now_ms, blocks))


def decode_usual_body(body: bytes, *, version: int, compressed: bool) -> RegisterBrokerBody | None:
    """Return at once a short body as nearly all brokers send it; None for any other, which is decoded cooperatively."""
    is_json = version >= V3_0_11 and not compressed and body.startswith(b"{")
    return decode_usual_json_body(body) if is_json else None


def encode_register_broker_body(body: RegisterBrokerBody, *, version: int, compressed: bool) -> bytes:
    """Return the body as a Java broker of that version writes it."""
    if version < V3_0_11:
        return encode_wrapper(body)
    if compressed:
        return encode_compressed_body(body, static_topics=version >= V5_0_0)
    return encode_json_body(body, static_topics=version >= V5_0_0)


def body_crc32(body: bytes) -> int:
    """Return the value of bodyCrc32: the CRC-32 of the bytes as sent, without the sign bit."""
    return as_body_crc32(crc32(body))


def as_body_crc32(crc: int) -> int:
    """Return the value of bodyCrc32 for the CRC-32 of a body."""
    return crc & 0x7FFFFFFF
