"""A recorded run of a real name server: its event stream tells what 105 answered, at any time of it."""

import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable

import pytest
from pyspark.sql import SparkSession

from mqpipeline.clean import clean
from mqpipeline.history.answer import answer_of
from mqpipeline.history.routes import Route, routes_at
from mqpipeline.history.tables import Tables
from mqpipeline.schemas import EVENTS
from mqpipeline.tables.broker_versions import broker_versions
from mqpipeline.tables.sessions import sessions
from rocketmq_remoting.route import TopicRouteData, decode_route
from tests.mqpipeline.history.conftest import NAMESPACE
from tests.mqpipeline.history.example import in_memory
from tests.mqpipeline.history.live_run import BEHIND_MS, Answer, Recorded
from tests.mqpipeline.rows import frame, version_rows
from tests.mqpipeline.stream import Entry, landed

pytestmark = pytest.mark.timeout(240)
SURE_MS = 300
"""So long before its lease ended everybody knew the broker."""
Reported = dict[tuple[int, str], TopicRouteData]
"""(instant, topic) -> what the tables tell."""


@pytest.fixture(scope="module")
def entries(recorded: Recorded) -> list[Entry]:
    split = [(entry_id.partition("-"), fields) for entry_id, fields in recorded.entries]
    return [Entry(int(ms), int(n), fields) for (ms, _, n), fields in split]


@pytest.fixture(scope="module")
def tables(spark: SparkSession, entries: list[Entry]) -> Tables:
    events = frame(spark, EVENTS, [landed(entry, NAMESPACE) for entry in entries])
    whole = clean(events).persist()
    return in_memory(NAMESPACE, sessions(whole), broker_versions(whole), version_rows(whole))


def test_the_run_has_all_that_can_happen(entries: list[Entry]) -> None:
    causes = Counter((entry.fields["kind"], entry.fields["cause"]) for entry in entries)
    assert causes.keys() >= {
        ("broker_registered", "first"),
        ("broker_registered", "join"),
        ("broker_registered", "takeover"),
        ("broker_removed", "expired"),
        ("broker_removed", "lost"),
        ("broker_removed", "unregistered"),
        ("broker_removed", "replaced"),
        ("topics_changed", "register"),
        ("topics_changed", "acting"),
        ("topics_changed", "wipe"),
        ("topics_changed", "restore"),
        ("topics_changed", "topic_register"),
        ("topics_changed", "topic_delete"),
    }


def changes(entries: Iterable[Entry]) -> list[int]:
    """Instants from which on something else was answered; 0 is before all."""
    effective = {int(entry.fields.get("effective_ms", 0)) for entry in entries}
    return sorted({0} | effective | {entry.ms for entry in entries})


def possible(answer: Answer, instants: list[int]) -> list[int]:
    """Instants from which on a route held that the answer may be."""
    first = bisect_right(instants, answer.from_ms - BEHIND_MS) - 1
    return instants[max(first, 0) : bisect_right(instants, answer.to_ms)]


def reported_at(tables: Tables, instants: Iterable[int], *, as_recorded: bool = False) -> Reported:
    """The routes at all instants."""
    reported: Reported = {}
    for instant in instants:
        by_topic: dict[str, list[Route]] = {}
        for route in routes_at(tables, instant, as_recorded=as_recorded, acting_master=True):
            by_topic.setdefault(route.topic, []).append(route)
        for topic, routes in by_topic.items():
            reported[instant, topic] = decode_route(json.dumps(answer_of(routes)).encode())
    return reported


def sorted_by_name(route: TopicRouteData | None) -> TopicRouteData | None:
    """The order of brokers is Redis's."""
    if route is None:
        return None
    return TopicRouteData(
        tuple(sorted(route.broker_datas, key=lambda data: data.broker_name)),
        tuple(sorted(route.queue_datas, key=lambda data: data.broker_name)),
        route.filter_server_table,
    )


@pytest.fixture(scope="module")
def reported(tables: Tables, entries: list[Entry]) -> Reported:
    return reported_at(tables, changes(entries))


def test_each_answer_was_the_route(reported: Reported, entries: list[Entry], recorded: Recorded) -> None:
    instants, certain, routes = changes(entries), set(), set()
    for answer in recorded.answers:
        candidates = [reported.get((instant, answer.topic)) for instant in possible(answer, instants)]
        route = sorted_by_name(answer.route)
        assert route in candidates, (answer, candidates)
        routes.add(repr(route))
        if all(one == candidates[0] for one in candidates):
            certain.add(repr(route))
    assert len(routes) > 20
    assert len(certain) > 5


def test_a_lease_ends_to_the_second(entries: list[Entry], recorded: Recorded) -> None:
    """The silent broker is in every answer before its end, a second after it in none."""
    end, _ = silent(entries)
    before = [a for a in recorded.answers if a.topic == "T1" and end - SURE_MS < a.from_ms and a.to_ms < end]
    after = [a for a in recorded.answers if a.topic == "T1" and end + BEHIND_MS < a.from_ms]
    assert before
    assert after
    assert all("broker-z" in names(answer.route) for answer in before)
    assert not any("broker-z" in names(answer.route) for answer in after)


def test_what_was_known_when_the_lease_had_ended(tables: Tables, entries: list[Entry]) -> None:
    end, recorded = silent(entries)
    instants = {end - 1, end, recorded - 1, recorded}
    answered = reported_at(tables, instants)
    known = reported_at(tables, instants, as_recorded=True)
    assert [instant for instant in sorted(instants) if "broker-z" in names(answered[instant, "T1"])] == [
        end - 1
    ]
    assert {instant for instant in instants if "broker-z" in names(known[instant, "T1"])} == {
        instant for instant in instants if instant < recorded
    }


def silent(entries: list[Entry]) -> tuple[int, int]:
    """When the lease of broker-z ended, and when that was written."""
    (entry,) = (
        one for one in entries if one.fields["cause"] == "expired" and one.fields["broker"] == "broker-z"
    )
    return int(entry.fields["effective_ms"]), entry.ms


def names(route: TopicRouteData | None) -> set[str]:
    return set() if route is None else {data.broker_name for data in route.queue_datas}
