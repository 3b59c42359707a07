"""Answers of the endpoint that spans are sent to: bounded, as that may be any server."""

from io import BytesIO
from typing import Any, Final

from requests import PreparedRequest, Response, Session

__all__ = ["BoundedSession"]

ANSWER_MOST: Final = 1 << 16
"""Bytes of an answer that are read; a collector's have a few hundred."""


class BoundedSession(Session):
    """Reads so much of an answer, as it came, and closes the connection of a longer one."""

    def send(self, request: PreparedRequest, **settings: Any) -> Response:
        """Return the answer to a request, its body cut. Raises what requests and urllib3 raise."""
        response = super().send(request, **settings | {"stream": True})
        answer = response.raw
        body = answer.read(ANSWER_MOST, decode_content=False)
        if len(body) == ANSWER_MOST:
            answer.close()
        answer.release_conn()
        response.raw = BytesIO(body)
        return response
