"""Big bodies, read in slices: the same as when they are read at once, however their members are laid out."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketmq_remoting.cooperative import run_to_completion
from rocketmq_remoting.errors import BodyError
from rocketmq_remoting.json_table import BLOCK_BYTES, SEARCHED_BYTES, JsonTable
from rocketmq_remoting.register_broker_body import RegisterBrokerBody
from rocketmq_remoting.registration import decode_register_broker_body
from rocketmq_remoting.registration_json import REST_MAX_LENGTH
from rocketmq_remoting.tolerant_json import normalise

MANY = 1000
TABLE = JsonTable[dict[str, Any]]("table", dict[str, Any], dict[str, Any])
NAMES = st.text(st.sampled_from('aT0}{:,"\\/\n é主\x00'), max_size=12)


def topic(name: str, *, attributes: dict[str, str] | None = None, reverse: bool = False) -> dict[str, Any]:
    members = {
        "attributes": {} if attributes is None else attributes,
        "order": False,
        "perm": 6,
        "readQueueNums": 8,
        "topicFilterType": "SINGLE_TAG",
        "topicName": name,
        "topicSysFlag": 0,
        "writeQueueNums": 4,
    }
    return dict(reversed(members.items())) if reverse else members


def body(table: dict[str, Any], *, infos: str = "{}", more: str = "", **layout: Any) -> bytes:
    return (
        '{"filterServerList":["f:1"],"topicConfigSerializeWrapper":{"dataVersion":{"counter":1,"timestamp":2},'
        f'{more}"topicConfigTable":{json.dumps(table, **layout)},"topicQueueMappingDetailMap":{{}},'
        f'"topicQueueMappingInfoMap":{infos}}}}}'
    ).encode("utf-8", "surrogatepass")


def read(text: bytes, version: int = 513) -> RegisterBrokerBody:
    return decode_register_broker_body(text, version=version, compressed=False, now_ms=0)


def big(**changes: Any) -> dict[str, Any]:
    return {f"T{number}": topic(f"T{number}", **changes) for number in range(MANY)}


def assert_many(registration: RegisterBrokerBody) -> None:
    assert (
        list(registration.topics) == [f"T{number}" for number in range(MANY)] == list(registration.topic_keys)
    )
    assert {(c.read_queue_nums, c.write_queue_nums, c.perm) for c in registration.topics.values()} == {
        (8, 4, 6)
    }
    assert (registration.filter_servers, registration.data_version.timestamp) == (("f:1",), 2)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(body(big(), separators=(",", ":")), id="as Java writes it"),
        pytest.param(body(big(attributes={"+a": "}},{", "b": '"}'})), id="attributes like ends of topics"),
        pytest.param(body(big(reverse=True)), id="other order, empty object last"),
        pytest.param(body(big(reverse=True, attributes={"a": "b"})), id="other order, object last"),
        pytest.param(body(big(), indent=2), id="on many lines"),
        pytest.param(body(big()).replace(b'"perm": 6', b'"perm": "6"'), id="numbers as text"),
        pytest.param(body(big()).replace(b'"perm": 6', b"perm: 6"), id="keys without quotes"),
        pytest.param(body(big()).replace(b'"', b"'"), id="single quotes"),
        pytest.param(body(big()).replace(b"}}, ", b"},/* } */}, ", 1), id="a comment with a brace"),
        pytest.param(body(big(), more='"x": "\\"topicConfigTable\\":{",'), id="its name in text"),
    ],
)
def test_a_big_body_is_read_however_it_is_laid_out(text: bytes) -> None:
    assert len(text) > 3 * BLOCK_BYTES
    assert_many(read(text))


def test_the_wrapper_of_an_old_broker_may_be_big_too() -> None:
    wrapper = json.loads(body(big()))["topicConfigSerializeWrapper"]
    assert len(read(json.dumps(wrapper).encode(), version=36).topics) == MANY


def test_big_static_topics_with_bare_keys_are_read() -> None:
    count = 600
    infos = ",".join(
        f'"S{i}":{{"bname":"b","currIdMap":{{{",".join(f"{q}:{q}" for q in range(9))}}},"topic":"S{i}"}}'
        for i in range(count)
    )
    registration = read(body(big(), infos="{" + infos + "}"))
    assert_many(registration)
    assert list(registration.mapping_infos) == [f"S{i}" for i in range(count)]
    assert registration.mapping_infos["S599"].curr_id_map == {q: q for q in range(9)}


@pytest.mark.parametrize(
    "more", ['"x":{"topicConfigTable":{"U":{"topicName":"U"}}},', '"topicConfigTable":{},']
)
def test_a_table_that_is_named_twice_is_not_extracted(more: str) -> None:
    assert_many(read(body(big(), more=more)))


@pytest.mark.parametrize("before_the_edge", range(-2, 10))
def test_a_second_name_is_found_wherever_it_stands(before_the_edge: int) -> None:
    """A text is searched in parts, and a name may lie across an edge."""
    head = b'{"table":{"a":{}},"x":"'
    far = b" " * (head.index(b'"table"') + 1 + SEARCHED_BYTES - before_the_edge - len(head))
    assert run_to_completion(TABLE.extract(head + far + b'"}')) is not None
    assert run_to_completion(TABLE.extract(head + far + b'"table"}')) is None


def test_of_two_tables_the_last_counts() -> None:
    twice = body(big()).replace(b'"topicQueueMappingDetailMap":{}', b'"topicConfigTable":{}')
    assert read(twice).topics == {}


def test_a_topic_of_a_big_table_without_a_name_has_that_of_its_key() -> None:
    nameless = body(big()).replace(b'"topicName": "T650", ', b"")
    assert nameless != body(big())
    assert read(nameless).topics == read(body(big())).topics


def test_a_table_that_stands_elsewhere_counts_for_nothing() -> None:
    text = body({}).replace(b'"topicConfigTable":{},', b"")
    elsewhere = json.dumps({"x": {"topicConfigTable": big()}})[1:-1].encode()
    assert read(text.replace(b'"dataVersion"', elsewhere + b',"dataVersion"')).topics == {}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(body(big())[:-1], id="cut off at the end"),
        pytest.param(body(big())[: 4 * BLOCK_BYTES], id="cut off in the table"),
        pytest.param(body(big()) + b"x", id="something behind it"),
        pytest.param(body({**big(), "T650": None}), id="a null topic"),
        pytest.param(body({**big(), "T650": {**topic("T650"), "perm": 2**31}}), id="a perm over 32 bits"),
        pytest.param(body(big()).replace(b'"T650": {', b'"T650" {'), id="a colon missing"),
        pytest.param(body(big()).replace(b'"T650"', b'"\xff"'), id="no UTF-8"),
        pytest.param(
            body(big(), more='"x":"' + "x" * REST_MAX_LENGTH + '",'), id="too much beside the table"
        ),
        pytest.param(b'{"a":' * 20_000 + b"1" + b"}" * 20_000, id="nested deep"),
        pytest.param(body({"T": {"topicName": "T", "a": [[]] * 90_000}}), id="a topic of any length"),
    ],
)
def test_a_big_body_that_cannot_be_read_is_refused_in_one_line(text: bytes) -> None:
    with pytest.raises(BodyError) as refused:
        read(text)
    assert len(str(refused.value).splitlines()) == 1


@given(
    st.dictionaries(NAMES, st.dictionaries(NAMES, NAMES, max_size=4)),
    st.sampled_from([(",", ":"), (", ", ": "), (" ,\n ", " :\t")]),
    st.integers(0, 60),
)
def test_any_table_is_extracted_with_all_its_members(
    few: dict[str, dict[str, str]], separators: tuple[str, str], copies: int
) -> None:
    """Names of any kind, over any number of blocks; an empty table is not extracted."""
    table = {
        f"{name}{i}": members | {"n": i} for i in range(20 * copies + 1) for name, members in few.items()
    }
    text = json.dumps({"before": 1, "table": table, "after": {}}, separators=separators).encode()
    cut = run_to_completion(TABLE.extract(text))
    assert (cut is None) == (not table)
    if cut is not None:
        assert cut[0] == table
        assert json.loads(cut[1]) == {"before": 1, "table": {}, "after": {}}


@given(st.binary(max_size=40), st.integers(0, 200_000))
def test_an_extracted_table_equals_the_one_decoded_whole(junk: bytes, at: int) -> None:
    """Anything put anywhere: the extracted table is what decoding the whole gives, or nothing is extracted."""
    whole = json.dumps({"table": big(attributes={"a": "}"}), "after": {}}).encode()
    text = whole[: at % len(whole)] + junk + whole[at % len(whole) :]
    try:
        cut = run_to_completion(TABLE.extract(text))
    except BodyError:
        cut = None
    if cut is not None:
        rest = value(cut[1])
        assert value(text) == (None if rest is None else rest | {"table": cut[0]})


def value(text: bytes) -> Any:
    """None for what cannot be read."""
    try:
        return json.loads(normalise(text))
    except ValueError:
        return None
