"""The judge of callers finds callers that were let in or cut off, and only that."""

import pytest

from faults.access import AGAIN_S, RULES, SETTLED_S, Enforcement, complaints, counts
from faults.callers import KEY, NEW_TOKEN, REVOKED_KEY_OF, TOKEN, UNKNOWN_TOKEN, WRITER, Asked, Outcome
from faults.judgement import Span

LET_IN, TURNED_AWAY, STORE_AWAY = Outcome.LET_IN, Outcome.TURNED_AWAY, Outcome.STORE_AWAY
SPAN, LASTS_S, RECOVERS_S = Span(10, 21), 10.0, 3.0
BEFORE, BEGUN, MEANWHILE, SOON, LATER = 5, 10.5, 15, 22, 22 + RECOVERS_S + AGAIN_S
AWAY = Enforcement(away=True)
EMPTY = Enforcement(tokens_lost=True)


def one(caller: str, at: float, outcome: Outcome) -> Asked:
    return Asked(caller, at, at + 0.1, outcome, "answer")


def fine(enforcement: Enforcement) -> list[Asked]:
    """All callers, answered as they should be."""
    asked = []
    for caller, rule in RULES.items():
        is_gone = enforcement.tokens_lost and caller in (TOKEN, NEW_TOKEN, WRITER)
        asked += [
            one(caller, BEFORE, rule.before),
            one(caller, BEGUN, STORE_AWAY),
            one(caller, MEANWHILE, rule.without),
            one(caller, SOON, Outcome.UNANSWERED),
            one(caller, LATER, TURNED_AWAY if is_gone else rule.before),
        ]
    return asked


def judged(asked: list[Asked], enforcement: Enforcement = AWAY) -> list[str]:
    return [*complaints(asked, SPAN, enforcement, lasts_s=LASTS_S, recovers_s=RECOVERS_S)]


@pytest.mark.parametrize("enforcement", [AWAY, EMPTY])
def test_nothing_is_broken_where_all_is_right(enforcement: Enforcement) -> None:
    assert judged(fine(enforcement), enforcement) == []


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(one(KEY, MEANWHILE, TURNED_AWAY), id="cut off"),
        pytest.param(one(KEY, MEANWHILE, STORE_AWAY), id="a key needs no store"),
        pytest.param(one(TOKEN, MEANWHILE, STORE_AWAY), id="nor a token that was seen"),
        pytest.param(one(NEW_TOKEN, MEANWHILE, LET_IN), id="a new token is not known"),
        pytest.param(one(WRITER, SOON, TURNED_AWAY), id="a change that is refused"),
        pytest.param(one(REVOKED_KEY_OF, SOON, LET_IN), id="a revoked key is let in"),
        pytest.param(one(UNKNOWN_TOKEN, MEANWHILE, TURNED_AWAY), id="only the store can know"),
        pytest.param(one(WRITER, LATER, STORE_AWAY), id="not as before"),
        pytest.param(one(TOKEN, LATER, TURNED_AWAY), id="cut off for good"),
        pytest.param(one(KEY, BEFORE, STORE_AWAY), id="not right before"),
    ],
)
def test_each_rule_can_be_broken(wrong: Asked) -> None:
    (complaint,) = judged([*fine(AWAY), wrong])
    assert complaint == f"{wrong.caller} {wrong.begin - 10:+.1f} s: {wrong.outcome.value} (answer)"


def test_a_worker_that_begins_without_the_store_may_answer_so_and_lets_no_revoked_key_in() -> None:
    begins = Enforcement(away=True, workers_begin=True)
    asked = [*fine(AWAY), one(KEY, MEANWHILE, STORE_AWAY), one(REVOKED_KEY_OF, MEANWHILE, STORE_AWAY)]
    assert judged(asked, begins) == []
    assert judged([*asked, one(REVOKED_KEY_OF, MEANWHILE, LET_IN)], begins) == [
        "revoked key +5.0 s: let in (answer)"
    ]


def test_a_token_may_be_gone_with_its_store_and_no_other_credential() -> None:
    assert judged([*fine(EMPTY), one(TOKEN, SOON, TURNED_AWAY)], EMPTY) == []
    assert len(judged([*fine(EMPTY), one(KEY, SOON, TURNED_AWAY)], EMPTY)) == 1


def test_a_caller_that_did_not_ask_is_missed() -> None:
    asked = [of for of in fine(AWAY) if of.caller != KEY or SPAN.begin < of.begin < SPAN.begin + SETTLED_S]
    assert judged(asked) == ["key was not asked after or before or meanwhile"]


def test_counts_are_of_the_time_from_the_fault_on() -> None:
    (of_key, *_) = counts(fine(AWAY), SPAN, AWAY)
    assert of_key.outcomes == {"store away": 1, "let in": 2, "no answer": 1}
    assert of_key.again_s == pytest.approx(SOON + 0.1 - SPAN.end)
