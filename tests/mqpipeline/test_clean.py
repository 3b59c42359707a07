"""What is folded of a landing, and what the stream does not say."""

import pytest
from pyspark.sql import DataFrame, SparkSession

from mqpipeline.clean import clean, counts, gaps, runs
from tests.mqpipeline.rows import as_frame
from tests.mqpipeline.stream import Case, Stream, at, landing, registered, topics

pytestmark = pytest.mark.timeout(300)

FIRST = registered("first", "a", 1)


def plain(count: int, inc: float = 0, begin: float = 1, seq: int = 1) -> Stream:
    """So many entries, a second apart; each is a registration of its own."""
    stream = Stream(inc, seq=seq)
    for i in range(count):
        stream.add(begin + i, FIRST)
    return stream


def holed(*losses: int) -> Stream:
    """Two entries, a hole, two more, a hole, two more …: a second apart."""
    stream = plain(2)
    for i, loss in enumerate(losses):
        stream.lose(loss).add(3 + 2 * i, FIRST).add(4 + 2 * i, FIRST)
    return stream


def group(*, of: int, only: range, seq: int = 1) -> list[dict[str, object]]:
    """Some entries of one group."""
    rows = (
        Stream(seq=seq)
        .add(1, *[topics("topic_register", ("a", "", "1,1,6,0", [f"T{i}"])) for i in range(of)])
        .rows()
    )
    return [rows[i] for i in only]


def of_kind(kind: str = "broker_registered", v: int = 1) -> list[dict[str, object]]:
    rows = plain(2).rows()
    rows[1] |= {"kind": kind, "v": v}
    return rows


SET_BACK = plain(2, begin=1).rows(1) + plain(3, begin=10, seq=3).rows(1) + plain(2, begin=20, seq=3).rows(2)
"""3, 4 and 5 were read; then 3 and 4 with other ids: the first 3, 4 and 5 never happened."""

