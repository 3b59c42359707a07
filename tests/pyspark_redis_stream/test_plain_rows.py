"""Rows of texts in JSON are the same whichever way they are read, and what is none is known."""

import json
import random

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import ArrayType

from pyspark_redis_stream import nested, plain_rows
from tests.pyspark_redis_stream.reading import LONG, TEXT, schema

TEXTS = ArrayType(TEXT)
ROWS = ArrayType(schema({"broker": TEXT, "before": TEXT, "after": TEXT, "topics": TEXTS}))
ARROW = to_arrow_type(ROWS)
PLAIN = ['[["b","","8,8,6,0",["T1","T2"]]]', '[["[[","]],[",",[",["]]]"]],["c","","",[""]]]']
ODD = [
    *('[["b","","1",[]]]', '[["\\u00e9","","1",["T"]]]', '[["é","","1",["T"]]]', ' [["b","","1",["T"]]]'),
    *("", "[]", "[[", '"', '"a"', '["b","","1",["T"]]', '[["b","",["T"]]]', '[["b","","1","2",["T"]]]'),
    *('[["b","","1",["T"]],[]]', '[["b","","1",["T"]]', '[["b","","1",["T"]]]]', '[["b","","1",["T"]]]"'),
    *('[["b","","1",["T"],["U"]]]', '[["b","","1",["T","U"],"c","","1",["T"]]]', '[["b","","1","T"]]]'),
    *('[["b","","1",["T\n"]]]', '[["b","","1",["T\x7f"]]]', '[["b","","1",["T"]],["b","","1"]]]', "a" * 9),
    *('[["b","","1",["T"]]]"U"]]]', '[["b","","1",["T"]],[', '[["b","","1",["T"'),
    *('[["b" ,"","1",["T"]]]', '[["b","","1",["T"]];["c","","1",["T"]]]', '[["b":"","1",["T"]]]'),
]


def array(texts: list[str | None]) -> pa.Array:
    return pa.array([None if text is None else text.encode() for text in texts], pa.binary())


@pytest.mark.parametrize("text", [*PLAIN, *ODD])
def test_whether_a_text_is_of_the_form(text: str) -> None:
    found, odd = plain_rows.lists(ARROW, array([PLAIN[0], None, text, PLAIN[1]]))
    found.validate(full=True)
    assert odd.tolist() == [False, False, text in ODD, False]
    reported = [row and [[*one.values()] for one in row] for row in found.to_pylist()]
    expected = [json.loads(one) for one in (PLAIN[0], text if text in PLAIN else "null", PLAIN[1])]
    assert reported == [expected[0], None, *expected[1:]]


@pytest.mark.parametrize("seed", range(20))
def test_both_ways_tell_the_same_of_texts_that_were_tampered_with(seed: int) -> None:
    chance = random.Random(seed)
    texts = [_tampered(chance, chance.choice(PLAIN)) for _ in range(500)]
    decoder = nested.decoder_of(ROWS)
    found = nested.lists(ARROW, decoder, array([*texts, *ODD, *PLAIN, None]))
    found.validate(full=True)
    expected = nested._one_by_one(ARROW, decoder, array([*texts, *ODD, *PLAIN, None]))
    assert found.equals(expected)
    assert nested.lists(ARROW, decoder, array([None, *texts])[3:]).equals(expected[2 : len(texts)])


def _tampered(chance: random.Random, text: str) -> str:
    for _ in range(chance.choice((0, 0, 1, 2))):
        at = chance.randrange(len(text))
        text = text[:at] + chance.choice(["", '"', "[", "]", ",", "é", "\\", '","', "]],["]) + text[at + 1 :]
    return text


@pytest.mark.parametrize("texts", [[], [None], [""], ["[]", None]])
def test_nothing_makes_nothing(texts: list[str | None]) -> None:
    found, _ = plain_rows.lists(ARROW, array(texts))
    assert found.to_pylist() == [None] * len(texts)


@pytest.mark.parametrize(
    "within",
    [TEXT, LONG, TEXTS, schema({"a": TEXT}), schema({"b": TEXTS}), schema({"a": LONG, "b": TEXTS})],
)
def test_other_lists_are_not_for_this(within: object) -> None:
    assert plain_rows.can_hold(ARROW)
    assert not plain_rows.can_hold(to_arrow_type(ArrayType(within)))  # type: ignore[arg-type]
