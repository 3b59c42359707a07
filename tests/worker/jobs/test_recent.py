"""Keys that came just now."""

from worker.jobs.recent import MOST, Recent


def test_a_key_is_new_once() -> None:
    recent = Recent()
    assert [recent.is_new(key) for key in ("a", "b", "a", "a")] == [True, True, False, False]


def test_the_one_that_came_longest_ago_is_forgotten() -> None:
    recent = Recent()
    for key in range(MOST):
        recent.is_new(key)
    assert not recent.is_new(0)
    recent.is_new("one more")
    assert recent.is_new(1)
    assert not recent.is_new(0)