KEPT = [
    Case("as it was read", plain(3).rows(), [1, 2, 3]),
    Case("in another order", plain(3).rows()[::-1], [1, 2, 3]),
    Case("read twice in one batch", plain(3).rows() * 2, [1, 2, 3]),
    Case("read again later", plain(3).rows(1) + plain(4).rows(2), [1, 2, 3, 4]),
    Case("a stream set back", SET_BACK, [1, 2, 3, 4]),
    Case("set back, read in another order", SET_BACK[::-1], [1, 2, 3, 4]),
    Case("set back and read again from its beginning", SET_BACK + plain(2).rows(2), [1, 2, 3, 4]),
    Case("set back within one batch", [row | {"batch": 1} for row in SET_BACK], [1, 2, 3, 4]),
    Case("a hole", holed(3).rows(), [1, 2, 6, 7]),
    Case("a history that begins later", plain(2, seq=7).rows(), [7, 8]),
    Case("a group", group(of=3, only=range(3)), [1, 2, 3]),
    Case("a group without its end", plain(1).rows() + group(of=3, only=range(2), seq=2), [1]),
    Case("a group without its beginning", group(of=3, only=range(1, 3)) + plain(1, seq=4).rows(), [4]),
    Case("a group without its middle", group(of=3, only=range(0, 3, 2)), []),
    Case("an unknown kind", of_kind("broker_painted"), [1]),
    Case("a version not known yet", of_kind(v=2), [1]),
    Case("a version gone by", of_kind(v=0), [1, 2]),
    Case("two incarnations", plain(2).rows() + plain(2, inc=10, begin=10).rows(), [1, 2, 1, 2]),
]
BEHIND = plain(2, inc=-100, begin=-90)
"""A store whose clock is behind that of the one with `plain`."""
BACK = plain(2).rows(1) + plain(2, inc=10, begin=10).rows(2) + plain(2, begin=20, seq=3).rows(3)
"""Its entries go on, and another one was there in between."""
SEGMENTS = [
    Case("no hole", plain(3).rows(), {(1, 0, None, None, None)}),
    Case(
        "two holes",
        holed(1, 2).rows(),
        {(1, 0, None, at(2), "gap"), (4, 1, at(2), at(4), "gap"), (8, 2, at(4), None, None)},
    ),
    Case(
        "incarnations",
        plain(2).rows() + plain(2, inc=10, begin=10).rows(),
        {(1, 0, None, at(10), "incarnation"), (1, 1, at(10), None, None)},
    ),
    Case(
        "an incarnation without its beginning",
        plain(2).rows() + plain(2, inc=10, begin=12, seq=3).rows(),
        {(1, 0, None, at(10), "incarnation"), (3, 1, at(10), None, None)},
    ),
    Case("a stream set back", SET_BACK, {(1, 0, None, None, None)}),
    Case(
        "an incarnation whose clock is behind",
        plain(2).rows(1) + BEHIND.rows(2),
        {(1, 0, None, at(2), "incarnation"), (1, 1, at(2), None, None)},
    ),
    Case(
        "an older incarnation that is read again",
        plain(2).rows(1) + BEHIND.rows(2) + plain(2).rows(3),
        {(1, 0, None, at(2), "incarnation"), (1, 1, at(2), None, None)},
    ),
    Case(
        "a store that is back",
        BACK,
        {
            (1, 0, None, at(10), "incarnation"),
            (1, 1, at(10), at(11), "incarnation"),
            (3, 2, at(11), None, None),
        },
    ),
    Case(
        "a store that is back and read from its beginning",
        BACK + plain(2).rows(3),
        {
            (1, 0, None, at(10), "incarnation"),
            (1, 1, at(10), at(11), "incarnation"),
            (3, 2, at(11), None, None),
        },
    ),
]
GAPS = [
    Case("none", plain(3).rows(), set()),
    Case("history begins later", plain(3, seq=7).rows(), set()),
    Case("holes", holed(1, 2).rows(), {("hole", 3, 3, at(2), at(3)), ("hole", 6, 7, at(4), at(5))}),
    Case("rollback", SET_BACK, {("rollback", 3, 5, at(2), at(20))}),
    Case(
        "a hole that only a lost primary fills",
        plain(6).rows(1) + plain(2, begin=20, seq=3).rows(2) + plain(1, begin=30, seq=7).rows(2),
        {("rollback", 3, 6, at(2), at(20)), ("hole", 5, 6, at(21), at(30))},
    ),
    Case(
        "set back twice",
        SET_BACK + plain(2, begin=30, seq=4).rows(3),
        {("rollback", 3, 5, at(2), at(20)), ("rollback", 4, 4, at(20), at(30))},
    ),
    Case(
        "incarnation",
        plain(2).rows() + plain(2, inc=10, begin=10).rows(),
        {("incarnation", 1, 1, at(2), at(10))},
    ),
    Case(
        "incarnation without its beginning",
        plain(2).rows() + plain(2, inc=10, begin=12, seq=3).rows(),
        {("incarnation", 1, 1, at(2), at(10)), ("hole", 1, 2, at(2), at(12))},
    ),
    Case(
        "a store that is back",
        BACK,
        {("incarnation", 1, 1, at(2), at(10)), ("incarnation", 3, 3, at(11), at(11))},
    ),
    Case(
        "a store that is back, with a hole",
        plain(2).rows(1) + plain(2, inc=10, begin=10).rows(2) + plain(2, begin=20, seq=5).rows(3),
        {
            ("incarnation", 1, 1, at(2), at(10)),
            ("incarnation", 3, 3, at(11), at(11)),
            ("hole", 3, 4, at(11), at(20)),
        },
    ),
    Case(
        "incarnation whose clock is behind",
        plain(2).rows(1) + BEHIND.rows(2),
        {("incarnation", 1, 1, at(2), at(2))},
    ),
]
COUNTS = [
    Case("nothing amiss", plain(3).rows(), (3, 0, 0, 0, 0)),
    Case("repeats", plain(3).rows(1) + plain(2).rows(2), (5, 2, 0, 0, 0)),
    Case("phantoms", SET_BACK, (7, 0, 3, 0, 0)),
    Case("unknown", of_kind("broker_painted") * 2, (4, 2, 0, 1, 0)),
    Case("incomplete", group(of=3, only=range(2)), (2, 0, 0, 0, 2)),
]


