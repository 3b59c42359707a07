"""JSON headers: the liberties peers take, and the text we write."""

import json
import time

import pytest

from rocketmq_remoting.command import Command, decode, encode, encode_header
from rocketmq_remoting.errors import FrameError
from rocketmq_remoting.header_json import decode_json_command


def frame(header: bytes, body: bytes = b"") -> bytes:
    return len(header).to_bytes(4, "big") + header + body


def read(header: bytes) -> Command:
    return decode(frame(header))


@pytest.mark.parametrize(
    ("header", "command"),
    [
        pytest.param(
            b'{"opaque":3,"version":373,"flag":2,"code":105}', Command(105, 3, 2, 373), id="any order"
        ),
        pytest.param(b' { "code" : 105 ,\t"opaque":3\r\n}', Command(105, 3), id="blanks between tokens"),
        pytest.param(b'{"code":105,"opaque":3}\n', Command(105, 3), id="line feed at the end"),
        pytest.param(
            b'{"code":105,"opaque":3,"serializeTypeCurrentRPC":"JSON","x":[{"y":null}]}',
            Command(105, 3),
            id="unknown members",
        ),
        pytest.param(b'{"code":105,"opaque":3,"extFields":null}', Command(105, 3), id="ext fields null"),
        pytest.param(
            b'{"code":105,"opaque":3,"extFields":{}}', Command(105, 3, ext={}), id="ext fields empty"
        ),
        pytest.param(b'{"code":105,"opaque":3,"remark":null}', Command(105, 3), id="remark null"),
        pytest.param(b'{"code":105,"opaque":3,"remark":""}', Command(105, 3), id="remark empty"),
        pytest.param(
            b'{"code":105,"opaque":3,"remark":12}', Command(105, 3, remark="12"), id="remark a number"
        ),
        pytest.param(
            b'{"code":105,"opaque":3,"language":"GO"}', Command(105, 3, language=9), id="language by name"
        ),
        pytest.param(b'{"code":105,"opaque":3,"language":"PERL"}', Command(105, 3), id="language unknown"),
        pytest.param(
            b'{"code":105,"opaque":3,"language":99}', Command(105, 3, language=99), id="language a number"
        ),
        pytest.param(b'{"code":105,"opaque":3,"language":null}', Command(105, 3), id="language null"),
        pytest.param(
            b'{"code":103,"opaque":3,"extFields":{"brokerId":0,"compressed":true,"x":1.50,"y":null,"z":"t"}}',
            Command(103, 3, ext={"brokerId": "0", "compressed": "true", "x": "1.50", "z": "t"}),
            id="ext values that are no text",
        ),
        pytest.param(
            b'{"code":103,"opaque":3,"extFields":{"x":{"a": [1, 2]}}}',
            Command(103, 3, ext={"x": '{"a":[1,2]}'}),
            id="ext value an object",
        ),
        pytest.param(b'{"code":"105","opaque":3}', Command(105, 3), id="code as text"),
        pytest.param(b'{"opaque":3}', Command(0, 3), id="code missing"),
        pytest.param(b'{"code":105}', Command(105, None), id="opaque missing"),
        pytest.param(b'{"code":105,"opaque":null}', Command(105, 0), id="opaque null"),
        pytest.param(b'{"code":105,"opaque":"7"}', Command(105, 7), id="opaque as text"),
        pytest.param(b'{"code":105,"opaque":7.5}', Command(105, 7), id="opaque with a fraction"),
        pytest.param(b'{"code":105,"opaque":-5}', Command(105, -5), id="opaque negative"),
        pytest.param(b'{"code":105,"opaque":2147483647}', Command(105, 2147483647), id="opaque greatest"),
        pytest.param(b'{"code":105,"opaque":-2147483648}', Command(105, -2147483648), id="opaque least"),
        pytest.param(b'{"code":105,"op_aque":3,"Opaque":4}', Command(105, None), id="names spelt otherwise"),
        pytest.param(b"{'code':105,'opaque':3}", Command(105, 3), id="single quotes"),
        pytest.param(b'{"code":105,"opaque":3,}', Command(105, 3), id="comma at the end"),
        pytest.param(b'/*a*/{"code":105,//b\n"opaque":3}', Command(105, 3), id="comments"),
        pytest.param(b"{code:105,opaque:3}", Command(105, 3), id="keys without quotes"),
        pytest.param(b'\xef\xbb\xbf{"code":105,"opaque":3}', Command(105, 3), id="byte order mark"),
        pytest.param(b"{}", Command(0, None), id="nothing at all"),
        pytest.param(
            '{"code":105,"opaque":3,"extFields":{"topic":"主题\\u4e3b"}}'.encode(),
            Command(105, 3, ext={"topic": "主题主"}),
            id="text beyond ASCII",
        ),
    ],
)
def test_a_header_is_read_as_java_reads_it(header: bytes, command: Command) -> None:
    assert read(header) == command


