"""Each rule on histories of a few operations: what it lets pass, and what it names when it does not."""

import math
from pathlib import Path

import msgspec
import pytest

from faults.history import History, Model, Outage, Register, Value, furthest_behind_s, judge
from tests.history.by_hand import HERE, A, B, at_a, at_b, history, leaves, registers, sees, sees_address

MODEL = Model(behind_s=1.0, late_s=10.0, hold_s=60.0)
SHORT = 2.0  # a lease, in s
AWAY = Outage(20.0, 30.0)
ELSEWHERE = Register("b2", 0)


def registered(*more: object) -> History:
    """Version 1 from 1 s on, and what comes then."""
    return history(registers(1, 0.9, 1.0, at_a(1)), *more)  # type: ignore[arg-type]


AS_PROMISED = {
    "nothing was ever there": history(sees(1, 0, 1, None)),
    "seen while it is being written": history(
        registers(1, 1, 2, at_a(1)), sees(2, 1.4, 1.5, at_a(1)), sees(3, 1.6, 1.7, None)
    ),
    "behind, but not long": registered(
        registers(1, 2.0, 2.1, at_a(2)), sees(2, 3.0, 3.1, at_a(1)), sees(3, 2.1, 2.2, at_a(2))
    ),
    "back, but over another connection": registered(
        registers(1, 2.0, 2.1, at_a(2)), sees(2, 2.2, 2.3, at_a(2)), sees(3, 2.4, 2.5, at_a(1))
    ),
    "back, but asked for something else": registered(
        registers(1, 2.0, 2.1, at_a(2)),
        sees(2, 2.2, 2.3, at_a(2)),
        sees(2, 2.4, 2.5, at_a(1), topic="T1"),
    ),
    "two writes in the order of neither's beginning": registered(
        registers(1, 2.0, 3.0, at_a(2)),
        registers(2, 2.1, 2.9, at_b(3)),
        sees(3, 4.5, 4.6, at_a(2)),
    ),
    "an address that leaves after another took its place": registered(
        registers(2, 2.0, 2.1, at_b(2)), leaves(1, 3.0, 3.1, A), sees(3, 9.0, 9.1, at_b(2))
    ),
    "unanswered and done": registered(
        registers(2, 2.0, 3.0, at_b(2), answered=False), sees(3, 6.0, 6.1, at_b(2))
    ),
    "unanswered and not done": registered(
        registers(2, 2.0, 3.0, at_b(2), answered=False), sees(3, 16.0, 16.1, at_a(1))
    ),
    "unanswered and done after others saw that it was not": registered(
        registers(2, 2.0, 3.0, at_b(2), answered=False),
        sees(3, 6.0, 6.1, at_a(1)),
        sees(3, 7.0, 7.1, at_b(2)),
    ),
    "left without an answer": registered(leaves(1, 2.0, 3.0, A, answered=False), sees(3, 4.0, 4.1, None)),
    "a lease that ends": history(
        registers(1, 0.9, 1.0, at_a(1), lease_s=SHORT), sees(2, 2.8, 2.81, at_a(1)), sees(2, 3.1, 3.2, None)
    ),
    "a lease that is renewed": history(
        registers(1, 0.9, 1.0, at_a(1), lease_s=SHORT),
        registers(1, 2.5, 2.6, at_a(1), lease_s=SHORT),
        sees(2, 4.4, 4.5, at_a(1)),
    ),
    "registered again too soon to be written, while another took its place": registered(
        registers(2, 1.05, 1.06, at_b(2)), registers(1, 1.1, 1.11, at_a(1)), sees(1, 1.2, 1.3, at_b(2))
    ),
    "the same version again after it had left": registered(
        leaves(1, 2.0, 2.1, A), registers(1, 5.0, 5.1, at_a(1)), sees(2, 9.0, 9.1, at_a(1))
    ),
    "cluster info, which shows no version": registered(
        registers(2, 2.0, 2.1, at_b(2)), sees_address(3, 5.0, 5.1, B), sees(3, 5.2, 5.3, at_b(2))
    ),
}

