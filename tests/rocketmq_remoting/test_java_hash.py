"""Java's String.hashCode."""

import pytest

from rocketmq_remoting.java_hash import java_hash


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", 0),
        ("TagA", 2598919),
        ("TagB", 2598920),
        ("a|b", 97159),
        pytest.param("polygenelubricants", -(2**31), id="the least number"),
        pytest.param("zzzzzz", -685785664, id="wrapped"),
        pytest.param("😀", 1772899, id="two code units"),
        pytest.param("\ud83d", 0xD83D, id="half of a pair"),
    ],
)
def test_a_text_has_the_hash_java_gives_it(text: str, code: int) -> None:
    assert java_hash(text) == code
