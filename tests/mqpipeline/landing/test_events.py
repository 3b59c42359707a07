"""Entries as they are read -> rows of EVENTS: one row an entry, whatever is in it."""

import json
from collections.abc import Iterable
from typing import Any, cast

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from mqpipeline.landing.events import NUMBERS, TEXTS
from mqpipeline.landing.kinds import EVENTS_LAND, HEARTBEATS_LAND, Landed
from pyspark_redis_stream.batches import Batches
from pyspark_redis_stream.replies import page_of_entries

Fields = dict[str, str]
HEAD = {"v": "1", "inc": "7", "seq": "3", "kind": "kv_changed"}
ROWS = {**HEAD, "kind": "topics_changed"}
WIPE = [["b", "8,8,6,0", "8,8,4,0", ["T1", "T2"]], ["c", "", "1,1,6,0", []]]
BAD_ROWS = [
    *("", "[", "{}", '"a"', "[1]", "[null]", '[["b","","1"]]', '[["b","","1",["T"],5]]'),
    *('[["b","","1","T"]]', '[["b",null,"1",["T"]]]', '[["b","","1",[null]]]'),
]
REMOVED = {
    **HEAD,
    "kind": "broker_removed",
    "part": "2/3",
    "op": "w1-1",
    "cause": "lost",
    "actor": "acl:k",
    "peer": "10.0.0.9:1",
    "cluster": "c1",
    "broker": "b",
    "id": "4294967296",
    "addr": "10.0.0.1:1",
    "epoch": "5",
    "since_ms": "1",
    "last_seen_ms": "2",
    "lease_ms": "3",
    "effective_ms": "4",
    "closed_ms": "5",
    "topics": "6",
    "drained": "1",
    "unknown": "kept",
}
CASES: dict[str, tuple[Fields, dict[str, Any]]] = {
    "nothing but what each has": (HEAD, {"v": 1, "inc": 7, "seq": 3, "part_i": 1, "part_n": 1}),
    "everything a removal has": (
        REMOVED,
        {
            **{name: REMOVED[name] for name in ("op", "cause", "actor", "peer", "cluster", "broker", "addr")},
            **{"part_i": 2, "part_n": 3, "broker_id": 1 << 32, "epoch": 5, "since_ms": 1, "last_seen_ms": 2},
            **{"lease_ms": 3, "effective_ms": 4, "closed_ms": 5, "topics": 6, "drained": True},
        },
    ),
    "not drained": ({**HEAD, "drained": "0"}, {"drained": False}),
    "rows": (
        {**ROWS, "rows": json.dumps(WIPE)},
        {"rows": [("b", "8,8,6,0", "8,8,4,0", ["T1", "T2"]), ("c", "", "1,1,6,0", [])]},
    ),
    "rows of a checkpoint": (
        {**HEAD, "kind": "checkpoint", "scope": "topics", "rows": '[["b","","1,1,6,0",["T \\" \\u00e9"]]]'},
        {"rows": [("b", "", "1,1,6,0", ['T " é'])]},
    ),
    "static topics of a checkpoint": (
        {**HEAD, "kind": "checkpoint", "scope": "mappings", "rows": '[["b","T",null,{"bname":"b"}]]'},
        {"rows": None, "rejected": None},
    ),
    "no rows at all": ({**ROWS, "rows": "[]"}, {"rows": []}),
    "rows of static topics are of another shape": (
        {**HEAD, "kind": "mappings_changed", "rows": '[["b","T",null,{"x":1}]]'},
        {"rows": None},
    ),
    "an unknown kind": ({**HEAD, "kind": "later"}, {"kind": "later"}),
    "an unknown version": ({**HEAD, "v": "3"}, {"v": 3, "rejected": "version"}),
    "no version": ({"inc": "7", "seq": "3", "kind": "a"}, {"v": None, "rejected": "missing"}),
    "no seq": ({"v": "1", "inc": "7", "kind": "a"}, {"seq": None, "rejected": "missing"}),
    "nothing": ({}, {"kind": None, "rejected": "missing"}),
    "a number that is none": ({**HEAD, "epoch": "x"}, {"epoch": None, "rejected": "number"}),
    "a number that is too large": ({**HEAD, "topics": "3000000000"}, {"topics": None, "rejected": "number"}),
    "a fraction": ({**HEAD, "closed_ms": "1.5"}, {"closed_ms": None, "rejected": "number"}),
    "an empty number": ({**HEAD, "id": ""}, {"broker_id": None, "rejected": "number"}),
    "a part of nothing": ({**HEAD, "part": "x/2"}, {"part_i": None, "part_n": 2, "rejected": "number"}),
    "a flag that is none": ({**HEAD, "drained": "yes"}, {"drained": None, "rejected": "number"}),
    **{f"rows {text}": ({**ROWS, "rows": text}, {"rows": None, "rejected": "rows"}) for text in BAD_ROWS},
}