NOT_AS_PROMISED = {
    "a version that was never written": (registered(sees(2, 2.0, 2.1, at_a(7))), "only what was written"),
    "a version at another's address": (
        registered(registers(2, 1.1, 1.2, at_b(2)), sees(3, 2.0, 2.1, Value(A, 2))),
        "only what was written",
    ),
    "registered again, but not so soon": (
        registered(
            registers(2, 1.05, 1.06, at_b(2)), registers(1, 1.3, 1.4, at_a(1)), sees(1, 1.5, 1.6, at_b(2))
        ),
        "own writes",
    ),
    "registered again so soon, but not as before": (
        registered(
            registers(2, 1.05, 1.06, at_b(2)), registers(1, 1.1, 1.11, at_a(3)), sees(1, 1.2, 1.3, at_b(2))
        ),
        "own writes",
    ),
    "registered again so soon, but over another connection": (
        registered(
            registers(2, 1.05, 1.06, at_b(2)), registers(3, 1.1, 1.11, at_a(1)), sees(3, 1.2, 1.3, at_b(2))
        ),
        "own writes",
    ),
    "registered again so soon after it left over the same connection": (
        registered(leaves(1, 1.01, 1.02, A), registers(1, 1.1, 1.11, at_a(1)), sees(1, 1.2, 1.3, None)),
        "own writes",
    ),
    "its own registration is not there yet": (registered(sees(1, 1.1, 1.2, None)), "own writes"),
    "the one before its own is still there": (
        registered(registers(1, 2.0, 2.1, at_a(2)), sees(1, 2.2, 2.3, at_a(1))),
        "own writes",
    ),
    "it has left, and is still there": (
        registered(leaves(1, 2.0, 2.1, A), sees(1, 2.2, 2.3, at_a(1))),
        "own writes",
    ),
    "back over one connection": (
        registered(
            registers(1, 2.0, 2.1, at_a(2)), sees(2, 2.2, 2.3, at_a(2)), sees(2, 2.4, 2.5, at_a(1))
        ),
        "never back",
    ),
    "its own registration has been forgotten for long": (
        registered(registers(1, 2.0, 2.1, at_a(2)), sees(1, 8.0, 8.1, at_a(1))),
        "own writes, not long behind",
    ),
    "replaced too long ago": (
        registered(registers(1, 2.0, 2.1, at_a(2)), sees(2, 3.2, 3.3, at_a(1))),
        "not long behind",
    ),
    "removed too long ago": (registered(leaves(1, 2.0, 2.1, A), sees(2, 3.2, 3.3, at_a(1))), "not long behind"),
    "removed too long ago, by cluster info": (
        registered(leaves(1, 2.0, 2.1, A), sees_address(2, 3.2, 3.3, A)),
        "not long behind",
    ),
    "registered too long ago not to be there": (registered(sees(2, 2.1, 2.2, None)), "leases last"),
    "its lease has ended": (
        history(registers(1, 0.9, 1.0, at_a(1), lease_s=SHORT), sees(2, 4.2, 4.3, at_a(1))),
        "leases end",
    ),
    "its lease has ended, which the next registration does not undo": (
        history(
            registers(1, 0.9, 1.0, at_a(1), lease_s=SHORT),
            sees(2, 4.2, 4.3, at_a(1)),
            registers(1, 4.5, 4.6, at_a(1), lease_s=SHORT),
        ),
        "leases end",
    ),
    "gone before its lease ends": (
        history(registers(1, 0.9, 1.0, at_a(1), lease_s=SHORT), sees(2, 2.6, 2.7, None)),
        "leases last",
    ),
    "another's leaving took it away": (
        registered(registers(2, 2.0, 2.1, at_b(2)), leaves(1, 3.0, 3.1, A), sees(3, 5.0, 5.1, None)),
        "leases last",
    ),
    "unanswered, and there after all too late": (
        registered(registers(2, 2.0, 3.0, at_b(2), answered=False), sees(3, 14.5, 14.6, at_a(1)),
                   sees(4, 15.0, 15.1, at_b(2)), sees(4, 19.0, 19.1, at_b(2))),
        "not long behind",
    ),
    "two readers saw two writes in different orders": (
        registered(
            registers(1, 2.0, 3.0, at_a(2)),
            registers(2, 2.0, 3.0, at_b(3)),
            sees(3, 3.1, 3.2, at_a(2)), sees(3, 3.3, 3.4, at_b(3)),
            sees(4, 3.1, 3.2, at_b(3)), sees(4, 3.3, 3.4, at_a(2)),
        ),
        "never back",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", AS_PROMISED)
def test_lets_pass(name: str) -> None:
    report = judge(AS_PROMISED[name], MODEL)
    assert report.ok, report


@pytest.mark.parametrize("name", NOT_AS_PROMISED)
def test_names_the_rule_that_is_broken(name: str) -> None:
    recorded, rule = NOT_AS_PROMISED[name]
    assert [complaint.rules for complaint in judge(recorded, MODEL).complaints] == [tuple(rule.split(", "))]


def test_an_outage_keeps_routes_as_they_were() -> None:
    """What left just before it is seen until the workers follow again, and no longer."""
    left = leaves(1, 19.5, 19.6, A)
    assert judge(registered(left, sees(2, 30.9, 31.0, at_a(1))), MODEL, [AWAY]).ok
    assert not judge(registered(left, sees(2, 30.9, 31.0, at_a(1))), MODEL).ok
    assert not judge(registered(left, sees(2, 32.1, 32.2, at_a(1))), MODEL, [AWAY]).ok


def test_an_outage_holds_leases() -> None:
    """Those that could not be renewed, for 60 s after it; they may end as well."""
    short = registers(1, 18.9, 19.0, at_a(1), lease_s=SHORT)
    assert judge(history(short, sees(2, 80.0, 80.1, at_a(1))), MODEL, [AWAY]).ok
    assert judge(history(short, sees(2, 32.0, 32.1, None)), MODEL, [AWAY]).ok
    assert not judge(history(short, sees(2, 92.5, 92.6, at_a(1))), MODEL, [AWAY]).ok
    assert not judge(history(short, sees(2, 32.0, 32.1, at_a(1))), MODEL).ok


def test_an_unanswered_request_may_come_through_at_the_end_of_an_outage() -> None:
    asked = registers(2, 21.0, 22.0, at_b(2), answered=False)
    late = sees(3, 39.0, 39.1, at_b(2))
    assert judge(registered(asked, sees(3, 38.0, 38.1, at_a(1)), late), MODEL, [AWAY]).ok
    assert not judge(registered(asked, sees(3, 38.0, 38.1, at_a(1)), late), MODEL).ok


def test_a_registration_repeated_at_once_may_take_effect_twice_in_an_outage() -> None:
    """As each acknowledged one: a request whose connection to the store broke is asked again."""
    recorded = registered(
        registers(1, 1.05, 30.9, at_a(1)),
        *(registers(2, began_s, began_s + 0.1, at_b(version)) for version, began_s in ((2, 25.0), (3, 27.0))),
        *(
            sees(3, began_s, began_s + 0.1, value)
            for began_s, value in ((25.2, at_b(2)), (26.0, at_a(1)), (27.2, at_b(3)), (28.0, at_a(1)))
        ),
    )
    assert judge(recorded, MODEL, [AWAY]).ok
    assert not judge(recorded, MODEL).ok


def test_a_store_may_have_lost_what_it_acknowledged_lately() -> None:
    """A failover: the registration of the last second is gone, or its broker is; what is older is not."""
    lossy = Outage(20.0, 21.0, loses_s=1.0)
    lost = registered(registers(1, 10.0, 10.1, at_a(2)), registers(1, 19.5, 19.6, at_a(3)))
    for seen, right in ((at_a(3), True), (at_a(2), True), (None, True), (at_a(1), False)):
        history = History((*lost.operations, sees(2, 25.0, 25.1, seen)))
        assert judge(history, MODEL, [lossy]).ok == right
        assert judge(history, MODEL, [Outage(20.0, 21.0)]).ok == (seen == at_a(3))


def test_a_store_that_came_back_empty_has_lost_all() -> None:
    """Its workers serve cached routes for 30 s."""
    empty = Outage(20.0, 21.0, converges_s=30.0, loses_s=math.inf)
    assert judge(registered(sees(2, 25.0, 25.1, None)), MODEL, [empty]).ok
    again = registers(1, 26.0, 26.1, at_a(2))
    assert judge(
        registered(sees(2, 25.0, 25.1, None), again, sees(2, 28.0, 28.1, at_a(2))), MODEL, [empty]
    ).ok
    assert not judge(registered(sees(2, 19.0, 19.1, None)), MODEL, [empty]).ok


def test_how_far_behind_readers_were() -> None:
    late = registered(registers(1, 2.0, 2.1, at_a(2)), sees(2, 2.4, 2.5, at_a(1)))
    assert furthest_behind_s(late, MODEL) == pytest.approx(0.3, abs=0.002)
    assert furthest_behind_s(registered(sees(2, 2.4, 2.5, at_a(1))), MODEL) < 0.002


def test_a_complaint_names_client_operation_and_time() -> None:
    recorded = registered(leaves(1, 2.0, 2.1, A), sees(2, 4.0, 4.1, at_a(1)))
    assert str(judge(recorded, MODEL)).splitlines() == [
        "3 operations on 1 places: not as promised",
        "b1/0: not long behind. 3.100..3.200 s c2, connection 2: asked for T0, saw version 1 at 127.41.0.1:10911",
        "  it saw what had been replaced or removed too long ago",
        "  just before, it could have been: nothing",
        "  what happened around it:",
        "    0.000..0.100 s c1, connection 1: register version 1 at 127.41.0.1:10911, lease 100 s",
        "    1.100..1.200 s c1, connection 1: unregister 127.41.0.1:10911",
    ]


def test_what_is_too_wide_is_undecided() -> None:
    wide = [registers(number, 0.0, 100.0, at_a(number)) for number in range(16)]
    elsewhere = msgspec.structs.replace(sees(1, 1.0, 2.0, None), place=ELSEWHERE)
    report = judge(history(*wide, sees(99, 200.0, 201.0, at_b(99)), elsewhere), MODEL)
    assert (report.ok, report.undecided, report.complaints) == (False, (HERE,), ())
    assert "b1/0: undecided" in str(report)


def test_after_an_empty_return_even_its_own_registration_may_not_be_seen() -> None:
    """Cached routes are served until all of their brokers are back, of a group for instance the slaves."""
    empty = Outage(20.0, 21.0, converges_s=30.0, loses_s=math.inf)
    own = registered(registers(1, 25.0, 25.1, at_a(2)), sees(1, 25.2, 25.3, at_a(1)))
    assert judge(own, MODEL, [empty]).ok
    assert not judge(own, MODEL, [Outage(20.0, 21.0, converges_s=30.0)]).ok


def test_a_history_can_be_kept(tmp_path: Path) -> None:
    recorded = registered(sees(2, 4.0, 4.1, at_a(1)))
    recorded.save(tmp_path / "history.json")
    assert History.load(tmp_path / "history.json") == recorded
