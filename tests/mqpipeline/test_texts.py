"""Errors of others as one line."""

import pytest

from mqpipeline.texts import one_line


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("one\n  two", "one two"),
        ("\x1b[31mred\x1b[0m", "red"),
        (
            "Json error\n   0: <unknown>\n  12: start_thread\n             at ./nptl/x.c:442:8\n  13: clone3\n",
            "Json error",
        ),
        ("12: no frame\n3: nor this", "12: no frame 3: nor this"),
    ],
    ids=["lines", "colours", "frames of Rust", "numbers"],
)
def test_one_line(text: str, line: str) -> None:
    assert one_line(ValueError(text)) == line
