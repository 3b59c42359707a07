"""The part of a registration's body that tells an unchanged one."""

import pytest

from rocketmq_remoting.body_signature import split_signature

START = b'{"filterServerList":[],"topicConfigSerializeWrapper":{"dataVersion":'
V4 = b'{"counter":1,"timestamp":1000}'
V5 = b'{"counter":1,"stateVersion":0,"timestamp":1000}'
REST = b'"topicConfigTable":{"TA":{"topicName":"TA"}}}}'


@pytest.mark.parametrize(
    ("body", "parts"),
    [
        pytest.param(START + V4 + b"," + REST, (V4, START, REST), id="4.x"),
        pytest.param(START + V5 + b',"mappingDataVersion":' + V5 + b"," + REST, (V5, START, REST), id="5.x"),
        pytest.param(
            START.replace(b"[]", b'["f1","f2"]') + V4 + b"," + REST,
            (V4, START.replace(b"[]", b'["f1","f2"]'), REST),
            id="with filter servers",
        ),
        pytest.param(START + b'{"counter":-1},' + REST, (b'{"counter":-1}', START, REST), id="fewer members"),
        pytest.param(b"", None, id="empty"),
        pytest.param(b" " + START + V4 + b"," + REST, None, id="a blank before it"),
        pytest.param(START + b'{"counter":1, "timestamp":1000},' + REST, None, id="a blank inside"),
        pytest.param(START + b'{"counter":"1"},' + REST, None, id="text for a number"),
        pytest.param(START + V4 + b"}}", None, id="a version without topics"),
        pytest.param(START + b"null," + REST, None, id="null for the version"),
        pytest.param(START.replace(b"[]", b"null") + V4 + b"," + REST, None, id="null for filter servers"),
        pytest.param(
            START + b'{"counter":1,"counter":2,"counter":3,"counter":4},' + REST, None, id="too many"
        ),
        pytest.param(b"x\xda" + REST, None, id="compressed"),
    ],
)
def test_a_body_is_split_if_it_begins_as_java_writes_it(
    body: bytes, parts: tuple[bytes, bytes, object] | None
) -> None:
    assert split_signature(body) == parts


def test_the_mapping_version_does_not_count_and_all_else_does() -> None:
    def body(mapping: bytes, rest: bytes = REST) -> bytes:
        return (
            START
            + V5
            + b',"mappingDataVersion":{"counter":0,"stateVersion":0,"timestamp":'
            + mapping
            + b"},"
            + rest
        )

    assert split_signature(body(b"1")) == split_signature(body(b"2"))
    assert split_signature(body(b"1")) != split_signature(body(b"1", REST.replace(b"TA", b"TB")))
