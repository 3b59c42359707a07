"""What is fuzzed: for each decoder of strangers' bytes, and for what judges callers, what must hold whatever the bytes
are.

A target takes any bytes and returns; it raises where something does not hold. Only the errors that a decoder documents
are swallowed. What was read is written and read again, and from then on nothing may change any more."""

import zlib
from collections.abc import Callable
from typing import Final
from unittest.mock import patch

from rocketmq_remoting import registration_json
from rocketmq_remoting.body_signature import split_signature
from rocketmq_remoting.command import Command, encode
from rocketmq_remoting.data_version import DataVersion, decode_data_version
from rocketmq_remoting.errors import BodyError, FrameError
from rocketmq_remoting.frame import FrameReader
from rocketmq_remoting.header_binary import decode_binary_command, encode_binary_header
from rocketmq_remoting.header_json import decode_json_command, encode_json_header
from rocketmq_remoting.json_decoding import decode_strict_json
from rocketmq_remoting.json_encoding import Dialect
from rocketmq_remoting.kv_table import decode_kv_table, encode_kv_table
from rocketmq_remoting.properties import PropertiesError, parse_properties, write_properties
from rocketmq_remoting.register_broker_body import RegisterBrokerBody
from rocketmq_remoting.registration import decode_register_broker_body, encode_register_broker_body
from rocketmq_remoting.route import decode_route, encode_route
from rocketmq_remoting.tolerant_json import normalise
from tests.fuzz.access_files import access_files, watched_access_file
from tests.fuzz.access_rules import access_rules, name_patterns, networks
from tests.fuzz.certificate_names import certificate_names
from tests.fuzz.http_callers import http_callers
from tests.fuzz.introduced_connections import introduced_connections
from tests.fuzz.reading import read
from tests.fuzz.signed_requests import signed_requests
from tests.worker.cache.both_ways import BothWays
from worker.cache.cached_requests import CachedRequests
from worker.transport.proxy_protocol import NO_HEADER, ProxyError, ProxyHeader, read_proxy_header

Target = Callable[[bytes], None]
OLD, V4, V5 = 36, 373, 513
KEY_MAX = 32767
BOTH_WAYS: Final = BothWays()


def frames(data: bytes) -> None:
    """However a stream is cut, the same commands come out, and after an error nothing."""
    if not data:
        return
    size, stream = data[0] + 1, data[1:]
    assert _commands([stream]) == _commands([stream[at : at + size] for at in range(0, len(stream), size)])


def _commands(reads: list[bytes]) -> tuple[list[Command], str]:
    reader = FrameReader()
    commands = []
    for i, part in enumerate(reads):
        reader.feed(part)
        try:
            while (command := reader.next_command()) is not None:
                commands.append(command)
        except FrameError as error:
            for more in reads[i + 1 :]:
                reader.feed(more)
            assert _refused(reader), "it went on"
            return commands, error.reason
    return commands, ""


def _refused(reader: FrameReader) -> bool:
    try:
        reader.next_command()
    except FrameError:
        return True
    return False


def cached_requests(data: bytes) -> None:
    """The compiled search for cached requests finds what Python's own does, and reads nothing beyond the bytes."""
    from worker.transport import epoll

    if data:
        most, stream = data[0], data[1:]
        assert BOTH_WAYS.found(epoll.answers, stream, most) == BOTH_WAYS.found(
            CachedRequests.answers, stream, most
        )


def json_header(data: bytes) -> None:
    """A header written from what was read is read to the same, but for a language without a name."""
    command = read(lambda: decode_json_command(data, b""), FrameError)
    if command is not None:
        again = decode_json_command(encode_json_header(command), b"")
        assert decode_json_command(encode_json_header(again), b"") == again
        assert (again.code, again.opaque, again.ext) == (command.code, command.opaque, command.ext)


def binary_header(data: bytes) -> None:
    command = read(lambda: decode_binary_command(data, b""), FrameError)
    if command is not None and all(len(key.encode()) <= KEY_MAX for key in command.ext or ()):
        again = decode_binary_command(encode_binary_header(command), b"")
        assert again == command
        assert len(encode(again)) == 8 + len(encode_binary_header(again))


