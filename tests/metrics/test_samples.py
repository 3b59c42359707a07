"""Labels of what peers name: so many, and no two series alike."""

from metrics.catalogue import NAMED, OTHER
from metrics.samples import named


def test_all_are_named_where_they_are_few() -> None:
    assert named({"b": 2.0, "a": 1.0}, min) == {"a": 1.0, "b": 2.0}


def test_what_is_not_named_is_joined() -> None:
    values = {f"{number:03}": float(number) for number in range(NAMED + 3)}
    shown = named(values, min)
    assert len(shown) == NAMED + 1
    assert (shown["000"], shown[OTHER]) == (0.0, float(NAMED))


def test_a_name_that_is_that_of_all_others_is_one_of_them() -> None:
    values = {f"{number:03}": float(number) for number in range(NAMED)} | {OTHER: -1.0, "zzz": 7.0}
    assert named(values, min)[OTHER] == -1.0
