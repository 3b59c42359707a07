"""A request on its way in: collected until it is whole, so that no thread has to wait for the rest of it."""

from typing import Any

from gunicorn.http.errors import ParseException
from gunicorn.http.parser import RequestParser

from api.transport.body_end import BodyEnd, body_end
from api.transport.given import Given
from api.transport.limits import Limits, Phase
from api.transport.refusal import Refusal, malformed

EMPTY_LINE = b"\r\n"
HEAD_END = b"\r\n\r\n"


class Arrival(RequestParser):  # type: ignore[misc]
    """gunicorn's parser over bytes that are there: heads, bodies and their rules are its own."""

    def __init__(self, cfg: Any, client: Any, limits: Limits) -> None:
        self._source = Given()
        super().__init__(cfg, self._source, client)
        self._limits = limits
        self._come = bytearray()
        self._searched = 0
        self._request: Any = None
        self._body_end: BodyEnd = lambda come: 0
        self._given = 0

    @property
    def held(self) -> int:
        """Bytes in memory: what has come, and the request that a thread has."""
        return len(self._come) + self._given

    @property
    def path(self) -> str:
        """Return the path of the request that is whole."""
        return str(self._request.path)

    def feed(self, data: bytes) -> None:
        """Add what has come."""
        self._come += data

    def advance(self) -> Phase:
        """Return which part of the request is missing: HEAD, BODY, none (WHOLE), or all of it (IDLE).

        Raises Refusal."""
        if self._request is None and not self._take_head():
            return Phase.HEAD if self._come else Phase.IDLE
        end = self._body_end(self._come)
        if end is None:
            return Phase.BODY
        self._request._expected_100_continue = False  # the body is here, or was asked for
        self._give(end)
        return Phase.WHOLE

    def take_expectation(self) -> bool:
        """Return whether the peer waits for a `100 Continue` before it sends the body, once."""
        expected = self._request is not None and self._request._expected_100_continue
        if expected:
            self._request._expected_100_continue = False
        return bool(expected)

    def discard(self) -> None:
        """Forget what has come: the request was refused."""
        self._come = bytearray()
        self._given = 0

    def __next__(self) -> Any:
        """Called by gunicorn in a thread: return the request that is whole."""
        request, self._request = self._request, None
        if request is None:
            raise StopIteration
        return request

    def finish_body(self, deadline: float | None = None) -> bool:
        """Called by gunicorn behind an answer: read what the application had no use for, and return whether another
        request may follow. None does a malformed body: a second answer would be taken for that of another request."""
        try:
            return bool(super().finish_body(deadline=deadline))
        except ParseException:
            return False

    def _take_head(self) -> bool:
        self._given = 0
        while self._come.startswith(EMPTY_LINE):  # RFC 9112 section 2.2
            del self._come[: len(EMPTY_LINE)]
        end = self._come.find(HEAD_END, self._searched)
        length = len(self._come) if end < 0 else end + len(HEAD_END)
        if length > self._limits.head_bytes:
            raise Refusal(
                431, f"a head may have {self._limits.head_bytes} bytes (httpHeadMaxBytes)", "httpHeadMaxBytes"
            )
        self._searched = 0 if end >= 0 else max(0, len(self._come) - len(HEAD_END) + 1)
        if end < 0:
            return False
        self._give(length)
        try:
            self._request = super().__next__()
        except ParseException as error:
            raise malformed(error) from error
        self._body_end = body_end(self._request.body.reader, self._limits.body_bytes)
        return True

    def _give(self, length: int) -> None:
        """Move bytes to where gunicorn reads."""
        self._source.give(bytes(self._come[:length]))
        del self._come[:length]
        self._given += length