@pytest.mark.parametrize(
    "header",
    [
        pytest.param(b'{"code":105', id="cut off"),
        pytest.param(b'{"code":105,"opaque":3} x', id="text behind it"),
        pytest.param(b'{"code":105,"opaque":3}{}', id="another object behind it"),
        pytest.param(b"null", id="null"),
        pytest.param(b"[]", id="an array"),
        pytest.param(b"105", id="a number"),
        pytest.param(b"   ", id="blanks only"),
        pytest.param(b"\x00\x01\x02", id="no JSON at all"),
        pytest.param(b'{"code":0x69,"opaque":3}', id="hexadecimal number"),
        pytest.param(b'{"code":105,"opaque":2147483648}', id="opaque over 32 bits"),
        pytest.param(b'{"code":105,"opaque":-2147483649}', id="opaque under 32 bits"),
        pytest.param(b'{"code":105,"opaque":"99999999999"}', id="opaque as text over 32 bits"),
        pytest.param(b'{"code":105,"opaque":"x"}', id="opaque no number"),
        pytest.param(b'{"code":105,"version":2147483648}', id="version over 32 bits"),
        pytest.param(b'{"code":105,"opaque":1e300}', id="opaque far over 32 bits"),
        pytest.param(b'{"code":105,"opaque":1e999}', id="opaque beyond any number"),
        pytest.param(b'{"code":"nan","opaque":3}', id="code not a number"),
        pytest.param(b'{"code":105,"version":"infinity"}', id="version without end"),
        pytest.param(b'{"code":105,"extFields":{"topic":"\xff"}}', id="no UTF-8 in text"),
        pytest.param(b'{"code":105,"extFields":{"topic":{"\xff":1}}}', id="no UTF-8 in an object"),
        pytest.param(b'{"code":105,"extFields":[]}', id="ext fields an array"),
        pytest.param(b'{"code":105,"x":' + b"[" * 10000 + b"]" * 10000 + b"}", id="nested 10,000 deep"),
        pytest.param(b"[" * 10000, id="10,000 brackets"),
        pytest.param(b"{a:" * 10000, id="10,000 braces"),
    ],
)
def test_a_header_java_cannot_read_is_refused(header: bytes) -> None:
    with pytest.raises(FrameError) as refused:
        read(header)
    assert refused.value.reason == "header"
    assert "\n" not in str(refused.value)


def header_of(fields: list[str]) -> bytes:
    return b'{"code":105,"opaque":3,"extFields":{%s}}' % ",".join(fields).encode()


@pytest.mark.parametrize("key", ["", "a", "\\\\", '\\"', '\\\\\\"'])
def test_very_many_ext_fields_are_refused(key: str) -> None:
    fields = [f'"{number}{key}" : "v"' for number in range(10_050)]
    assert len(read(header_of(fields[:10_000])).ext or {}) == 10_000
    with pytest.raises(FrameError, match="more than 10000 ext fields"):
        read(header_of(fields))


def test_a_value_may_have_any_number_of_quotes() -> None:
    value = '"\\' * 50_000
    assert read(header_of([f'"value":{json.dumps(value)}'])).ext == {"value": value}


def test_a_hostile_header_costs_little() -> None:
    """Reading with all liberties is for headers of a size that peers send."""
    began = time.process_time()
    with pytest.raises(FrameError):
        read(b"{" + b"1:1," * 4_000_000)
    assert time.process_time() - began < 2


@pytest.mark.parametrize(
    ("command", "header"),
    [
        pytest.param(
            Command(105, 1, version=373, ext={"topic": "TopicTest"}),
            b'{"code":105,"extFields":{"topic":"TopicTest"},"flag":0,"language":"JAVA","opaque":1,'
            b'"serializeTypeCurrentRPC":"JSON","version":373}',
            id="a request",
        ),
        pytest.param(
            Command(0, -5, 1, 513, ext={}),
            b'{"code":0,"extFields":{},"flag":1,"language":"JAVA","opaque":-5,'
            b'"serializeTypeCurrentRPC":"JSON","version":513}',
            id="an answer whose class has fields but sets none",
        ),
        pytest.param(
            Command(17, 2, 1, 513, language=3, remark='no "x"\n\x01\x7fé/'),
            b'{"code":17,"flag":1,"language":"PYTHON","opaque":2,"remark":"no \\"x\\"\\n\\u0001\x7f\xc3\xa9/",'
            b'"serializeTypeCurrentRPC":"JSON","version":513}',
            id="a remark, escaped no more than needed",
        ),
        pytest.param(
            Command(0, None, 1, 513, language=99),
            b'{"code":0,"flag":1,"serializeTypeCurrentRPC":"JSON","version":513}',
            id="no opaque, unknown language",
        ),
    ],
)
def test_a_header_is_written_as_java_writes_it(command: Command, header: bytes) -> None:
    assert encode(command)[8:] == header


def test_a_body_may_be_sent_behind_its_frame() -> None:
    body = b'{"topicList":[]}'
    assert encode_header(Command(0, 1, 1), len(body)) + body == encode(Command(0, 1, 1, body=body))


def test_a_header_that_is_not_strict_json_is_decoded_up_to_a_length() -> None:
    """Decoding it loosely takes many times as long."""
    loose = b"{code:105,opaque:1,language:'JAVA',flag:0,version:1,remark:'%b'}"
    room = 65_536 - len(loose) + 2
    assert decode_json_command(loose % (b"r" * room), b"").code == 105
    with pytest.raises(FrameError, match="unreadable JSON header of 65537 bytes"):
        decode_json_command(loose % (b"r" * (room + 1)), b"")
