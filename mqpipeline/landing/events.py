"""Entries of the event stream as columns of EVENTS.

The source makes columns of fields, numbers and lists among them; what does not fit stays where all fields are that
have no column.
"""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from mqpipeline.schemas import ROWS
from mqpipeline.texts import as_text, not_utf8, without

Flags = npt.NDArray[np.bool_]

TEXTS = ("kind", "cause", "op", "actor", "peer", "cluster", "broker", "addr")
NUMBERS = {  # column -> field
    **{name: name for name in ("v", "inc", "seq", "epoch", "since_ms", "last_seen_ms", "lease_ms")},
    **{name: name for name in ("effective_ms", "closed_ms", "topics")},
    "broker_id": "id",
}
INTS = ("v", "topics")
REQUIRED = ("v", "kind", "inc", "seq")
VERSIONS = (1,)
ONE_PART = "1/1"
NUMBER = re.compile(rb"\d{1,9}")
EVENT_COLUMNS = ", ".join(
    (
        "stream string, id_ms bigint, id_n bigint, others map<string, string>",
        *(f"{name} string" for name in (*TEXTS, "part", "drained")),
        *(f"{field} {'int' if name in INTS else 'bigint'}" for name, field in NUMBERS.items()),
        f"rows {ROWS}",
    )
)


def events(raw: pa.RecordBatch) -> dict[str, pa.Array]:
    """Raw (EVENT_COLUMNS) -> the columns of EVENTS by name, but `namespace` and `batch`.

    Nothing is left out: what cannot be read is null, `fields` has it as it was, and `rejected` says what it is."""
    part_i, part_n = _parts(raw["part"])
    drained = _flag(raw["drained"])
    number = {
        "part": _is_null(part_i) | _is_null(part_n),
        "drained": ~_is_null(raw["drained"]) & _is_null(drained),
    }
    text = {name: not_utf8(raw[name]) for name in TEXTS}
    others = _Fields.of(raw["others"])
    return {
        "id_ms": raw["id_ms"],
        "id_n": raw["id_n"].cast(pa.int32(), safe=False),
        **{name: without(raw[name], text[name]) for name in TEXTS},
        **{name: raw[field] for name, field in NUMBERS.items()},
        "part_i": part_i,
        "part_n": part_n,
        "drained": drained,
        "rows": raw["rows"],
        "fields": _with(raw, {**number, **text}, others),
        "rejected": _rejected(
            raw,
            others,
            number["part"] | number["drained"],
            np.logical_or.reduce([*text.values(), others.not_utf8]),
        ),
    }


class _Fields(NamedTuple):
    """The fields of all entries one after another: of which entry each is, its name and its value."""

    entries: int
    rows: npt.NDArray[np.int64]
    names: pa.Array
    values: pa.Array

    @classmethod
    def of(cls, maps: pa.MapArray) -> "_Fields":
        counts = np.diff(maps.offsets.to_numpy())
        start, end = maps.offsets[0].as_py(), maps.offsets[-1].as_py()
        rows = np.repeat(np.arange(len(maps)), counts)
        return cls(len(maps), rows, maps.keys[start:end], maps.items[start:end])

    @property
    def not_utf8(self) -> Flags:
        """The entries with a field whose name or value is not."""
        return self.having(not_utf8(self.names) | not_utf8(self.values))

    def having(self, of_fields: Any) -> Flags:
        """The entries with a field that this is true of."""
        flags = np.zeros(self.entries, bool)
        flags[self.rows[np.asarray(of_fields)]] = True
        return flags


def _rejected(raw: pa.RecordBatch, others: _Fields, odd: Flags, text: Flags) -> pa.Array:
    """What is in no column because it is not what it should be is among the others.

    `rows` are queue data in `topics_changed`, and in a checkpoint of topics; those of static topics are of another
    shape."""
    version = ~_is_null(raw["v"]) & ~_true(pc.is_in(raw["v"], pa.array(VERSIONS, pa.int32())))
    missing = np.logical_or.reduce([_is_null(raw[NUMBERS.get(name, name)]) for name in REQUIRED])
    number = odd | others.having(pc.is_in(others.names, pa.array(list(NUMBERS.values()))))
    of_topics = others.having(pc.and_(pc.equal(others.names, "scope"), pc.equal(others.values, "topics")))
    queue_data = _true(pc.equal(raw["kind"], "topics_changed")) | (
        _true(pc.equal(raw["kind"], "checkpoint")) & of_topics
    )
    rows = others.having(pc.equal(others.names, "rows")) & queue_data
    words = pa.array(["text", "version", "missing", "number", "rows"])
    which = np.select([text, version, missing, number, rows], range(len(words)), -1)
    return words.take(pa.array(which, mask=which < 0))


def _with(raw: pa.RecordBatch, odd: dict[str, Flags], fields: _Fields) -> pa.MapArray:
    """The others, and these columns as fields where they are odd; what is not UTF-8 as base64."""
    others, wrong = raw["others"], fields.not_utf8
    if not any(flags.any() for flags in (*odd.values(), wrong)):
        return others
    binary = pa.map_(pa.binary(), pa.binary())
    of_entries = others.view(binary).to_pylist()
    for name, flags in odd.items():
        texts = raw[name].view(pa.binary())
        for row in np.flatnonzero(flags):
            of_entries[row].append((name.encode(), as_text(texts[row].as_py())))
    for row in np.flatnonzero(wrong):
        of_entries[row] = [(as_text(name), as_text(value)) for name, value in of_entries[row]]
    return pa.array(of_entries, binary).view(others.type)


def _parts(texts: pa.Array) -> Sequence[pa.Array]:
    """Return i and n of each `i/n`, which most entries share; null for what is no number."""
    encoded = texts.fill_null(ONE_PART).view(pa.binary()).dictionary_encode()
    known = [(text.partition(b"/")[0], text.rpartition(b"/")[2]) for text in encoded.dictionary.to_pylist()]
    numbers = [[int(text) if NUMBER.fullmatch(text) else None for text in pair] for pair in known]
    return [pa.array([pair[at] for pair in numbers], pa.int32()).take(encoded.indices) for at in (0, 1)]


def _flag(texts: pa.Array) -> pa.Array:
    known = pc.is_in(texts, pa.array(["0", "1"]))
    return pc.if_else(known, pc.equal(texts, "1"), pa.scalar(None, pa.bool_()))


def _is_null(array: pa.Array) -> Flags:
    return np.asarray(array.is_null())


def _true(flags: pa.Array) -> Flags:
    """Where they are, and not null."""
    return np.asarray(flags.fill_null(False))
