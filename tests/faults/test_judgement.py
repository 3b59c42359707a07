"""The judge of the fault table finds what is wrong, and only that."""

from collections.abc import Mapping

import pytest

from faults.judgement import Figures, Span, figures, unrepeated, wrong
from faults.lookups import Lookup
from faults.messages import Counted
from faults.notes import Kind, Note
from faults.result import broken
from faults.row import Promise, Topics
from faults.truth import BEFORE_REPLY_S, Presence, Timeline, Truth

LEASE_S, BEHIND_S = 30.0, 1.0
A, B = {"a": "10.0.0.1:10911"}, {"b": "10.0.0.2:10911"}
SERVING: Mapping[str, Mapping[str, str]] = {"T": A | B}


def truth(*notes: tuple[float, str, Kind]) -> Truth:
    timelines = Truth(LEASE_S)
    for at, broker, kind in notes:
        timelines.note(Note(at, broker, kind))
    return timelines


def both() -> Truth:
    return truth((0, "a", "registered"), (0, "b", "registered"))


def lookup(
    brokers: Mapping[str, str], asked: float = 10.0, *, over: int = 0, took: float = 0.1, error: str = ""
) -> Lookup:
    return Lookup(over, "T", asked, asked + took, dict(brokers), error)


def complaint(lookup: Lookup, timelines: Truth) -> str:
    return wrong(lookup, SERVING["T"], timelines, BEHIND_S)


def test_a_timeline_is_certain_where_nothing_changes() -> None:
    line = Timeline()
    line.add(10, Presence.UNCERTAIN)
    line.add(11, Presence.PRESENT)
    assert line.certain(0, 9.9) is Presence.AWAY
    assert line.certain(9, 10) is Presence.UNCERTAIN
    assert line.certain(10.5, 12) is Presence.UNCERTAIN
    assert line.certain(11, 99) is Presence.PRESENT
    line.add(10.5, Presence.AWAY)
    assert line.certain(11, 99) is Presence.AWAY


def test_a_registered_broker_must_be_in_the_reply() -> None:
    assert complaint(lookup(A | B), both()) == ""
    assert complaint(lookup(A), both()) == "T: b is missing"
    assert complaint(lookup({}), both()) == "T: a is missing"


def test_an_error_is_no_wrong_route() -> None:
    assert complaint(lookup({}, error="code 1"), both()) == ""


def test_an_unregistered_broker_may_not_be_in_the_reply() -> None:
    timelines = both()
    timelines.note(Note(8, "b", "unregisters"))
    assert complaint(lookup(A, 8.5), timelines) == complaint(lookup(A | B, 8.5), timelines) == ""
    timelines.note(Note(8.2, "b", "unregistered"))
    assert complaint(lookup(A | B, 9.1), timelines) == ""
    assert complaint(lookup(A | B, 9.3), timelines) == "T: b is gone"


def test_another_address_is_wrong_at_any_time() -> None:
    assert "never registered it" in complaint(lookup({"a": "10.0.0.9:10911"}), truth())


def test_a_killed_broker_is_gone_after_a_second() -> None:
    timelines = both()
    timelines.killed(["b"], 19.5, 20)
    assert complaint(lookup(A | B, 20.9), timelines) == complaint(lookup(A, 20.1), timelines) == ""
    assert complaint(lookup(A | B, 20 + BEHIND_S + 0.1), timelines) == "T: b is gone"
    assert complaint(lookup(A, 19.7), timelines) == "", "a worker may have seen it"
    assert complaint(lookup(A, 19.3), timelines) == "T: b is missing"


def test_a_silent_broker_is_shown_until_its_lease_ends() -> None:
    timelines = truth((0, "a", "registered"), (10, "b", "registered"))
    timelines.silenced(["b"], 15)
    ends = 10 + LEASE_S
    assert complaint(lookup(A, ends - BEFORE_REPLY_S - 0.5), timelines) == "T: b is missing"
    assert complaint(lookup(A, ends), timelines) == complaint(lookup(A | B, ends), timelines) == ""
    assert complaint(lookup(A | B, 15 + LEASE_S + BEHIND_S + 0.1), timelines) == "T: b is gone"
    timelines.awake(["b"], 60)
    assert complaint(lookup(A | B, 60.1), timelines) == ""
    timelines.note(Note(61, "b", "registered"))
    assert complaint(lookup(A, 62.5), timelines) == "T: b is missing"


