"""A made-up history is one that a name server could have written."""

import json
from collections import defaultdict
from typing import Any

import pytest

from mqpipeline.scale import SLICE, Entry, Scale, entries

SMALL = Scale(brokers=40, topics=400, brokers_of_topic=6, weeks=14, clusters=2)
Fields = dict[str, str]


@pytest.fixture(scope="module")
def history() -> list[Entry]:
    return list(entries(SMALL))


def test_seqs_have_no_holes_and_follow_the_ids(history: list[Entry]) -> None:
    assert [int(row.fields["seq"]) for row in history] == list(range(1, len(history) + 1))
    ids = [(row.id_ms, row.id_n) for row in history]
    assert sorted(set(ids)) == ids


def test_groups_are_whole_and_contiguous(history: list[Entry]) -> None:
    awaited = ("1", "1")
    for row in history:
        part, of = row.fields.get("part", "1/1").split("/")
        assert (
            part == "1" if awaited[0] == awaited[1] else (part, of) == (str(int(awaited[0]) + 1), awaited[1])
        )
        awaited = (part, of)
    assert awaited[0] == awaited[1]


def test_every_entry_follows_from_those_before(history: list[Entry]) -> None:
    members: dict[tuple[str, str], Fields] = {}
    epochs: dict[str, str] = {}
    tables: dict[str, dict[str, str]] = defaultdict(dict)
    for row in history:
        entry = row.fields
        slot = (entry.get("broker", ""), entry.get("id", ""))
        if entry["kind"] == "broker_registered":
            assert slot not in members
            if entry["cause"] == "first":
                assert not any(name == slot[0] for name, _ in members)
                assert int(entry["epoch"]) > int(epochs.get(slot[0], 0))
                tables[slot[0]] = {}
            else:
                assert entry["epoch"] == epochs[slot[0]]
            epochs[slot[0]], members[slot] = entry["epoch"], {**entry, "at": str(row.id_ms)}
        elif entry["kind"] == "broker_removed":
            member = members.pop(slot)
            assert (member["addr"], member["epoch"], member["at"]) == (
                entry["addr"],
                entry["epoch"],
                entry["since_ms"],
            )
            assert int(entry["last_seen_ms"]) >= int(entry["since_ms"])
            assert int(entry.get("effective_ms", row.id_ms)) <= row.id_ms
        elif entry["kind"] == "topics_changed":
            assert entry["epoch"] == epochs[slot[0]]
            _change(tables[slot[0]], entry, {name for name, _ in members})
    assert len(tables) == SMALL.brokers


def _change(table: dict[str, str], entry: Fields, living: set[str]) -> None:
    rows: list[Any] = json.loads(entry["rows"])
    topics = [(topic, before, after) for _, before, after, listed in rows for topic in listed]
    assert {broker for broker, *_ in rows} == {entry["broker"]} <= living
    assert len(topics) == int(entry["count"]) <= SLICE
    for topic, before, after in topics:
        assert table.pop(topic, "") == before
        if after:
            table[topic] = after


def test_what_a_year_brings_is_there(history: list[Entry]) -> None:
    causes = {row.fields["cause"] for row in history}
    assert causes == {
        "empty_store",
        "first",
        "join",
        "takeover",
        "unregistered",
        "lost",
        "expired",
        "replaced",
        "register",
        "wipe",
        "restore",
    }


def test_equal_scales_make_equal_histories(history: list[Entry]) -> None:
    assert list(entries(SMALL)) == history
    assert list(entries(SMALL._replace(seed=2))) != history
