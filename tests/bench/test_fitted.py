"""Lines through measured costs."""

import pytest

from bench.fitted import fitted


def test_a_line_goes_through_points_of_a_line() -> None:
    line = fitted([(10, 120.0), (100, 300.0), (1_000, 2_100.0)])
    assert line.fixed == pytest.approx(100)
    assert line.each == pytest.approx(2)
    assert line.points == ((10, 120.0), (100, 300.0), (1_000, 2_100.0))
    assert line.at(50) == pytest.approx(200)


def test_errors_are_relative() -> None:
    """Half as much at the largest size counts no more than half as much at the smallest."""
    line = fitted([(1, 10.0), (10, 100.0), (100, 500.0)])
    assert line.at(1) == pytest.approx(10, rel=0.4)


def test_no_part_is_below_0() -> None:
    falling = fitted([(1, 30.0), (2, 20.0), (3, 10.0)])
    assert falling.each == 0
    assert 10 <= falling.fixed <= 20
    steep = fitted([(10, 1.0), (20, 30.0), (30, 60.0)])
    assert steep.fixed == 0
    assert steep.each > 0


def test_what_costs_nothing() -> None:
    line = fitted([(1, 0.0), (2, 0.0), (3, 0.0)])
    assert line.at(5) == 0
