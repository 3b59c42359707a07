"""Conflicting claims of an identity."""

import json
from typing import Any

import pytest
from pyspark.sql import SparkSession

from mqpipeline.reports.conflicts import conflicts
from mqpipeline.schemas import BROKER_SESSIONS
from tests.mqpipeline.reports.literal import Log, Reported, cases, clean, reported, session, window
from tests.mqpipeline.rows import frame

Rows = list[dict[str, Any]]
FIGHT = "slot:c1:a:0:two_addresses"


def _claim(log: Log, cause: str, at: float, **more: Any) -> Log:
    member: dict[str, Any] = {"broker_id": 0, "addr": "x:10911", "epoch": 1}
    return log.event("conflict_seen", cause, at, "a", **member | more)


def _stays(*stays: tuple[float, str]) -> Rows:
    """Of slot a, each beginning with a takeover but the first."""
    ends = [*(at for at, _ in stays[1:]), None]
    return [
        session(
            "a", at, end, "replaced" if end else None, addr=addr, start_cause="takeover" if i else "first"
        )
        for i, ((at, addr), end) in enumerate(zip(stays, ends, strict=True))
    ]


FIGHTS: dict[str, tuple[Rows, int]] = {
    "three within five minutes": (_stays((0, "x"), (100, "y"), (200, "x"), (400, "y")), 3),
    "five minutes and a bit": (_stays((0, "x"), (100, "y"), (200, "x"), (400.001, "y")), 0),
    "two": (_stays((0, "x"), (100, "y"), (101, "x")), 0),
    "three addresses": (_stays((0, "x"), (100, "y"), (101, "z"), (102, "x")), 0),
    "the same address comes back": (_stays((0, "x"), (100, "x"), (101, "x"), (102, "x")), 0),
    "only those that follow closely": (
        _stays((0, "x"), (50, "y"), (500, "x"), (501, "y"), (502, "x"), (503, "y"), (900, "x")),
        4,
    ),
    "the second pair of a slot": (
        _stays((0, "x"), (1, "y"), (1000, "z"), (1001, "y"), (1002, "z"), (1003, "y")),
        4,
    ),
    "across clusters": (
        [
            row | {"cluster": f"c{1 + i % 2}"}
            for i, row in enumerate(_stays((0, "x"), (1, "y"), (2, "x"), (3, "y"), (4, "x"), (5, "y")))
        ],
        2,
    ),
}


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> Reported:
    log = Log("claims")
    _claim(log, "state_version", 10, fields={"action": "refused", "holder": '{"addr":"h1","cluster":"c1"}'})
    _claim(log, "state_version", 30, fields={"action": "refused", "holder": '{"addr":"h3","cluster":"c1"}'})
    _claim(log, "state_version", 20, fields={"action": "refused", "holder": '{"addr":"h2","cluster":"c1"}'})
    _claim(log, "two_names", 20, broker_id=1, fields={"action": "accepted", "holder": '{"broker":"b"}'})
    many = {"action": "accepted", "holder": '{"broker":"b","brokers":["b","c","d"]}', "count": "3"}
    _claim(log, "two_names", 25, broker_id=1, fields=many)
    _claim(log, "two_clusters", -1)
    _claim(log, "stale_unregister", 3600)
    _claim(log, "stale_unregister", 40, fields={"action": "refused", "holder": "no JSON", "count": "many"})
    log.member("registered", "join", 50, "a")
    sessions = cases({name: rows for name, (rows, _) in FIGHTS.items()})
    report = conflicts(
        clean(spark, log.rows),
        frame(spark, BROKER_SESSIONS, sessions),
        [window(0, 3600), window(0, 202, "day")],
        0,
    )
    return reported(report, "type", "count", "last_ms", "detail")


def test_claims_by_slot_and_type(found: Reported) -> None:
    of_claims = {key: value for key, value in found.items() if key[:2] == ("claims", "1h")}
    assert {key[2]: value[:3] for key, value in of_claims.items()} == {
        "slot:c1:a:0:state_version": ("state_version", 3, 30_000),
        "slot:c1:a:1:two_names": ("two_names", 4, 25_000),
        "slot:c1:a:0:stale_unregister": ("stale_unregister", 1, 40_000),
    }


def test_the_last_claim_is_the_detail(found: Reported) -> None:
    assert json.loads(found["claims", "1h", "slot:c1:a:0:state_version"][-1]) == {
        "addr": "x:10911",
        "holder": {"addr": "h3", "cluster": "c1"},
        "action": "refused",
    }


def test_a_detail_names_all_that_an_entry_told_of(found: Reported) -> None:
    holder = json.loads(found["claims", "1h", "slot:c1:a:1:two_names"][-1])["holder"]
    assert (holder["broker"], json.loads(holder["brokers"])) == ("b", ["b", "c", "d"])


@pytest.mark.parametrize("name", FIGHTS)
def test_a_slot_that_two_addresses_take_from_each_other(name: str, found: Reported) -> None:
    assert found.get((name, "1h", FIGHT), (None, 0))[1] == FIGHTS[name][1]


def test_the_detail_of_a_fight_has_the_last_address(found: Reported) -> None:
    _, count, last_ms, detail = found["three within five minutes", "1h", FIGHT]
    assert (count, last_ms, json.loads(detail)) == (3, 400_000, {"addr": "y", "holder": "x"})


def test_a_fight_that_goes_on_after_the_window(found: Reported) -> None:
    assert found["three within five minutes", "day", FIGHT][1:3] == (2, 200_000)