FOLDED = {
    "the last is behind": 2,
    "a lost primary lies ahead": 4,
    "a newer incarnation is behind": 2,
    "a newer incarnation has an older clock": 2,
    "all": 3,
}
"""How far the tables go, in the incarnation that begins at `W0`."""
COUNTED = [
    Case("the last is behind", plain(3).rows(), (2, 0, 0, 0, 0, 1)),
    Case("a lost primary lies ahead", SET_BACK + plain(1, begin=30, seq=5).rows(3), (7, 0, 3, 0, 0, 1)),
    Case(
        "a newer incarnation is behind",
        plain(2).rows() + plain(2, inc=10, begin=10).rows(),
        (2, 0, 0, 0, 0, 2),
    ),
    Case("a newer incarnation has an older clock", plain(2).rows(1) + BEHIND.rows(2), (2, 0, 0, 0, 0, 2)),
    Case("all", plain(3).rows(), (3, 0, 0, 0, 0, 0)),
    Case("no entry is known", of_kind("broker_painted"), (2, 0, 0, 1, 0, 0)),
    Case(
        "entries without a number", [*plain(2).rows(), plain(1).rows()[0] | {"seq": None}], (2, 0, 0, 0, 0, 0)
    ),
]


@pytest.fixture(scope="module")
def whole(spark: SparkSession) -> tuple[DataFrame, DataFrame]:
    """The histories of all tables of this module, each under its own name, and their runs."""
    tables = {"kept": KEPT, "segments": SEGMENTS, "gaps": GAPS, "counts": COUNTS, "counted": COUNTED}
    named = [case._replace(id=f"{table}/{case.id}") for table, cases in tables.items() for case in cases]
    events = landing(spark, named).localCheckpoint()
    return events, runs(events).localCheckpoint()


Found = dict[str, list[tuple[object, ...]]]


def by_case(found: DataFrame, table: str, *columns: str) -> Found:
    rows: Found = {}
    for row in found.where(f"namespace like '{table}/%'").select("namespace", *columns).collect():
        rows.setdefault(row[0].partition("/")[2], []).append(tuple(row)[1:])
    return rows


@pytest.fixture(scope="module")
def kept(whole: tuple[DataFrame, DataFrame]) -> Found:
    return by_case(clean(*whole), "kept", "inc", "seq", "id_ms")


@pytest.fixture(scope="module")
def segments(whole: tuple[DataFrame, DataFrame]) -> Found:
    found = clean(*whole).select("namespace", "segment", "span.*").distinct()
    return by_case(found, "segments", "first_seq", "segment", "after_ms", "until_ms", "until_cause")


@pytest.fixture(scope="module")
def holes(whole: tuple[DataFrame, DataFrame]) -> Found:
    return by_case(gaps(*whole), "gaps", "type", "from_seq", "to_seq", "from_ms", "to_ms")


@pytest.fixture(scope="module")
def counted(whole: tuple[DataFrame, DataFrame]) -> Found:
    return by_case(counts(*whole), "counts", "events", "repeats", "phantoms", "unknown", "incomplete")


@pytest.fixture(scope="module")
def counted_to_there(spark: SparkSession, whole: tuple[DataFrame, DataFrame]) -> Found:
    rows = [(f"counted/{id}", at(0), seq) for id, seq in FOLDED.items()]
    positions = as_frame(spark, rows, "namespace string, inc bigint, seq bigint")
    columns = ("events", "repeats", "phantoms", "unknown", "incomplete", "waiting")
    return by_case(counts(*whole, positions), "counted", *columns)


def named(cases: list[Case]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", cases, ids=[case.id for case in cases])


@named(KEPT)
def test_what_is_folded(kept: Found, case: Case) -> None:
    assert [seq for _, seq, _ in sorted(kept.get(case.id, []))] == case.expected


def test_a_lost_primary_is_forgotten(kept: Found) -> None:
    assert {ms for _, seq, ms in kept["a stream set back"] if seq in (3, 4)} == {at(20), at(21)}


@named(SEGMENTS)
def test_where_history_is_whole(segments: Found, case: Case) -> None:
    assert set(segments[case.id]) == case.expected


@named(GAPS)
def test_gaps(holes: Found, case: Case) -> None:
    found = holes.get(case.id, [])
    assert set(found) == case.expected
    assert len(found) == len(case.expected)


@named(COUNTS)
def test_counts(counted: Found, case: Case) -> None:
    assert counted[case.id] == [case.expected]


@named(COUNTED)
def test_counts_up_to_an_entry(counted_to_there: Found, case: Case) -> None:
    assert counted_to_there[case.id] == [case.expected]


def test_the_columns_are_those_of_the_landing(whole: tuple[DataFrame, DataFrame]) -> None:
    events, _ = whole
    added = ["id", "segment", "span"]
    assert clean(*whole).columns == [name for name in events.columns if name != "batch"] + added
