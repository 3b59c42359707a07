"""RegisterBrokerBody: the topics and filter servers a broker registers (REGISTER_BROKER, 103).

Which layout a body has is decided here; `registration_json` and `registration_zlib` read and write them."""

from zlib_ng.zlib_ng import crc32

from remoting.data_version import DataVersion
from remoting.known_slices import Slices
from remoting.register_broker_body import RegisterBrokerBody
from remoting.registration_json import encode_json_body, encode_wrapper, reading_json_body, reading_wrapper
from remoting.registration_zlib import encode_compressed_body, reading_compressed_body
from remoting.steps import Steps, finished
from remoting.version import V3_0_11, V5_0_0

__all__ = [
    "RegisterBrokerBody",
    "body_crc32",
    "decode_register_broker_body",
    "encode_register_broker_body",
    "reading_register_broker_body",
]

_ZLIB_START = 0x78


def decode_register_broker_body(
    body: bytes, *, version: int, compressed: bool, now_ms: int
) -> RegisterBrokerBody:
    """As reading_register_broker_body, at once."""
    return finished(reading_register_broker_body(body, version=version, compressed=compressed, now_ms=now_ms))


def reading_register_broker_body(
    body: bytes, *, version: int, compressed: bool, now_ms: int, slices: Slices | None = None
) -> Steps[RegisterBrokerBody]:
    """Read the body of a registration whose header says `version` and `compressed`.

    Below version 37 (V3_0_11) the body is the topic wrapper alone, never compressed, and says nothing of
    filter servers. Brokers 5.x compress and say they did not, so a body that begins like zlib is inflated all
    the same. Where the body gives no timestamp it is `now_ms`; an empty body is a broker without topics. A
    null wrapper or topic table counts as empty, so that such a broker is stored and expires like any other.
    Of a big JSON body those topics are left out that stand in known `slices`.
    Raises BodyError, also for what Java would read: a body that is longer than any broker's in other places than its
    topics."""
    whole = version >= V3_0_11
    if not body:
        return RegisterBrokerBody(DataVersion(), filter_servers=() if whole else None)
    if not whole:
        return (yield from reading_wrapper(body, now_ms))
    if compressed or body[0] == _ZLIB_START:
        return (yield from reading_compressed_body(body, now_ms, static_topics=version >= V5_0_0))
    return (yield from reading_json_body(body, now_ms, slices))


def encode_register_broker_body(body: RegisterBrokerBody, *, version: int, compressed: bool) -> bytes:
    """The body as a Java broker of that version writes it."""
    if version < V3_0_11:
        return encode_wrapper(body)
    if compressed:
        return encode_compressed_body(body, static_topics=version >= V5_0_0)
    return encode_json_body(body, static_topics=version >= V5_0_0)


def body_crc32(body: bytes) -> int:
    """The checksum that bodyCrc32 holds: CRC-32 of the bytes as sent, without the sign bit."""
    return crc32(body) & 0x7FFFFFFF
