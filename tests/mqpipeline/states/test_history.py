"""A random history, judged instant by instant in plain Python as the definitions say it, and in whole by Spark."""

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import pairwise
from typing import Any, NamedTuple

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from mqpipeline.reports.availability import availability
from mqpipeline.schemas import BROKER_SESSIONS, BROKER_VERSIONS, ROUTE_VERSIONS
from mqpipeline.states.brokers import broker_states, writable_states
from mqpipeline.states.slots import slot_states
from mqpipeline.states.topics import topic_time_in
from mqpipeline.windows import Window
from tests.mqpipeline.rows import Literal, frame

AS_OF = 400
RETIRE, UNTOLD = 60, 12
TILES = [Window("tile", begin, begin + 50) for begin in range(0, AS_OF, 50)]
INSTANTS = [Window("instant", t, t + 1) for t in range(AS_OF)]
OF = [Window("whole", 0, AS_OF), Window("some", 130, 297), *TILES]
BROKERS = {f"b{number}": f"c{number % 3}" for number in range(20)}
TOPICS = [f"t{number}" for number in range(30)]
CAUSES = [
    "expired",
    "lost",
    "closed",
    "unregistered",
    "evicted",
    "switched",
    "replaced",
    "incarnation",
    "gap",
    "mirror",
]
Slot = tuple[str, int]


class History(NamedTuple):
    """Rows of the three tables; what they leave out is null."""

    sessions: list[Literal]
    drains: list[Literal]
    versions: list[Literal]


def random_history(seed: int) -> History:
    chance = random.Random(seed)

    def edges(most: int) -> list[int]:
        return sorted(chance.choices(range(AS_OF), k=2 * chance.randint(1, most)))

    sessions: list[Literal] = []
    drains: list[Literal] = []
    versions: list[Literal] = []
    for broker, cluster in BROKERS.items():
        for slot in range(chance.randint(1, 3)):
            stays = edges(6)
            for index, (begin, end) in enumerate(zip(stays[::2], stays[1::2], strict=True), start=1):
                back = begin if chance.random() < 0.9 else begin + 1  # two rows may share an instant
                row = {"cluster": cluster, "broker": broker, "broker_id": slot, "start_ms": min(back, end)}
                open_ = 2 * index == len(stays) and chance.random() < 0.5
                ended: Literal = {} if open_ else {"end_ms": end, "end_cause": chance.choice(CAUSES)}
                sessions.append(
                    {**row, **ended, "drained": chance.random() < 0.2, "start_id": (begin, len(sessions))}
                )
        if chance.random() < 0.4:
            begin, end = sorted(chance.sample(range(AS_OF), 2))
            until = chance.choice([None, end - 3])
            drain = {"broker": broker, "from_ms": begin, "to_ms": chance.choice([end, None])}
            drains.append({**drain, "drain": ("ann", "", until)})
    for topic in TOPICS:
        for broker in chance.sample([*BROKERS, "never seen"], chance.randint(1, 4)):
            for begin, end in pairwise(edges(2)):
                version = {"topic": topic, "broker": broker, "write_queues": chance.choice([0, 1, 4, 8])}
                held = {
                    "perm": chance.choice([6, 6, 6, 4]),
                    "from_cause": chance.choice(["register", "acting", "wipe"]),
                }
                versions.append(
                    {**version, **held, "from_ms": begin, "to_ms": chance.choice([end, end, None])}
                )
                if versions[-1]["to_ms"] is None:
                    break
    return History(sessions, drains, versions)


class Reported(NamedTuple):
    """What Spark makes of it: states by unit, the time of topics at each instant, and rows by unit and window."""

    slots: DataFrame
    brokers: DataFrame
    writable: DataFrame
    topics: DataFrame
    report: DataFrame

    @classmethod
    def of(cls, spark: SparkSession, history: History, parts: int) -> "Reported":
        def table(of: Any, rows: Sequence[Literal]) -> DataFrame:
            return frame(spark, of, [{"namespace": "n", "inc": 1, **row} for row in rows]).repartition(parts)

        slots = slot_states(table(BROKER_SESSIONS, history.sessions), AS_OF, RETIRE, UNTOLD).cache()
        brokers = broker_states(slots).cache()
        writable = writable_states(slots, table(BROKER_VERSIONS, history.drains), AS_OF).cache()
        versions = table(ROUTE_VERSIONS, history.versions)
        report = availability(brokers, writable, versions, OF, AS_OF)
        return cls(slots, brokers, writable, topic_time_in(versions, writable, INSTANTS), report)


SEED = 7


@pytest.fixture(scope="module")
def history() -> History:
    return random_history(SEED)


