"""What a look finds, which differences last, and what a result says of many."""

from typing import Any, Final

import pytest

from mqns.cli.doctor.differences import Difference
from mqns.cli.doctor.facts import KV, ROUTES, Facts, NameServerFacts, Refusal
from mqns.cli.drift.grace import Lasting, looks_in
from mqns.cli.drift.look import Look, Unanswered, compared
from mqns.cli.drift.result import CHARACTERS, EXAMPLES, document, line
from tests.mqns.cli.doctor.rows import ADDRESSES, A, B, server, without

TD: Final = Difference("topic-missing", "TD", f"unknown at {B}")
KEY: Final = Difference("kv-differs", "n k", "'1' at A, nothing at B")
SILENT: Final = Look((), (Unanswered(B, "no answer"),))
REFUSED: Final = Refusal(16, "no permission")


def found(*servers: NameServerFacts) -> list[tuple[str, str]]:
    return [(one.kind, one.subject) for one in compared(Facts(servers)).differences]


def test_two_that_agree() -> None:
    assert compared(Facts((server(A), server(B)))) == Look()


def test_each_thing_that_differs_is_a_difference_of_its_own() -> None:
    """A finding of the doctor tells of several at once."""
    assert found(server(A), server(B, without(ADDRESSES, "broker-b"), {})) == [
        ("broker-missing", "broker-b 10.0.0.3:10911"),
        ("topic-missing", "TA"),
        ("topic-missing", "TB"),
    ]
    fewer = {"TA": {"broker-a": (4, 8, 6)}, "TB": {"broker-a": (4, 4, 4)}}
    assert found(server(A), server(B, ADDRESSES, fewer)) == [
        ("queues-missing", "TA of broker-b"),
        ("queues-differ", "TA of broker-a"),
        ("queues-differ", "TB of broker-a"),
    ]


def test_a_difference_says_what_each_has() -> None:
    (one,) = compared(Facts((server(A, kv={"n": {"k": "1"}}), server(B, kv={"n": {}})))).differences
    assert one == Difference("kv-differs", "n k", f"'1' at {A}, nothing at {B}")


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"failure": "not connected: refused"}, "not connected: refused"),
        ({"store_away": ("code 1",)}, "its store is away: code 1"),
        ({"refusals": {ROUTES: REFUSED}}, "routes: refused (no permission)"),
        ({"refusals": {f"{KV} n": REFUSED}}, "KV configuration n: refused (no permission)"),
    ],
    ids=["no answer", "no store", "no routes", "no KV"],
)
def test_one_that_cannot_be_compared_has_no_differences(more: dict[str, Any], reason: str) -> None:
    look = compared(Facts((server(A), server(B, {}, {}, **more))))
    assert look == Look((), (Unanswered(B, reason),))


@pytest.mark.parametrize(
    ("grace_s", "every_s", "looks"), [(0, 60, 1), (60, 60, 2), (61, 60, 3), (60, 10, 7), (10, 60, 2)]
)
def test_so_many_looks_are_in_the_grace(grace_s: float, every_s: float, looks: int) -> None:
    assert looks_in(grace_s, every_s) == looks


def test_a_difference_counts_when_it_was_seen_in_so_many_looks() -> None:
    lasting = Lasting(3)
    assert [lasting.of(Look((TD,))) for _ in range(3)] == [None, None, Look((TD,))]
    assert lasting.of(Look((TD, KEY))) == Look((TD,))
    assert lasting.of(Look((KEY,))) == Look()
    assert lasting.of(Look((TD, KEY))) == Look((KEY,))


def test_one_that_comes_and_goes_is_no_drift() -> None:
    lasting = Lasting(2)
    looks = [Look((TD,)), Look(), Look((TD,)), Look()]
    assert [lasting.of(look) for look in looks] == [None, Look(), Look(), Look()]


def test_agreement_is_known_at_once() -> None:
    assert Lasting(3).of(Look()) == Look()


def test_a_look_without_an_answer_is_told_at_once_and_ends_no_row_of_looks() -> None:
    lasting = Lasting(2)
    looks = [SILENT, Look((TD,)), SILENT, Look((TD,))]
    assert [lasting.of(look) for look in looks] == [SILENT, None, SILENT, Look((TD,))]


def test_a_value_that_changes_all_the_time_differs_all_the_time() -> None:
    lasting = Lasting(2)
    other = Difference(KEY.kind, KEY.subject, "'2' at A, '3' at B")
    assert [lasting.of(Look((KEY,))), lasting.of(Look((other,)))] == [None, Look((other,))]


def test_a_result_has_some_of_each_kind_and_the_number_of_all() -> None:
    topics = tuple(Difference("topic-missing", f"T{number:03}", "unknown") for number in range(100))
    result = document((A, B), Look((*topics, KEY)))
    assert result.counts == {"topic-missing": 100, "kv-differs": 1}
    assert [one.subject for one in result.examples] == [*(f"T{n:03}" for n in range(EXAMPLES - 1)), "n k"]
    assert line(result) == (
        f"{A} and {B} differ: 100 topic-missing (T000, T001, T002, T003, T004 and 14 more), 1 kv-differs (n k)"
    )


@pytest.mark.parametrize(
    "text", ["x" * 301, "\x1b" * 300, "\n\t\ud800" * 100, ""], ids=["long", "escapes", "lines", "none"]
)
def test_texts_of_peers_are_one_short_line(text: str) -> None:
    (example,) = document((A, B), Look((Difference("kv-differs", text, text),))).examples
    for shown in (example.subject, example.what):
        assert 0 < len(shown) <= CHARACTERS
        assert shown.isprintable()
