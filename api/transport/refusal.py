"""Answers of the server itself, to requests that never reach the application."""

import json
from collections.abc import Mapping
from typing import Final

from gunicorn.http import errors

from api.problem_names import MEDIA_TYPE, RETRY_AFTER_S, title_of, type_of

CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"

STATUSES: Final[Mapping[type[errors.ParseException], int]] = {
    errors.ForbiddenProxyRequest: 403,
    errors.LimitRequestLine: 414,
    errors.ExpectationFailed: 417,
    errors.LimitRequestHeaders: 431,
    errors.UnsupportedTransferCoding: 501,
}
"""Status codes of heads that gunicorn does not take; all others get 400."""
LONGEST: Final = 200
"""Characters of the text of an error, which has what the peer sent."""


class Refusal(Exception):
    """A request that is not read further; its connection is closed behind the answer. `limit` is the option that it
    exceeds, if it does."""

    def __init__(self, status: int, detail: str, limit: str = "") -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.limit = limit

    def encode(self) -> bytes:
        """Return the answer: a problem document."""
        title = title_of(self.status)
        document = {"type": type_of(""), "title": title, "status": self.status, "detail": self.detail}
        body = json.dumps(document, separators=(",", ":")).encode() + b"\n"
        headers = {"Content-Type": MEDIA_TYPE, "Content-Length": str(len(body)), "Connection": "close"}
        if self.status == 503:
            headers["Retry-After"] = RETRY_AFTER_S
        lines = [f"HTTP/1.1 {self.status} {title}", *(f"{name}: {text}" for name, text in headers.items())]
        return "\r\n".join([*lines, "", ""]).encode() + body


def malformed(error: errors.ParseException) -> Refusal:
    """Return the refusal of a request whose head gunicorn does not take."""
    return Refusal(STATUSES.get(type(error), 400), f"the head is malformed: {str(error)[:LONGEST]}")
