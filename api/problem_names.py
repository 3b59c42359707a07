"""What every problem document has in common (RFC 9457), whether the application or its server writes it."""

from http import HTTPStatus
from typing import Final

MEDIA_TYPE: Final = "application/problem+json"
RETRY_AFTER_S: Final = "1"
TYPES: Final = "urn:redis-namesrv:"
TITLES: Final = {413: "Request Entity Too Large", 422: "Unprocessable Entity"}
"""Phrases that Python 3.13 changed; a client of this API sees the same whichever it runs on."""


def title_of(status: int) -> str:
    """Return the phrase of a status."""
    return TITLES.get(status) or HTTPStatus(status).phrase


def type_of(kind: str) -> str:
    """Return the type of a problem, by its last part; the status says all where there is none."""
    return f"{TYPES}{kind}" if kind else "about:blank"


def kind_of(type_: str) -> str:
    """Return the last part of the type of a problem, "" where the status says all."""
    return type_.removeprefix(TYPES) if type_.startswith(TYPES) else ""
