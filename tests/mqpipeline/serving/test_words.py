"""How the page says names, times and shares."""

import pytest

from mqpipeline.serving.page import words
from mqpipeline.serving.page.words import DAY_MS, HOUR_MS, MINUTE_MS
from tests.mqpipeline.serving.example import W0


def plain(text: str) -> str:
    return text.replace(words.SPACE, " ")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "\N{EN DASH}"),
        (1.0, "100 %"),
        (0.85, "85.00 %"),
        (0.0, "0.00 %"),
        (0.903448, "90.34 %"),
        (0.99999, "99.99900 %"),
        (0.999954, "99.9954 %"),
        (0.9999999, "99.99999 %"),
        (0.99999999999, "99.99999 %"),
        (1 - 2**-53, "99.99999 %"),
        (-0.5, "-50.00 %"),
    ],
)
def test_a_share_is_never_rounded_up(value: float | None, said: str) -> None:
    assert plain(words.share(value)) == said


@pytest.mark.parametrize(
    ("value", "said"), [(0.999, "99.9 %"), (0.9995, "99.95 %"), (0.99999, "99.999 %"), (1.0, "100 %")]
)
def test_an_objective_is_said_as_it_is_set(value: float, said: str) -> None:
    assert plain(words.objective(value)) == said


@pytest.mark.parametrize(
    ("ms", "said"),
    [
        (None, "\N{EN DASH}"),
        (0, "0 ms"),
        (999.4, "999 ms"),
        (1000, "1 s"),
        (3400.0, "3.4 s"),
        (59_999, "60 s"),
        (MINUTE_MS, "1 min"),
        (119_600, "2 min"),
        (90_000, "1 min 30 s"),
        (HOUR_MS, "1 h"),
        (HOUR_MS + 59 * MINUTE_MS, "1 h 59 min"),
        (DAY_MS + 2 * HOUR_MS + 1, "1 d 2 h"),
        (400 * DAY_MS, "400 d"),
    ],
)
def test_durations(ms: float | None, said: str) -> None:
    assert plain(words.duration(ms)) == said


def test_times_are_utc() -> None:
    assert words.moment(W0 + 61_000) == "2026-01-01 00:01:01"
    assert words.moment(None) == "\N{EN DASH}"
    assert (plain(words.day(W0)), words.clock(W0)) == ("1 Jan", "00:00")


@pytest.mark.parametrize(
    ("count", "said"), [(0, "0 holes"), (1, "1 hole"), (2, "2 holes"), (1_234_567, "1 234 567 holes")]
)
def test_counts(count: int, said: str) -> None:
    assert plain(words.plural(count, "hole")) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("orders", "orders"),
        ("a\nb\x00c\x1b[31m", "a\ufffdb\ufffdc\ufffd[31m"),
        ("half \ud800 pair", "half \ufffd pair"),
        ("<b>", "<b>"),
    ],
)
def test_names_stay_on_their_line(text: str, said: str) -> None:
    assert words.name(text) == said


def test_a_unit_without_its_kind() -> None:
    assert words.unit_name("broker:c1:a") == "c1:a"
