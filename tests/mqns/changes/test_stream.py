"""The stream of changes as a client reads it: over reconnects, refusals, and what is no stream."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from mqns.changes import stream as streams
from mqns.changes.messages import ChangeMessage, Entry
from mqns.changes.stream import ChangeStream, ChangesUnavailable
from mqns.errors import ConfigError
from tests.worker.scene import asynchronous

OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nConnection: close\r\n\r\n"


def event(at: str, reset: str | None = None) -> bytes:
    data = json.dumps({"id": at, "reset": reset, "events": [], "later": 1})
    return f"event: {'reset' if reset else 'change'}\nid: {at}\ndata: {data}\n\n".encode()


class Script:
    """A server that answers each connection with the next of its answers, and keeps the last one open."""

    def __init__(self, *answers: bytes) -> None:
        self._answers = list(answers)
        self.requests: list[str] = []
        self.url = ""

    @asynccontextmanager
    async def served(self) -> AsyncIterator["Script"]:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self.requests.append((await reader.readuntil(b"\r\n\r\n")).decode())
            writer.write(self._answers.pop(0))
            await writer.drain()
            if self._answers:
                writer.close()
            else:
                await reader.read()  # until the client goes

        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            host, port = server.sockets[0].getsockname()
            self.url = f"http://{host}:{port}"
            yield self


async def first(stream: ChangeStream, number: int) -> list[tuple[str, str | None]]:
    found: list[tuple[str, str | None]] = []
    async for message in stream.messages():
        found.append((message.id, message.reset))
        if len(found) == number:
            return found
    raise AssertionError("it ends")


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "RETRY_S", 0.01)


@asynchronous
async def test_it_goes_on_where_it_was_when_the_connection_ends() -> None:
    begins = b"retry: 10\nid: 1-0\n\n"
    script = Script(OK + begins + event("2-0"), OK + begins.replace(b"1-0", b"2-0") + event("3-0", "hole"))
    async with script.served():
        stream = ChangeStream(script.url, token="t", topic="A B", kinds=("kv_changed", "drain_changed"))
        assert await first(stream, 3) == [("1-0", "begun"), ("2-0", None), ("3-0", "hole")]
    assert stream.position == "3-0"
    assert script.requests[0].startswith(
        "GET /v1/watch?topic=A+B&kind=kv_changed%2Cdrain_changed HTTP/1.1\r\n"
    )
    assert "Authorization: Bearer t\r\n" in script.requests[0]
    assert "Last-Event-ID" not in script.requests[0]
    assert "Last-Event-ID: 2-0\r\n" in script.requests[1]


@asynchronous
async def test_a_position_without_a_message_is_one_to_go_on_from() -> None:
    async with Script(OK + b":\nid: 7-0\n\n", OK + event("8-0")).served() as script:
        assert await first(ChangeStream(script.url, after="5-0"), 1) == [("8-0", None)]
        assert ["Last-Event-ID: 5-0" in script.requests[0], "Last-Event-ID: 7-0" in script.requests[1]] == [
            True,
            True,
        ]


@asynchronous
async def test_a_server_that_is_busy_or_gone_is_asked_again() -> None:
    busy = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    async with Script(busy, b"", busy, OK + event("8-0")).served() as script:
        assert await first(ChangeStream(script.url, after="5-0"), 1) == [("8-0", None)]
        assert len(script.requests) == 4


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (
            b"HTTP/1.1 403 Forbidden\r\nContent-Length: 22\r\n\r\n" + b'{"detail":"access no"}',
            r"access no \(403\)",
        ),
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 1\r\n\r\nx", "status 404, and no changes"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Type: text/html\r\n\r\n{}",
            "status 200, and no changes",
        ),
        (OK + b"data: {}\n\n", "no message of a redis-namesrv"),
        (OK + b"data: \xff\n\n", "no message of a redis-namesrv"),
    ],
    ids=["refused", "older server", "another server", "no message", "no text"],
)
def test_what_will_not_be_better_is_an_error(answer: bytes, reason: str) -> None:
    async def read() -> None:
        async with Script(answer, b"").served() as script:
            await first(ChangeStream(script.url, after="5-0"), 1)

    with pytest.raises(ChangesUnavailable, match=reason):
        asyncio.run(asyncio.wait_for(read(), 10))


@pytest.mark.parametrize("url", ["", "localhost:8080", "ftp://x", "http://", "http://x:y"])
def test_what_is_no_url(url: str) -> None:
    with pytest.raises(ConfigError, match="URL"):
        ChangeStream(url)


ROWS = [["b1", "", "8,8,6,0", ["T1", "T2"]]]


def message(kind: str, **data: Any) -> ChangeMessage:
    return ChangeMessage("1-0", None, (Entry("1-0", 1, kind, data=data),))


@pytest.mark.parametrize(
    ("given", "concerned"),
    [
        (message("topics_changed", rows=ROWS), True),
        (message("topics_changed", rows=[["b9", "", "8,8,6,0", ["T9"]]]), False),
        (message("broker_removed", broker="b2"), True),
        (message("broker_removed", broker="b9"), False),
        (message("drain_changed", broker="b2"), True),
        (message("mappings_changed", rows=[["b9", "T1", None, {}]]), True),
        (message("kv_changed", kv_ns="ORDER_TOPIC_CONFIG", key="T1"), True),
        (message("kv_changed", kv_ns="n", key="k"), False),
        (message("hold_changed"), True),
        (message("topics_changed", rows="["), False),
        (ChangeMessage("1-0", "hole"), True),
    ],
)
def test_which_routes_a_message_may_concern(given: ChangeMessage, concerned: bool) -> None:
    assert given.may_concern({"T1"}, {"b2"}) is concerned
