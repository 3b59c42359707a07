"""Java properties: the bodies of 318 and 319, and configuration files."""

import re
from collections.abc import Mapping
from typing import Final

import javaproperties

CONTINUED_LINES_MAX: Final = 500
"""Most continued lines of a text; parsing time grows with their square, to about 5 ms at this limit."""
_CONTINUED: Final = re.compile(r"\\[\r\n]")


class PropertiesError(ValueError):
    """The text has a malformed \\u escape, or too many continued lines."""


def parse_properties(text: str) -> dict[str, str]:
    """Return the entries of a properties text; of equal keys the last counts. Raises PropertiesError.

    A lone surrogate, which an escape can produce, becomes a question mark, as in Java's UTF-8 encoder."""
    if len(_CONTINUED.findall(text)) > CONTINUED_LINES_MAX:
        raise PropertiesError(f"more than {CONTINUED_LINES_MAX} continued lines")
    try:
        entries = javaproperties.loads(text)
    except javaproperties.InvalidUEscapeError as error:
        raise PropertiesError(str(error)) from error
    return {_encodable(key): _encodable(value) for key, value in entries.items()}


def format_properties(entries: Mapping[str, str]) -> str:
    """Return a line `key=value` for each entry, without escapes: the body of GET_NAMESRV_CONFIG."""
    return "".join(f"{key}={value}\n" for key, value in entries.items())


def write_properties(entries: Mapping[str, str]) -> str:
    """Return the text of a properties file, from which `parse_properties` returns the same entries."""
    return javaproperties.dumps(dict(entries), timestamp=False)


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
