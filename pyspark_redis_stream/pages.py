"""Reading a range of a stream page by page; while one is taken apart, the server makes the next."""

import secrets
from collections.abc import Iterator
from typing import Any, NamedTuple

import hiredis
from redis.exceptions import ConnectionError, ResponseError

from pyspark_redis_stream.connection import Store
from pyspark_redis_stream.ids import Id, parsed
from pyspark_redis_stream.replies import Page, last_id, page_of, page_of_entries

FIRST = 100  # entries of the first page, before it is known how large they are
PAGE_BYTES = 512 * 1024  # aimed at: a server does nothing else meanwhile
BUFFER = 64 * 1024
AWAY = (b"-LOADING", b"-MASTERDOWN", b"-CLUSTERDOWN", b"-TRYAGAIN", b"-BUSY")
MOVED = (b"-MOVED", b"-ASK")


class Range(NamedTuple):
    """At most `most` entries of `stream` with ids in [first, last]."""

    stream: str
    first: Id
    last: Id
    most: int


def pages(store: Store, stream: str, first: Id, last: Id, most: int) -> Iterator[Page]:
    """The entries with ids in [first, last], up to `most` a page. Raises ResponseError (such as WRONGTYPE), and
    what `Store.attempt` raises; a lost connection goes unnoticed."""
    wanted = Range(stream, first, last, min(FIRST, most))
    line = _Line(store, most)
    try:
        while True:
            page, behind = store.attempt(lambda: line.page(wanted))  # noqa: B023
            if len(page.ids):
                yield page
            if behind is None:
                return
            wanted = behind
    finally:
        line.close()


class _Line:
    """A connection of redis-py's whose replies are read as bytes; each asks for up to `most` entries."""

    def __init__(self, store: Store, most: int) -> None:
        self._store = store
        self._most = most
        self._pool: Any = None
        self._connection: Any = None
        self._asked: bytes | None = None  # what ends the reply
        self._buffer = bytearray(BUFFER)

    def page(self, wanted: Range) -> tuple[Page, Range | None]:
        """The page, and what to ask for next, which is on its way already; None if there is no more."""
        try:
            if self._asked is None:
                self._send(wanted)
            reply = self._reply()
            if bytes(reply[:1]) != b"-":
                return self._page(wanted, reply)
            error = bytes(reply).strip()
        except BaseException:
            self.close()
            raise
        if error.startswith(MOVED):  # the client knows how to follow
            self.close()
            page = page_of_entries(self._followed(wanted))
            return page, self._behind(wanted, page, PAGE_BYTES)
        kind = ConnectionError if error.startswith(AWAY) else ResponseError
        raise kind(f"{wanted.stream}: {error[1:].decode(errors='replace')}")

    def close(self) -> None:
        """Give the connection back; one with a reply under way is cut."""
        if self._connection is not None:
            if self._asked is not None:
                self._connection.disconnect()
            self._pool.release(self._connection)
        self._connection = self._asked = None

    def _page(self, wanted: Range, reply: memoryview) -> tuple[Page, Range | None]:
        """The server works on the next reply while we take this one apart, if it seems clear where that begins."""
        last = last_id(reply, wanted.most)
        ahead = self._next(wanted, last, len(reply)) if last else None
        self._ask(ahead)
        page = page_of(reply)
        behind = self._behind(wanted, page, len(reply))
        if behind != ahead:
            self.close()
            self._ask(behind)
        return page, behind

    def _behind(self, wanted: Range, page: Page, size: int) -> Range | None:
        """What to ask for after a page of `size` bytes, if it is full."""
        full = len(page.ids) == wanted.most
        return self._next(wanted, page.ids[-1].as_py(), size) if full else None

    def _next(self, wanted: Range, last: bytes, size: int) -> Range:
        count = min(self._most, max(wanted.most * PAGE_BYTES // max(size, 1), 1))
        return Range(wanted.stream, parsed(last).after, wanted.last, count)

    def _ask(self, wanted: Range | None) -> None:
        """Send the request ahead; if that fails, `page` sends it again."""
        try:
            if wanted is not None:
                self._send(wanted)
        except (ConnectionError, OSError):
            self.close()

    def _send(self, wanted: Range) -> None:
        if self._connection is None:
            self._pool = self._store.server_of(wanted.stream).connection_pool
            self._connection = self._pool.get_connection()
        # its echo is the end of the reply: nothing that was stored before can hold it
        end = secrets.token_bytes(16)
        self._asked = b"$16\r\n" + end + b"\r\n"
        words = ("XRANGE", wanted.stream, str(wanted.first), str(wanted.last), "COUNT", wanted.most)
        packed = hiredis.pack_command(words) + hiredis.pack_command(("ECHO", end))  # type: ignore[arg-type]
        self._connection.send_packed_command([packed], check_health=False)

    def _reply(self) -> memoryview:
        """The reply to what was asked, as long as no other is read."""
        assert self._asked is not None
        end, got = self._asked, 0
        receive = self._connection._sock.recv_into
        while got < len(end) or not self._buffer.endswith(end, 0, got):
            if got == len(self._buffer):
                self._buffer = self._buffer + bytes(got)
            received = receive(memoryview(self._buffer)[got:])
            if not received:
                raise ConnectionError("the server closed the connection")
            got += received
        self._asked = None
        return memoryview(self._buffer)[: got - len(end)]

    def _followed(self, wanted: Range) -> list[tuple[bytes, list[bytes]]]:
        entries = self._store.client.xrange(wanted.stream, str(wanted.first), str(wanted.last), wanted.most)
        return [
            (entry_id, [text for pair in fields.items() for text in pair]) for entry_id, fields in entries
        ]