@pytest.fixture(scope="module")
def reported(spark: SparkSession, history: History) -> Reported:
    return Reported.of(spark, history, 2)


@pytest.fixture(scope="module")
def report(reported: Reported) -> list[Row]:
    return reported.report.collect()


# by definition, at one instant


def slot_at(sessions: Sequence[Literal], t: int) -> str | None:
    """None: not seen yet, or retired."""
    begun = [row for row in sessions if row["start_ms"] <= t]
    if not begun:
        return None
    last = max(begun, key=lambda row: (row["start_ms"], row["start_id"]))
    end, cause = last.get("end_ms"), last.get("end_cause")
    if end is None or t < end:
        return "UP"
    if cause in ("unregistered", "evicted", "switched"):
        return "PLANNED"
    if cause in ("expired", "lost", "closed") and last["drained"]:
        return "PLANNED"
    if t >= end + RETIRE:
        return None
    if cause in ("expired", "lost", "closed"):
        return "DOWN"
    return "DOWN" if cause in ("incarnation", "gap") and t >= end + UNTOLD else "UNKNOWN"


def first_of(order: Sequence[str], states: AbstractSet[str | None]) -> str | None:
    return next((state for state in order if state in states), None)


class Judge:
    """The definitions, over one history."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.slots: dict[Slot, list[Literal]] = {}
        for row in history.sessions:
            self.slots.setdefault((row["broker"], row["broker_id"]), []).append(row)

    def broker(self, broker: str, t: int) -> str | None:
        states = {slot_at(rows, t) for (name, _), rows in self.slots.items() if name == broker}
        return first_of(["UP", "DOWN", "UNKNOWN", "PLANNED"], states)

    def writable(self, broker: str, t: int) -> str:
        for row in self.history.drains:
            ends = [end for end in (row["to_ms"], row["drain"][2]) if end is not None]
            if row["broker"] == broker and row["from_ms"] <= t < min(ends, default=AS_OF):
                return "PLANNED"
        return slot_at(self.slots.get((broker, 0), []), t) or "UNKNOWN"

    def pairs(self, topic: str, t: int) -> Iterator[tuple[str, int]]:
        for row in self.history.versions:
            end = AS_OF if row["to_ms"] is None else row["to_ms"]
            if row["topic"] == topic and row["from_ms"] <= t < end:
                shut = row["perm"] == 4 and row["from_cause"] != "acting"
                yield "PLANNED" if shut else self.writable(row["broker"], t), row["write_queues"]

    def topic(self, topic: str, t: int) -> str | None:
        pairs = list(self.pairs(topic, t))
        if ("UP", True) in [(state, queues > 0) for state, queues in pairs]:
            return "UP"
        states = {state for state, _ in pairs}
        return first_of(["DOWN", "UNKNOWN"], states) or ("PLANNED" if pairs else None)


@pytest.fixture(scope="module")
def judge(history: History) -> Judge:
    return Judge(history)


def spread(states: DataFrame, *unit: str) -> dict[tuple[Any, ...], str]:
    """Instant by instant; fails where intervals of a unit overlap, or equal ones touch."""
    state_at: dict[tuple[Any, ...], str] = {}
    for row in states.collect():
        name = tuple(row[column] for column in unit)
        assert row.from_ms < row.to_ms
        assert state_at.get((*name, row.from_ms - 1)) != row.state, "equal ones touch"
        assert state_at.get((*name, row.to_ms)) != row.state, "equal ones touch"
        for t in range(row.from_ms, row.to_ms):
            assert (*name, t) not in state_at, "they overlap"
            state_at[(*name, t)] = row.state
    return state_at


def judged(units: Mapping[Any, tuple[Any, ...]], look: Any) -> dict[tuple[Any, ...], str]:
    every = {(*key, t): look(unit, t) for unit, key in units.items() for t in range(AS_OF)}
    return {at: state for at, state in every.items() if state is not None}


def test_slots(reported: Reported, judge: Judge) -> None:
    found = spread(reported.slots, "broker", "broker_id")
    assert found == judged(
        {slot: slot for slot in judge.slots}, lambda slot, t: slot_at(judge.slots[slot], t)
    )
    assert len(set(found.values())) == 4


def test_brokers(reported: Reported, judge: Judge) -> None:
    units = {broker: (cluster, broker) for broker, cluster in BROKERS.items()}
    found = spread(reported.brokers, "cluster", "broker")
    assert found == judged(units, judge.broker)
    assert len(set(found.values())) == 4


def test_brokers_that_are_written_to(reported: Reported, judge: Judge) -> None:
    units = {broker: (broker,) for broker in BROKERS}
    assert spread(reported.writable, "broker") == judged(units, judge.writable)


@pytest.fixture(scope="module")
def of_topics(reported: Reported) -> dict[tuple[Any, ...], str]:
    """As `spread`."""
    return {
        (row.topic, row.from_ms): state
        for row in reported.topics.collect()
        for state in ("UP", "DOWN", "PLANNED", "UNKNOWN")
        if row[f"{state.lower()}_ms"]
    }


def test_topics(of_topics: dict[tuple[Any, ...], str], judge: Judge) -> None:
    assert of_topics == judged({topic: (topic,) for topic in TOPICS}, judge.topic)
    assert len(set(of_topics.values())) == 4


def test_weights(report: list[Row], judge: Judge) -> None:
    found = {(row.unit, row.from_ms, row.to_ms): row.weighted for row in report}
    for topic in TOPICS:
        for window in OF:
            sums: Counter[str] = Counter()
            for t in range(window.from_ms, window.to_ms):
                for state, queues in judge.pairs(topic, t):
                    sums[state] += queues
            weight = sums["UP"] + sums["DOWN"]
            wanted = sums["UP"] / weight if weight else None
            assert found.get((f"topic:{topic}", *window[1:])) == wanted


def test_a_window_is_the_sum_of_its_states(report: list[Row]) -> None:
    brokers = Counter((row.unit.split(":")[1], *row[1:4]) for row in report if row.unit.startswith("broker"))
    for row in report:
        of = brokers[(row.unit.split(":")[1], *row[1:4])] if row.unit.startswith("cluster") else 1
        states = (row.up_ms, row.down_ms, row.planned_ms, row.unknown_ms)
        assert min(states) >= 0
        assert sum(states) == of * (row.to_ms - row.from_ms)
        assert row.availability is None if row.up_ms + row.down_ms == 0 else 0 <= row.availability <= 1
        assert row.weighted is None or 0 <= row.weighted <= 1


def test_the_report_is_of_the_states(
    report: list[Row], reported: Reported, of_topics: dict[tuple[Any, ...], str]
) -> None:
    units = {f"broker:{cluster}:{broker}": (cluster, broker) for broker, cluster in BROKERS.items()}
    of_brokers = spread(reported.brokers, "cluster", "broker")
    for row in report:
        if row.unit.startswith("cluster"):
            continue
        unit, states = (units[row.unit], of_brokers) if row.unit in units else ((row.unit[6:],), of_topics)
        seen = [states.get((*unit, t)) for t in range(row.from_ms, row.to_ms)]
        began = [a != "DOWN" and b == "DOWN" for a, b in pairwise([None, *seen])]
        assert (row.up_ms, row.down_ms, row.planned_ms) == tuple(map(seen.count, ("UP", "DOWN", "PLANNED")))
        assert row.outages == sum(began)


def test_windows_that_tile_a_window_sum_to_it(report: list[Row]) -> None:
    sums: dict[str, dict[str, Counter[str]]] = {"whole": {}, "tile": {}}
    for row in report:
        if row.window in sums:
            reported = {state: row[state] for state in ("up_ms", "down_ms", "planned_ms")}
            sums[row.window].setdefault(row.unit, Counter()).update(reported)
    assert sums["whole"] == sums["tile"]


def test_availability_of_mtbf_and_mttr(report: list[Row]) -> None:
    failed = [row for row in report if row.outages]
    assert len(failed) > 50
    for row in failed:
        assert row.availability == pytest.approx(row.mtbf_ms / (row.mtbf_ms + row.mttr_ms), rel=1e-12)
    assert all(row.mtbf_ms is None and row.mttr_ms is None for row in report if not row.outages)


def test_clusters_are_the_sums_of_their_brokers(report: list[Row]) -> None:
    sums: dict[str, dict[Any, Counter[str]]] = {"cluster": {}, "broker": {}}
    for row in report:
        kind, cluster = row.unit.split(":")[:2]
        if kind in sums:
            values = {name: row[name] for name in ("up_ms", "down_ms", "planned_ms", "unknown_ms", "outages")}
            sums[kind].setdefault((cluster, *row[1:4]), Counter()).update(values)
    assert sums["cluster"] == sums["broker"]


def test_order_and_batches_do_not_matter(spark: SparkSession, report: list[Row], history: History) -> None:
    shuffled = History(*(random.Random(SEED).sample(rows, len(rows)) for rows in history))
    again = Reported.of(spark, shuffled, 5).report.collect()
    assert sorted(again, key=str) == sorted(report, key=str)
