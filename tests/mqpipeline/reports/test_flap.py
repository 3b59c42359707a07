"""Which slots flap."""

import random
from math import log2
from typing import Any

import pytest
from pyspark.sql import SparkSession

from mqpipeline.reports.flap import flap
from mqpipeline.schemas import BROKER_SESSIONS
from tests.mqpipeline.reports import example
from tests.mqpipeline.reports.literal import Log, Reported, cases, clean, ms, reported, session, window
from tests.mqpipeline.rows import frame

Rows = list[dict[str, Any]]
AT = (0, 60, 61, 120, 121, 1860, 1861, 3600, 90_000)
WINDOWS = [window(-900, at, f"{at}") for at in AT]
FEW, CHANGED = ["T1", "T2"], ("a", "8,8,6,0", "8,8,4,0", ["T1"])
ADDED, RESIZED = ("a", "", "8,8,6,0", ["T1"]), ("a", "8,8,6,0", "4,4,6,0", ["T1"])


def _deaths(*at: float, cause: str = "expired", **more: Any) -> Rows:
    return [session("a", end - 1, end, cause, **more) for end in at]


WEIGHTS: dict[str, tuple[Rows, Rows, float]] = {
    "expired": (_deaths(60), [], 1000),
    "lost": (_deaths(60, cause="lost"), [], 1000),
    "closed": (_deaths(60, cause="closed"), [], 1000),
    "at the time the lease ended, not of its record": (_deaths(60, recorded=70), [], 1000),
    "takeover": ([session("a", 60, start_cause="takeover")], [], 500),
    "switch": ([session("a", 60, start_cause="switch")], [], 500),
    "what was left by a takeover or switch": (
        [session("a", 0, 60, "replaced"), session("a", 0, 60, "switched")],
        [],
        0,
    ),
    "unregistered": (_deaths(60, cause="unregistered"), [], 0),
    "lost from sight": (_deaths(60, cause="gap"), [], 0),
    "a permission": ([session("a", 0)], Log().topics("wipe", 60, CHANGED).rows, 500),
    "a permission, of no slave": (
        [session("a", 0, broker_id=1)],
        Log().topics("wipe", 60, CHANGED).rows,
        0,
    ),
    "slices of one operation": (
        [session("a", 0)],
        Log().topics("wipe", 60, CHANGED, op="x").topics("wipe", 60, CHANGED, op="x").rows,
        500,
    ),
    "two operations": (
        [session("a", 0)],
        Log().topics("wipe", 60, CHANGED).topics("wipe", 60, CHANGED).rows,
        1000,
    ),
    "a new topic, or its queues": (
        [session("a", 0)],
        Log().topics("register", 60, ADDED, RESIZED, ("a", "8,8,6,0", "", FEW)).rows,
        0,
    ),
    "another broker's permission": (
        [session("a", 0)],
        Log().topics("topic_register", 60, ("b", *CHANGED[1:]), ADDED).rows,
        0,
    ),
    "a wipe made into a drain": (
        [session("a", 0)],
        Log().event("drain_changed", "wipe", 60, "a").event("drain_changed", "drain", 60, "a").rows,
        500,
    ),
    "no more than the cap": (_deaths(*[60] * 20), [], 12_000),
}


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> Reported:
    sessions = {name: rows for name, (rows, *_) in WEIGHTS.items()} | {
        "example": example.SESSIONS,
        "three": _deaths(0, 60, 120),
        "twice": _deaths(0, 60, 120) + _deaths(2000, 2060, 2120),
        "at the limit": _deaths(60, 60),
    }
    events = {name: rows for name, (_, rows, _) in WEIGHTS.items()} | {"example": example.EVENTS}
    report = flap(
        frame(spark, BROKER_SESSIONS, cases(sessions)), clean(spark, cases(events)), WINDOWS, ms(90_000)
    )
    return reported(report, "score", "flapping", "flapping_since_ms", "episodes")


def _score(found: Reported, case: str, at: int, slot: str = "slot:c1:a:0") -> float:
    return found[case, f"{at}", slot][0] if (case, f"{at}", slot) in found else 0


@pytest.mark.parametrize("name", WEIGHTS)
def test_what_raises_the_score(name: str, found: Reported) -> None:
    """Nothing of the window's last instant counts; a second later little has faded."""
    of_all = {
        at: sum(value[0] for key, value in found.items() if key[:2] == (name, at)) for at in ("60", "61")
    }
    assert of_all == pytest.approx({"60": 0, "61": WEIGHTS[name][2] * 2 ** (-1 / 900)})


def test_the_worked_example(found: Reported) -> None:
    scores = {slot: _score(found, "example", 3600, f"slot:c1:{slot}:0") for slot in "abc"}
    assert scores == pytest.approx({"a": 373.4, "b": 565.0, "c": 793.7}, abs=0.05)


def test_three_deaths_make_it_flap_until_the_score_is_low(found: Reported) -> None:
    def at(seconds: int) -> tuple[Any, ...]:
        return found["three", f"{seconds}", "slot:c1:a:0"]

    assert at(120)[1:] == (False, None, 0)
    assert at(121)[1:] == (True, 120_000, 1)
    assert at(121)[0] == pytest.approx(2866.6 * 2 ** (-1 / 900), abs=0.1)
    assert at(1860)[1:] == (True, 120_000, 1)
    assert at(1861)[1:] == (False, None, 1), "since 1860.9"


def test_two_thousand_is_not_yet_flapping(found: Reported) -> None:
    assert found["at the limit", "61", "slot:c1:a:0"][1:] == (False, None, 0)


def test_it_flaps_again(found: Reported) -> None:
    assert found["twice", "3600", "slot:c1:a:0"][1:] == (True, 2_060_000, 2)


def test_a_slot_without_events_has_no_row(found: Reported) -> None:
    assert ("unregistered", "3600", "slot:c1:a:0") not in found
    assert ("three", "0", "slot:c1:a:0") not in found


def test_as_computed_one_by_one(spark: SparkSession) -> None:
    chance = random.Random(6)
    deaths = {f"slot {i}": sorted(chance.choices(range(3000), k=chance.randint(1, 40))) for i in range(100)}
    sessions = frame(spark, BROKER_SESSIONS, cases({name: _deaths(*at) for name, at in deaths.items()}))
    ends = (500, 1000, 1001, 2500, 5000)
    of = [window(end - 700, end, f"{end}") for end in ends]
    found = reported(
        flap(sessions, clean(spark, []), of, 0), "score", "flapping", "flapping_since_ms", "episodes"
    )
    for name, at in deaths.items():
        for end in ends:
            score, since, begun = _by_hand([death for death in at if death < end], end)
            expected = (score, since is not None, since and since * 1000, sum(end - 700 <= t for t in begun))
            assert found.get((name, f"{end}", "slot:c1:a:0"), (0, False, None, 0)) == pytest.approx(expected)
        assert _score(found, name, 1001) <= _score(found, name, 1000) or 1000 in at, (
            "it falls if nothing happens"
        )


def _by_hand(deaths: list[int], end: int) -> tuple[float, int | None, list[int]]:
    score, last, calm_at = 0.0, 0, -1.0
    begun: list[int] = []
    for at in deaths:
        score = min(12_000, score * 2 ** (-(at - last) / 900) + 1000)
        if score > 2000 and at > calm_at:
            begun.append(at)
        if score > 2000 or at <= calm_at:
            calm_at = at + 900 * log2(score / 750)
        last = at
    flapping = begun[-1] if end <= calm_at else None
    return score * 2 ** (-(end - last) / 900), flapping, begun