def json_registration(data: bytes) -> None:
    """A body decoded whole and one decoded in blocks are equal."""
    whole = _registration(data, V5)
    with patch.object(registration_json, "BLOCK_BYTES", 0):
        cut = _registration(data, V5)
    if whole is None:
        assert cut is None
    elif whole.topics or whole.mapping_infos:
        assert cut == whole


def old_registration(data: bytes) -> None:
    _registration(data, OLD)


def compressed_registration(data: bytes) -> None:
    _registration(data, V5, compressed=True)


def inflated_registration(data: bytes) -> None:
    """What comes inside of a sound stream; without the static topics too."""
    stream = zlib.compress(data, 1)
    _registration(stream, V5, compressed=True)
    _registration(stream, V4, compressed=True)


def _registration(data: bytes, version: int, *, compressed: bool = False) -> RegisterBrokerBody | None:
    body = read(
        lambda: decode_register_broker_body(data, version=version, compressed=compressed, now_ms=0), BodyError
    )
    if body is not None:
        written = encode_register_broker_body(body, version=V5, compressed=False)
        again = decode_register_broker_body(written, version=V5, compressed=False, now_ms=0)
        assert again.topics == body.topics
        assert again.data_version == body.data_version
        assert again.filter_servers == body.filter_servers
        assert again.mapping_infos == body.mapping_infos
    return body


def data_version(data: bytes) -> None:
    version = read(lambda: decode_data_version(data), BodyError)
    if version is not None:
        assert decode_data_version(version.encode()) == version
        assert DataVersion.from_text(version.text()) == version


def kv_table(data: bytes) -> None:
    table = read(lambda: decode_kv_table(data), BodyError)
    if table is not None:
        assert decode_kv_table(encode_kv_table(table)) == table


def route(data: bytes) -> None:
    """The body of 217, and what is stored of it."""
    route = read(lambda: decode_route(data), BodyError)
    if route is not None:
        for dialect in Dialect:
            again = decode_route(encode_route(route, dialect))
            assert decode_route(encode_route(again, dialect)) == again


def properties(data: bytes) -> None:
    try:
        found = parse_properties(data.decode("utf-8", "replace"))
    except PropertiesError:  # its text shows the escape as it came, and is sent to no peer
        return
    assert parse_properties(write_properties(found)) == found


def proxy_header(data: bytes) -> None:
    """What is known of a connection's first bytes stays true when more of them come."""
    header = _proxy(data)
    for length in range(min(len(data), 64)):
        early = _proxy(data[:length])
        assert early is None or early == header
    if isinstance(header, ProxyHeader) and header is not NO_HEADER:
        assert 0 < header.length <= len(data)


def _proxy(data: bytes) -> ProxyHeader | str | None:
    try:
        return read_proxy_header(data)
    except ProxyError:
        return "refused"


def signature(data: bytes) -> None:
    """The parts are the body's own: the version, what is before it, and what is after it and the mapping version."""
    split = split_signature(data)
    if split is not None:
        version, head, rest = split
        assert data.startswith(head + version)
        assert data.endswith(rest)
        read(lambda: decode_data_version(version), BodyError)


def tolerant_json(data: bytes) -> None:
    """What has become strict stays as it is."""
    strict = read(lambda: normalise(data), BodyError)
    if strict is not None and read(lambda: decode_strict_json(strict, object), BodyError) is not None:
        assert normalise(strict) == strict


TARGETS: Final[dict[str, Target]] = {
    target.__name__: target
    for target in (
        frames,
        cached_requests,
        json_header,
        binary_header,
        json_registration,
        old_registration,
        compressed_registration,
        inflated_registration,
        data_version,
        kv_table,
        route,
        properties,
        proxy_header,
        signature,
        tolerant_json,
        signed_requests,
        http_callers,
        access_files,
        watched_access_file,
        access_rules,
        networks,
        name_patterns,
        certificate_names,
        introduced_connections,
    )
}
