"""JSON with the liberties of Java's libraries: what becomes strict, what is refused, and at which cost."""

import json
import time
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketmq_remoting.errors import BodyError
from rocketmq_remoting.json_decoding import REWRITES_MAX, decode_json
from rocketmq_remoting.tolerant_json import normalise

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param(b'{0:"a",1:"b"}', {"0": "a", "1": "b"}, id="numbers as keys"),
        pytest.param(b'{ 0 : "a" , -1 :"b"}', {"0": "a", "-1": "b"}, id="numbers as keys, with blanks"),
        pytest.param(b'{0/*k*/:"a"}', {"0": "a"}, id="a number as key before a comment"),
        pytest.param(b'{"x":{0:{1:[{2:3}]}}}', {"x": {"0": {"1": [{"2": 3}]}}}, id="numbers as keys, nested"),
        pytest.param(b'{"a":"{0:1,}//"}', {"a": "{0:1,}//"}, id="text that looks like it stays"),
        pytest.param(b'{"a":"\\"{0:1}"}', {"a": '"{0:1}'}, id="text with a quote in it stays"),
        pytest.param(b"{abc:1,$d_9:2}", {"abc": 1, "$d_9": 2}, id="words as keys"),
        pytest.param(b"{true:1,null:2}", {"true": 1, "null": 2}, id="literals as keys"),
        pytest.param(b"{'a':'b'}", {"a": "b"}, id="single quotes"),
        pytest.param(b"""{'a"b':'c\\'d'}""", {'a"b': "c'd"}, id="quotes in single quotes"),
        pytest.param(b'["a\\\'b"]', ["a'b"], id="escaped single quote"),
        pytest.param(b'["a\tb\nc\x00d"]', ["a\tb\nc\x00d"], id="raw control characters"),
        pytest.param(b'["\\v\\0\\7\\x41\\xe9"]', ["\v\0\aAé"], id="escapes of Java"),
        pytest.param(b'["\\u00e9\\n\\/\\\\"]', ["é\n/\\"], id="escapes of JSON"),
        pytest.param(b"[1,2,]", [1, 2], id="comma before a bracket"),
        pytest.param(b'{"a":1 , \n}', {"a": 1}, id="comma before a brace"),
        pytest.param(b"[1,/* , ] */]", [1], id="comma before a comment"),
        pytest.param(b"[1,//]\n2]", [1, 2], id="line comment"),
        pytest.param(b"/**/[/***/1/* * / */]//", [1], id="comments all over"),
        pytest.param(b"\xef\xbb\xbf[1]", [1], id="byte order mark"),
        pytest.param(b"[1\x0c]", [1], id="form feed"),
        pytest.param(b"[-1.5e-3, 1E5, 0]", [-0.0015, 100000.0, 0], id="numbers stay"),
        pytest.param("['é', \"主\"]".encode(), ["é", "主"], id="text beyond ASCII"),
    ],
)
def test_liberties_become_strict(text: bytes, value: object) -> None:
    assert json.loads(normalise(text)) == value
    assert decode_json(text, type(value)) == value


@given(VALUES)
def test_what_is_strict_already_stays_as_it_is(value: Any) -> None:
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False, indent=1)):
        encoded = text.encode("utf-8", "surrogatepass")
        assert normalise(encoded) == encoded


@given(st.dictionaries(st.integers(), st.text()))
def test_number_keys_become_text(table: dict[int, str]) -> None:
    legacy = "{" + ",".join(f"{key}:{json.dumps(value)}" for key, value in table.items()) + "}"
    assert decode_json(legacy.encode(), dict) == {str(key): value for key, value in table.items()}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"{} x", id="text behind it"),
        pytest.param(b"{}{}", id="an object behind it"),
        pytest.param(b'{"a":1', id="cut off"),
        pytest.param(b'{"a":', id="cut off before the value"),
        pytest.param(b'{"a', id="cut off in text"),
        pytest.param(b'{"a\\', id="cut off in an escape"),
        pytest.param(b"{'a", id="cut off in single quotes"),
        pytest.param(b"{/*", id="cut off in a comment"),
        pytest.param(b"[abc]", id="a word as value"),
        pytest.param(b"[0x10]", id="hexadecimal"),
        pytest.param(b"[1.]", id="half a number"),
        pytest.param(b"[NaN]", id="no number"),
        pytest.param(b"[1 2]", id="no comma"),
        pytest.param(b"[1,,2]", id="two commas"),
        pytest.param(b'["\\q"]', id="unknown escape"),
        pytest.param(b'["\\u12"]', id="half an escape"),
        pytest.param(b'["\\xg1"]', id="escape that is no number"),
        pytest.param(b'["\\ud800"]', id="half a surrogate pair"),
        pytest.param(b'["\xff"]', id="no UTF-8"),
        pytest.param(b"\xff", id="no UTF-8 outside of text"),
        pytest.param(b"[" * 10000 + b"]" * 10000, id="nested 10,000 deep"),
        pytest.param(b"{0:" * 10000 + b"1" + b"}" * 10000, id="nested 10,000 deep with bare keys"),
    ],
)
def test_what_no_liberty_covers_is_refused_in_one_line(text: bytes) -> None:
    with pytest.raises(BodyError) as refused:
        decode_json(text, object)
    assert len(str(refused.value).splitlines()) == 1


def test_liberties_are_bounded_where_they_are_taken_at_once() -> None:
    few = b"{" + b"1:2," * (REWRITES_MAX - 1) + b"3:4}"
    assert decode_json(few, dict) == {"1": 2, "3": 4}
    with pytest.raises(BodyError, match="more than"):
        decode_json(few.replace(b"{", b"{0:0,"), dict)


@pytest.mark.parametrize(
    "unit",
    [
        b"1:", b",", b", ", b"/*", b"1 /*", b"/**/", b",/**/", b"1/**/", b"//\n", b"1//\n", b"1", b"-", b"1.", b"1e",
        b'"', b'"\\', b'"a', b"'", b"'a':", b"a", b"a ", b"a:", b"[", b"{a:", b"\x01", b'"\x01"', b" ", b"\f", b"\xff",
        b'"":1,', b"true", b"\\u12",
    ],
    ids=repr,
)  # fmt: skip
@pytest.mark.parametrize("before", [b"", b'"', b"/*", b"1", b","], ids=repr)
def test_no_text_costs_more_than_its_length(before: bytes, unit: bytes) -> None:
    """Backtracking or rescanning would take minutes or more; one pass takes some 0.1 s."""
    text = before + unit * (200_000 // len(unit))
    began = time.process_time()
    with suppress(BodyError):
        decode_json(text, object)
    assert time.process_time() - began < 2