def test_a_failed_registration_removes_no_broker() -> None:
    timelines = both()
    timelines.note(Note(5, "b", "failed", "refused"))
    assert complaint(lookup(A, 10), timelines) == "T: b is missing"


def judged(*lookups: Lookup, notes: tuple[Note, ...] = (), changing: frozenset[str] = frozenset()) -> Figures:
    return figures(lookups, notes, SERVING, changing, both(), Span(10, 12), BEHIND_S)


def test_figures_of_a_connection_that_was_without_a_reply() -> None:
    measured = judged(
        lookup(A | B, 10.0),
        lookup({}, 11.0, took=3.0, error="TimeoutError"),
        lookup(A | B, 11.0, over=1),
        lookup({}, 14.1, error="code 1"),
        lookup(A | B, 15.0),
    )
    assert (measured.lookups, measured.failed, measured.failed_steady, measured.wrong) == (5, 2, 2, [])
    assert measured.unanswered_s == pytest.approx(4.1)
    assert measured.last_trouble_s == pytest.approx(2.2)
    assert measured.errors == {
        "lookup of a steady topic: TimeoutError": 1,
        "lookup of a steady topic: code 1": 1,
    }


def test_figures_leave_changing_topics_apart() -> None:
    measured = judged(lookup({}, 11.0, error="code 1"), lookup(A | B, 13.0), changing=frozenset(["T"]))
    assert (measured.failed, measured.failed_steady) == (1, 0)
    assert measured.unanswered_s == pytest.approx(2.1)
    assert measured.unanswered_steady_s == 0


def test_figures_of_wrong_routes_and_failed_registrations() -> None:
    notes = (Note(10.5, "a", "registered"), Note(13, "b", "failed", "code 1"))
    measured = judged(lookup(A, 10.1), lookup(A | B, 10.3), notes=notes)
    assert measured.wrong == ["+0.20 s: T: b is missing"]
    assert (measured.registrations, measured.failed_registrations) == (2, 1)
    assert measured.last_trouble_s == pytest.approx(1.0)


def test_a_registration_is_lost_that_is_not_repeated_in_time() -> None:
    notes = [Note(11, "a", "registered"), Note(13, "b", "registered"), Note(99, "a", "registered")]
    assert unrepeated(notes, ["a", "b"], 12, within_s=12) == {"a"}


FINE = judged(lookup(A | B, 10.0), lookup(A | B, 11.0))


def test_nothing_is_broken_where_all_is_right() -> None:
    assert [*broken(Promise(), FINE, set(), Counted(10, 10, 0, ""))] == []


FAILED = judged(lookup({}, 11.0, error="code 1"), lookup(A | B, 16.0))
REFUSED = judged(notes=(Note(11, "a", "failed", "code 1"),))


@pytest.mark.parametrize(
    ("promise", "measured", "missing", "counted", "words"),
    [
        pytest.param(Promise(), judged(lookup(A)), set(), None, "1 wrong routes", id="wrong route"),
        pytest.param(Promise(), FINE, {"a"}, None, "1 registrations lost: a", id="lost registration"),
        pytest.param(Promise(), FAILED, set(), None, "1 lookups failed", id="failed lookup"),
        pytest.param(
            Promise(lookups_fail=Topics.CHANGING), FAILED, set(), None, "1 lookups failed", id="steady topic"
        ),
        pytest.param(
            Promise(lookups_fail=Topics.ALL), FAILED, set(), None, "5.1 s without a right", id="too long"
        ),
        pytest.param(Promise(), REFUSED, set(), None, "1 registrations failed", id="refused"),
        pytest.param(
            Promise(registrations_fail=True, recovers_s=-2.0),
            REFUSED,
            set(),
            None,
            "not recovered",
            id="late",
        ),
        pytest.param(Promise(), FINE, set(), Counted(10, 9, 0, ""), "1 messages lost", id="lost message"),
        pytest.param(Promise(), FINE, set(), Counted(9, 9, 2, "no"), "2 sends failed: no", id="send"),
    ],
)
def test_each_promise_can_be_broken(
    promise: Promise, measured: Figures, missing: set[str], counted: Counted | None, words: str
) -> None:
    assert words in "; ".join(broken(promise, measured, missing, counted))
