"""What adds up from run to run, and what is said of a checkpoint."""

from typing import Any

from mqpipeline.tables.health import Entries, Row, Seen, health, is_wrong

COUNTS = {"namespace": "ns", "repeats": 1, "phantoms": 2, "unknown": 3, "incomplete": 4, "waiting": 5}
CHECK = {
    "namespace": "ns",
    "round": "r7",
    "begin_ms": 900,
    "end_ms": 1000,
    "proves": True,
    "members": 4,
    "members_differing": 0,
    "pairs": 1200,
    "pairs_differing": 0,
}


def first(**instead: Any) -> list[Row]:
    missing = [{"namespace": "ns", "missing": 6, "incarnations": 1}]
    return health(Seen([COUNTS], missing, [CHECK | instead]), [], {"ns": Entries(90, 8)}, {"ns": 1500}, 2000)


def test_of_a_full_run() -> None:
    assert first() == [
        {
            **COUNTS,
            **{name: value for name, value in CHECK.items() if name not in ("begin_ms", "end_ms")},
            "as_of": 1500,
            "entries": 90,
            "rejected": 8,
            "missing": 6,
            "incarnations": 1,
            "round_ms": 1000,
        }
    ]


def test_an_incremental_run_adds_what_it_has_read() -> None:
    (before,) = first()
    (row,) = health(Seen([COUNTS | {"waiting": 1}], None, []), [before], {"ns": Entries(100, 8)}, {}, 2000)
    added = {"repeats": 2, "phantoms": 4, "unknown": 6, "incomplete": 8, "waiting": 1, "entries": 100}
    assert row == {**before, **added, "as_of": 2000}


def test_a_namespace_of_which_nothing_is_new_stays() -> None:
    (before,) = first()
    (row,) = health(Seen([], None, []), [before], {}, {}, 2000)
    assert row == {**before, "as_of": 2000, "waiting": 0, "entries": None, "rejected": None}


def test_a_namespace_without_entries_is_there() -> None:
    (row,) = health(Seen([], [], []), [], {"empty": Entries(0, 0)}, {}, 2000)
    assert (row["namespace"], row["entries"], row["missing"], row["round"]) == ("empty", 0, 0, None)


def test_a_namespace_that_is_named_no_longer_and_never_had_an_entry_goes() -> None:
    (empty,) = health(Seen([], [], []), [], {"typo": Entries(0, 0)}, {}, 2000)
    assert health(Seen([], [], []), [empty], {}, {}, 2000) == []


def test_a_full_run_begins_from_nothing() -> None:
    (row,) = health(Seen([COUNTS], [], []), [], {}, {}, 2000)
    assert (row["unknown"], row["missing"], row["incarnations"], row["round"]) == (3, 0, 0, None)
    assert not is_wrong(row)


def test_a_checkpoint_that_proves_must_not_differ() -> None:
    assert is_wrong(first(members_differing=2)[0])
    assert is_wrong(first(pairs_differing=1)[0])
    assert not is_wrong(first(pairs_differing=1, proves=False)[0])
    assert not is_wrong(first()[0])
