"""Frames and headers (docs/conformance.md, FR)."""

import struct

import pytest

from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.command import Command, SerializeType, encode
from rocketmq_remoting.version import CURRENT
from testbed.connection import Connection
from testbed.scene import Scene

UNKNOWN_REMARK = "No topic route info in name server for the topic: {}\n"
E1 = bytes.fromhex(
    "00000087000000837b22636f6465223a3130352c226578744669656c6473223a7b22746f706963223a22546f706963546573"
    "74227d2c22666c6167223a302c226c616e6775616765223a224a415641222c226f7061717565223a312c2273657269616c69"
    "7a655479706543757272656e74525043223a224a534f4e222c2276657273696f6e223a3337337d"
)
E2 = bytes.fromhex(
    "0000002d010000290069000175000000010000000000000000000000140005746f70696300000009546f70696354657374"
)


def json_frame(header: bytes, body: bytes = b"") -> bytes:
    return struct.pack(">iI", 4 + len(header) + len(body), len(header)) + header + body


def binary_frame(header: bytes) -> bytes:
    return struct.pack(">iI", 4 + len(header), 1 << 24 | len(header)) + header


def is_unknown_topic_test(answer: Command) -> bool:
    """Whether this is the answer to E1 or E2 while no broker has TopicTest."""
    assert answer.remark is not None
    return (
        (answer.code, answer.opaque, answer.flag) == (17, 1, 1)
        and answer.remark.startswith(UNKNOWN_REMARK.format("TopicTest"))
        and not answer.body
    )


@pytest.mark.conformance("FR-01", "FR-02")
@pytest.mark.parametrize("frame", [pytest.param(E1, id="JSON header"), pytest.param(E2, id="binary header")])
def test_a_request_in_one_write_is_answered_by_one_frame(ns: Scene, frame: bytes) -> None:
    ns.k1.send(frame)
    assert is_unknown_topic_test(ns.k1.receive())
    assert ns.k1.silent()


@pytest.mark.conformance("FR-01", "FR-29")
def test_the_bytes_of_a_json_answer(ns: Scene) -> None:
    ns.f1()
    raw = raw_answer(ns.k1, Command(105, 1, version=373, ext={"topic": "TA"}))
    length, header_length = struct.unpack_from(">iI", raw)
    header, body = raw[8 : 8 + header_length], raw[8 + header_length :]
    assert length == 4 + len(header) + len(body)
    assert header == (
        b'{"code":0,"flag":1,"language":"JAVA","opaque":1,"serializeTypeCurrentRPC":"JSON","version":%d}'
        % CURRENT
    )


@pytest.mark.conformance("FR-29", "FR-30")
def test_the_bytes_of_a_binary_answer(ns: Scene) -> None:
    ns.f1()
    request = Command(105, 1, version=373, ext={"topic": "TA"}, serialize_type=SerializeType.ROCKETMQ)
    raw = raw_answer(ns.k1, request)
    length, word = struct.unpack_from(">iI", raw)
    assert word == 1 << 24 | 21
    assert length == len(raw) - 4
    assert raw[8:29] == struct.pack(">hbhiiii", 0, 0, CURRENT, 1, 1, 0, 0)


def raw_answer(over: Connection, request: Command) -> bytes:
    """The one frame that answers, as it came."""
    over.send_command(request)
    return over.receive_raw()


@pytest.mark.conformance("FR-03")
def test_a_request_sent_byte_by_byte(ns: Scene) -> None:
    for at in range(len(E1)):
        ns.k1.send(E1[at : at + 1])
    assert is_unknown_topic_test(ns.k1.receive())


@pytest.mark.conformance("FR-04")
def test_three_requests_in_one_write(ns: Scene) -> None:
    ns.k1.send(b"".join(encode(Command(206, opaque, version=373)) for opaque in (7, 8, 9)))
    assert {ns.k1.receive().opaque for _ in range(3)} == {7, 8, 9}
    assert ns.k1.silent()


@pytest.mark.parametrize(
    ("header", "code"),
    [
        pytest.param(
            b'{"version":373,"opaque":5,"x":{"y":[1]},"flag":0,"extFields":{"topic":"TA"},"code":105,'
            b'"serializeTypeCurrentRPC":"JSON","language":"JAVA"}',
            17,
            id="unknown members in another order",
            marks=pytest.mark.conformance("FR-05"),
        ),
        pytest.param(
            b'{"code":206,"flag":0,"language":"CPP","opaque":5,"version":333}\n',
            0,
            id="line feed at the end",
            marks=pytest.mark.conformance("FR-06"),
        ),
        pytest.param(
            b'{"code":206,"flag":0,"language":"JAVA","opaque":5,"version":373}',
            0,
            id="no extFields",
            marks=pytest.mark.conformance("FR-07"),
        ),
        pytest.param(
            b'{"code":206,"flag":0,"language":"PERL","opaque":5,"version":373}',
            0,
            id="unknown language",
            marks=pytest.mark.conformance("FR-09"),
        ),
        pytest.param(
            b'{"code":206,"flag":0,"language":99,"opaque":5,"version":373}',
            0,
            id="unknown language number",
            marks=pytest.mark.conformance("FR-09"),
        ),
    ],
)
def test_what_json_headers_may_look_like(ns: Scene, header: bytes, code: int) -> None:
    ns.k1.send(json_frame(header))
    answer = ns.k1.receive()
    assert (answer.code, answer.opaque) == (code, 5)


