"""Java properties, as 318 and 319 carry them and files hold them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketmq_remoting.properties import (
    CONTINUED_LINES_MAX,
    PropertiesError,
    format_properties,
    parse_properties,
    write_properties,
)

TEXT = st.text(st.characters(codec="utf-8"))


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        pytest.param("", {}, id="nothing"),
        pytest.param("# a\n! b\n\n", {}, id="comments"),
        pytest.param("a=1\nb=2\n", {"a": "1", "b": "2"}, id="lines"),
        pytest.param("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}, id="other line ends"),
        pytest.param("a : 1\nb 2\nc\n", {"a": "1", "b": "2", "c": ""}, id="other separators"),
        pytest.param("a=1\\\n   2\n", {"a": "12"}, id="joined lines"),
        pytest.param("a=\\u4e3b\\t\\=\n", {"a": "主\t="}, id="escapes"),
        pytest.param("a=x=y\n", {"a": "x=y"}, id="a separator in the value"),
        pytest.param("a=1\na=2\n", {"a": "2"}, id="the last of equal keys"),
        pytest.param("a=主\n", {"a": "主"}, id="text beyond ASCII"),
        pytest.param("a=\\ud83d\\ude00\n", {"a": "😀"}, id="a surrogate pair"),
        pytest.param("a=\\ud83d\n", {"a": "?"}, id="half a surrogate pair"),
    ],
)
def test_properties_are_read_as_java_reads_them(text: str, entries: dict[str, str]) -> None:
    assert parse_properties(text) == entries


@pytest.mark.parametrize("text", ["a=\\u12", "a=\\uxyzw", "\\u=1"])
def test_a_malformed_escape_is_refused(text: str) -> None:
    with pytest.raises(PropertiesError):
        parse_properties(text)


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        entries = parse_properties(text)
    except PropertiesError:
        assert "\\u" in text
    else:
        "".join([*entries, *entries.values()]).encode()


def test_a_listing_escapes_nothing() -> None:
    assert format_properties({"a": "x=y", "b": "c:\\d"}) == "a=x=y\nb=c:\\d\n"


@given(st.dictionaries(TEXT, TEXT))
def test_a_file_is_read_back_as_it_was_written(entries: dict[str, str]) -> None:
    assert parse_properties(write_properties(entries)) == entries


def test_continued_lines_are_bounded() -> None:
    assert parse_properties("a=1\\\n" * CONTINUED_LINES_MAX) == {"a": "1" + "a=1" * (CONTINUED_LINES_MAX - 1)}
    for end in ("\n", "\r\n", "\r"):
        with pytest.raises(PropertiesError, match="continued"):
            parse_properties(f"a\\{end}" * (CONTINUED_LINES_MAX + 1))