FIELDS = [fields for fields, _ in CASES.values()]
HELD = {  # field -> the columns that hold it
    **{name: (name,) for name in (*TEXTS, "drained", "rows")},
    **{field: (name,) for name, field in NUMBERS.items()},
    "part": ("part_i", "part_n"),
}


def landed(spark: SparkSession, kind: Landed, entries: Iterable[Fields]) -> list[dict[str, Any]]:
    """Rows of these entries, as the source reads them, as Spark finds them in a file."""
    texts = [[text.encode() for pair in fields.items() for text in pair] for fields in entries]
    page = page_of_entries([(b"5-%d" % number, text) for number, text in enumerate(texts)])
    schema = to_arrow_schema(kind.table.schema)
    batches = Batches(cast(StructType, StructType.fromDDL(kind.columns))).of("s", page)
    rows = pa.Table.from_batches([kind.rows(raw, "default", 1, schema) for raw in batches])
    return [row.asDict() for row in spark.createDataFrame(rows, kind.table.schema).orderBy("id_n").collect()]


def test_one_row_an_entry(spark: SparkSession) -> None:
    found = landed(spark, EVENTS_LAND, FIELDS)
    assert len(found) == len(CASES)
    reported = {}
    for row, (name, (_, columns)) in zip(found, CASES.items(), strict=True):
        row["rows"] = row["rows"] and [tuple(one) for one in row["rows"]]
        expected = {"rejected": None, **columns}
        reported[name] = {key: row[key] for key in expected} == expected or {
            key: row[key] for key in expected
        }
    assert reported == dict.fromkeys(CASES, True)


def test_what_is_in_no_column_is_in_fields(spark: SparkSession) -> None:
    for row, fields in zip(landed(spark, EVENTS_LAND, FIELDS), FIELDS, strict=True):
        held = {name for name, columns in HELD.items() if all(row[column] is not None for column in columns)}
        assert row["fields"] == {name: text for name, text in fields.items() if name not in held}


def test_what_lacks_is_null(spark: SparkSession) -> None:
    [row] = landed(spark, EVENTS_LAND, [HEAD])
    known = {"namespace", "id_ms", "id_n", "fields", "v", "inc", "seq", "kind", "part_i", "part_n", "batch"}
    assert {column for column, value in row.items() if value is not None} == known
    assert row["fields"] == {}


def test_heartbeats(spark: SparkSession) -> None:
    heartbeat = {"cluster": "c", "broker": "b", "id": "1", "addr": "10.0.0.1:1", "code": "34"}
    found = landed(spark, HEARTBEATS_LAND, [heartbeat, {"id": "x", "code": ""}])
    assert [tuple(row.values()) for row in found] == [
        ("default", 5, 0, "c", "b", 1, "10.0.0.1:1", 34),
        ("default", 5, 1, None, None, None, None, None),
    ]