@pytest.mark.conformance("FR-08")
def test_an_ext_field_that_is_a_number_is_read_as_text(ns: Scene) -> None:
    ns.k1.send(json_frame(b'{"code":105,"extFields":{"topic":12},"flag":0,"opaque":5,"version":373}'))
    answer = ns.k1.receive()
    assert answer.code == 17
    assert (answer.remark or "").startswith(UNKNOWN_REMARK.format("12"))


@pytest.mark.conformance("FR-10")
def test_an_unknown_language_byte(ns: Scene) -> None:
    ns.k1.send(binary_frame(struct.pack(">hbhiiii", 206, 99, 373, 5, 0, 0, 0)))
    answer = ns.k1.receive()
    assert (answer.code, answer.opaque) == (0, 5)


@pytest.mark.conformance("FR-11")
@pytest.mark.parametrize("serialize_type", SerializeType)
@pytest.mark.parametrize("opaque", [-5, 2147483647])
def test_opaque_is_echoed(ns: Scene, opaque: int, serialize_type: SerializeType) -> None:
    ns.k1.send_command(Command(206, opaque, version=373, serialize_type=serialize_type))
    assert ns.k1.receive().opaque == opaque


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(
            binary_frame(struct.pack(">hbhiiii", 206, 0, 373, 5, 0, 1000, 0)),
            id="remark longer than the rest",
            marks=pytest.mark.conformance("FR-12"),
        ),
        pytest.param(
            struct.pack(">iI", 16777213, 20), id="a frame over 16 MiB", marks=pytest.mark.conformance("FR-13")
        ),
        *(
            pytest.param(
                struct.pack(">i", length) + bytes(12),
                id=f"length {length}",
                marks=pytest.mark.conformance("FR-15"),
            )
            for length in (-1, 0, 3)
        ),
        pytest.param(
            struct.pack(">iI", 12, 9) + b'{"code":1}'[:8],
            id="header longer than the frame",
            marks=pytest.mark.conformance("FR-16"),
        ),
        pytest.param(
            struct.pack(">iI", 12, 2 << 24 | 8) + b"{}      ",
            id="serialize type 2",
            marks=pytest.mark.conformance("FR-17"),
        ),
        pytest.param(json_frame(b'{"code":105'), id="truncated JSON", marks=pytest.mark.conformance("FR-18")),
        pytest.param(
            json_frame(b'{"code":206,"flag":0,"opaque":2147483648,"version":373}'),
            id="opaque beyond int32",
            marks=pytest.mark.conformance("FR-19"),
        ),
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", id="HTTP", marks=pytest.mark.conformance("FR-20")),
    ],
)
def test_what_is_no_frame_ends_the_connection_without_an_answer(ns: Scene, sent: bytes) -> None:
    ns.k1.send(sent)
    assert ns.k1.closed()
    assert ns.k2.usable()


@pytest.mark.conformance("FR-14")
def test_the_biggest_frame(ns: Scene) -> None:
    header = b'{"code":206,"flag":0,"opaque":5,"version":373}'
    ns.k1.send(json_frame(header, bytes(16777212 - 4 - len(header))))
    answer = ns.k1.receive()
    assert (answer.code, answer.opaque) == (0, 5)


@pytest.mark.conformance("FR-21")
def test_a_response_is_never_answered(ns: Scene) -> None:
    ns.k1.send_command(Command(0, 4711, flag=1, version=373))
    assert ns.k1.silent()
    assert ns.k1.usable()


@pytest.mark.conformance("FR-22", "FR-23")
@pytest.mark.parametrize(
    ("code", "ext"),
    [
        pytest.param(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, {}, id="that would succeed"),
        pytest.param(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "nope"}, id="that would fail"),
    ],
)
def test_a_oneway_request_is_never_answered(ns: Scene, code: RequestCode, ext: dict[str, str]) -> None:
    ns.k1.send_oneway(code, ext)
    assert ns.k1.usable()
    assert ns.k1.silent()


@pytest.mark.conformance("FR-24")
def test_an_unknown_request_code(ns: Scene) -> None:
    answer = ns.k1.ask(99999)
    assert (answer.code, answer.remark) == (3, " request type 99999 not supported")


@pytest.mark.conformance("FR-26", "FR-27")
@pytest.mark.parametrize("serialize_type", SerializeType)
@pytest.mark.parametrize("code", [pytest.param(206, id="success"), pytest.param(4711, id="error")])
def test_an_answer_is_encoded_as_its_request(ns: Scene, code: int, serialize_type: SerializeType) -> None:
    assert ns.k1.ask(code, serialize_type=serialize_type).serialize_type is serialize_type


@pytest.mark.conformance("FR-28")
@pytest.mark.parametrize("serialize_type", SerializeType)
def test_an_answer_has_the_servers_version_and_language(ns: Scene, serialize_type: SerializeType) -> None:
    ns.k1.send_command(Command(206, 5, version=37, language=5, serialize_type=serialize_type))
    answer = ns.k1.receive()
    assert (answer.version, answer.language) == (CURRENT, 0)
