"""Java properties: the body of 318 and 319, and configuration files."""

import re
from collections.abc import Mapping
from typing import Final

import javaproperties

CONTINUED_MOST: Final = 500
"""Continued lines in a text; the time that reading takes grows with their square, to some 5 ms here."""
_CONTINUED: Final = re.compile(r"\\[\r\n]")


class PropertiesError(ValueError):
    """The text has a malformed \\u escape, or too many continued lines."""


def parse_properties(text: str) -> dict[str, str]:
    """All entries of a properties text, the last of equal keys; PropertiesError for what cannot be read.

    Half a surrogate pair, which an escape can spell, becomes a question mark as it would in Java's UTF-8."""
    if len(_CONTINUED.findall(text)) > CONTINUED_MOST:
        raise PropertiesError(f"more than {CONTINUED_MOST} continued lines")
    try:
        entries = javaproperties.loads(text)
    except javaproperties.InvalidUEscapeError as error:
        raise PropertiesError(str(error)) from error
    return {_encodable(key): _encodable(value) for key, value in entries.items()}


def format_properties(entries: Mapping[str, str]) -> str:
    """A line `key=value` for each entry, nothing escaped: the body of GET_NAMESRV_CONFIG."""
    return "".join(f"{key}={value}\n" for key, value in entries.items())


def write_properties(entries: Mapping[str, str]) -> str:
    """The text of a properties file: what `parse_properties` reads back to the same entries."""
    return javaproperties.dumps(dict(entries), timestamp=False)


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
