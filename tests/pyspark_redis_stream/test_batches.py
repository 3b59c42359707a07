"""Pages become record batches of any columns that are asked for."""

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import ArrayType, DoubleType, MapType

from pyspark_redis_stream import batches
from pyspark_redis_stream.batches import Batches
from pyspark_redis_stream.replies import page_of_entries
from tests.pyspark_redis_stream.reading import IDS, INT, LONG, TEXT, WHOLE, schema

ENTRIES = [
    (b"5-0", [b"kind", b"a", b"n", b"12"]),
    (b"5-1", [b"n", b"-3", b"other", b""]),
    (b"18446744073709551615-7", []),
]


def made(columns: dict[str, Any], entries: list[tuple[bytes, list[bytes]]]) -> list[dict[str, Any]]:
    found = Batches(schema(columns)).of("s", page_of_entries(entries))
    for batch in found:
        batch.validate(full=True)
    return [row for batch in found for row in batch.to_pylist()]


def test_entries_as_they_are() -> None:
    assert made(WHOLE, ENTRIES) == [
        {"stream": "s", "id_ms": 5, "id_n": 0, "fields": [("kind", "a"), ("n", "12")]},
        {"stream": "s", "id_ms": 5, "id_n": 1, "fields": [("n", "-3"), ("other", "")]},
        {"stream": "s", "id_ms": -1, "id_n": 7, "fields": []},  # Spark has no unsigned numbers
    ]


def test_fields_as_columns() -> None:
    found = made({"n": LONG, "kind": TEXT, "never": INT, **IDS}, ENTRIES)
    reported = [(row["n"], row["kind"], row["never"]) for row in found]
    assert reported == [
        (12, "a", None),
        (-3, None, None),
        (None, None, None),
    ]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (b"7", 7),
        (b"2147483647", 2147483647),
        (b"2147483648", None),
        (b"", None),
        (b"x", None),
        (b"1.5", None),
        (b"\xff", None),
    ],
)
def test_what_is_no_number_is_null(text: bytes, number: int | None) -> None:
    found = made({"n": INT}, [(b"1-0", [b"n", b"1"]), (b"2-0", [b"n", text])])
    assert [row["n"] for row in found] == [1, number]


def test_of_a_field_that_is_there_twice_the_last_value_counts() -> None:
    found = made(
        {**WHOLE, "a": TEXT}, [(b"1-0", [b"a", b"1", b"b", b"2", b"a", b"3"]), (b"2-0", [b"a", b"4"])]
    )
    assert [(row["a"], row["fields"]) for row in found] == [
        ("3", [("b", "2"), ("a", "3")]),
        ("4", [("a", "4")]),
    ]


def test_bytes_that_are_no_text_stay_as_they_are() -> None:
    [batch] = Batches(schema({"a": TEXT, **WHOLE})).of("s", page_of_entries([(b"1-0", [b"a", b"\xff\x00"])]))
    assert b"\xff\x00" in bytes(batch.column("a").buffers()[2])
    assert b"\xff\x00" in bytes(batch.column("fields").items.buffers()[2])


def test_entries_that_share_no_name_make_several_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [(b"%d-0" % n, [b"f%d" % n, b"v%d" % n]) for n in range(50)]
    whole = made(WHOLE, entries)
    monkeypatch.setattr(batches, "WIDEST", 100)
    assert len(Batches(schema(WHOLE)).of("s", page_of_entries(entries))) > 1
    assert made(WHOLE, entries) == whole
    assert whole[7]["fields"] == [("f7", "v7")]


BINARIES = pa.map_(pa.binary(), pa.binary())
PAIRS = ArrayType(schema({"name": TEXT, "amounts": ArrayType(LONG)}))


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        (b"[]", []),
        (b' [["a",[1,-2]] , ["\\u00e9",[]]]', [("a", [1, -2]), ("é", [])]),
        (b'[["a",[9223372036854775807]]]', [("a", [(1 << 63) - 1])]),
        *((text, None) for text in (b"", b"[", b"{}", b"null", b"[null]", b'[["a"]]', b'[["a",[],1]]')),
        *((text, None) for text in (b'[["\\ud800",[]]]', b"[" * 100_000)),  # half a character; a bomb
        *((text, None) for text in (b'[["a",[null]]]', b'[["a",["1"]]]', b'[["a",[1.5]]]', b'[["\xff",[]]]')),
        (b'[["a",[9223372036854775808]]]', None),
    ],
)
def test_lists_of_json_as_columns(text: bytes, reported: list[Any] | None) -> None:
    entries = [(b"1-0", [b"pairs", b'[["first",[1]]]']), (b"2-0", [b"pairs", text]), (b"3-0", [])]
    first, row, without = (row["pairs"] for row in made({"pairs": PAIRS}, entries))
    assert first == [{"name": "first", "amounts": [1]}]
    assert without is None
    assert row == (reported and [{"name": name, "amounts": amounts} for name, amounts in reported])


def test_others_are_what_no_column_holds() -> None:
    columns = {"n": LONG, "kind": TEXT, "pairs": PAIRS, "others": MapType(TEXT, TEXT), **IDS}
    entries = [
        (b"1-0", [b"n", b"1", b"kind", b"a", b"pairs", b"[]", b"id_n", b"x"]),
        (b"2-0", [b"n", b"one", b"more", b"", b"pairs", b"?", b"\xff", b"y"]),
        (b"3-0", [b"n", b"3"]),
    ]
    [batch] = Batches(schema(columns)).of("s", page_of_entries(entries))
    others = batch.column("others").view(BINARIES).to_pylist()
    assert others == [
        [(b"id_n", b"x")],
        [(b"n", b"one"), (b"more", b""), (b"pairs", b"?"), (b"\xff", b"y")],
        [],
    ]


@pytest.mark.parametrize(
    "columns",
    [
        {"id_ms": INT},
        {"n": DoubleType()},
        {"fields": MapType(TEXT, LONG)},
        {"pairs": ArrayType(DoubleType())},
        {"others": TEXT},
    ],
)
def test_columns_of_other_types_are_refused(columns: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"column {next(iter(columns))} is"):
        Batches(schema(columns))
