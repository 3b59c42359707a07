"""The copy that counts nothing: each place that is cut out is there, once."""

import pytest

from bench import uncounted


@pytest.mark.parametrize("name", uncounted.CUTS)
def test_what_is_cut_out_is_there(name: str) -> None:
    text = (uncounted.ROOT / name).read_text()
    rest = uncounted.cut(name, text, uncounted.CUTS[name])
    assert rest != text
    if name.endswith(".py"):
        compile(rest, name, "exec")


def test_a_place_that_has_changed_ends_the_bench() -> None:
    with pytest.raises(RuntimeError, match=r"worker/x\.py has this 0 times"):
        uncounted.cut("worker/x.py", "a = 1\n", (("b = 1\n", ""),))
