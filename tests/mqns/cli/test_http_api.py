"""What answers in the place of the HTTP side, and does not end, is no JSON or too much."""

import asyncio
import gzip
import socket
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain, repeat

import msgspec
import pytest
from typer.testing import CliRunner

from mqns.cli import http_api
from mqns.cli.app import app
from mqns.cli.doctor.facts import HttpFacts
from mqns.cli.doctor.http_side import first_http_facts, more_http_facts
from mqns.cli.http_api import HttpApi, HttpError, http_url, without_login
from mqns.errors import CallTimeout, ConfigError, ConnectError

LIMIT_S = 1.0
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
DEEP = b'{"other":' + b"[" * 100_000


class Shape(msgspec.Struct):
    text: str = ""


@contextmanager
def answering(blocks: Callable[[], Iterator[bytes]], pause_s: float) -> Iterator[str]:
    """Yield the URL of a server that answers each request with these blocks."""
    over = threading.Event()

    def answer(peer: socket.socket) -> None:
        with peer, suppress(OSError):
            peer.recv(1 << 16)
            for block in blocks():
                peer.sendall(block)
                if over.wait(pause_s):
                    return

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            over.set()
            listener.shutdown(socket.SHUT_RDWR)


def whole(body: bytes) -> Iterator[bytes]:
    yield HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body


def compressed() -> Iterator[bytes]:
    """64 MB, compressed twice to less than a kilobyte."""
    body = gzip.compress(gzip.compress(bytes(64 << 20)))
    yield HEAD + b"Content-Encoding: gzip, gzip\r\nContent-Length: %d\r\n\r\n" % len(body) + body


def refusing(times: int) -> Callable[[], Iterator[bytes]]:
    """So many answers that a request came too often, and then others."""
    problem = b'{"detail":"too often","type":"urn:redis-namesrv:too-many-requests"}'
    head = b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(problem)
    answers = chain(repeat(head + problem, times), repeat(next(whole(b'{"text":"done"}'))))
    return lambda: iter([next(answers)])


def slow_head() -> Iterator[bytes]:
    yield HEAD
    yield from repeat(b"x")


def slow_body() -> Iterator[bytes]:
    yield HEAD + b"Content-Length: 1000\r\n\r\n"
    yield from repeat(b" ")


def endless_body() -> Iterator[bytes]:
    yield HEAD + b"\r\n"
    yield from repeat(bytes(1 << 16))


@pytest.mark.parametrize(
    ("blocks", "pause_s", "error", "reason"),
    [
        pytest.param(slow_head, LIMIT_S / 5, CallTimeout, "no answer within 1 s", id="slow head"),
        pytest.param(slow_body, LIMIT_S / 5, CallTimeout, "no answer within 1 s", id="slow body"),
        pytest.param(endless_body, 0, ConnectError, "an answer of over 1000000 bytes", id="endless body"),
        pytest.param(
            lambda: whole(b'{"text":"\xff"}'), 0, HttpError, "no answer of a redis-namesrv", id="no UTF-8"
        ),
        pytest.param(lambda: whole(DEEP), 0, HttpError, "no answer of a redis-namesrv", id="deep"),
    ],
)
def test_a_command_ends_with_the_reason(
    blocks: Callable[[], Iterator[bytes]],
    pause_s: float,
    error: type[Exception],
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mqns.cli.http_api.ANSWER_MOST", 1_000_000)
    with answering(blocks, pause_s) as url:
        with pytest.raises(error, match=reason):
            HttpApi(url, LIMIT_S).request(Shape, "GET", "/")
        assert asyncio.run(facts_of(url, LIMIT_S)).failure


def test_what_is_compressed_takes_no_memory() -> None:
    """Its size is not known before all of it is there."""
    (answer,) = compressed()
    with answering(lambda: iter([answer]), 0) as url:
        tracemalloc.start()
        try:
            with pytest.raises(HttpError, match="no answer of a redis-namesrv"):
                HttpApi(url, LIMIT_S).request(Shape, "GET", "/")
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert most < 16 << 20


def test_an_answer_that_does_not_name_the_option_is_no_fault_of_the_command() -> None:
    with answering(lambda: whole(b'{"inForce":{"other":"live"}}'), 0) as url:
        ended = CliRunner().invoke(app, ["config", "set", "key", "value", "--http", url])
    assert (ended.exit_code, ended.stdout) == (0, f"set in {url}: when it is in force is not said\n")


@pytest.mark.parametrize(
    ("millis", "shown"),
    [(0, "1970-01-01 00:00:00Z"), (10**18, str(10**18)), (-(10**18), str(-(10**18)))],
)
def test_a_time_that_no_calendar_has_is_shown_as_its_number(millis: int, shown: str) -> None:
    caller: dict[str, object] = {
        "actor": "a",
        "principal": None,
        "proof": None,
        "roles": [],
        "limits": None,
        "classes": [],
    }
    answer = msgspec.json.encode(caller | {"expiresMillis": millis})
    with answering(lambda: whole(answer), 0) as url:
        ended = CliRunner().invoke(app, ["whoami", "--http", url])
    assert (ended.exit_code, f"expires    {shown}\n" in ended.stdout) == (0, True)


async def facts_of(url: str, timeout_s: float) -> HttpFacts:
    return await more_http_facts(await first_http_facts(url, timeout_s), timeout_s)


def test_a_release_without_a_list_of_drains_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """As without its findings: what it does not say is not known."""
    known = {"/readyz": b'{"nowMillis":1}', "/v1/brokers": b'{"brokers":[],"next":null}'}

    async def asked(
        client: object, timeout_s: float, method: str, path: str, **given: object
    ) -> tuple[int, bytes]:
        return (200, known[path]) if path in known else (404, b'{"detail":"no such path"}')

    monkeypatch.setattr("mqns.cli.doctor.http_side.ask", asked)
    facts = asyncio.run(facts_of("http://0.1:8080", LIMIT_S))
    assert (facts.failure, facts.drains) == (None, None)
    known["/v1/drains"] = b'{"drains":[],"next":null}'
    assert asyncio.run(facts_of("http://0.2:8080", LIMIT_S)).drains == ()


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("localhost", "http://localhost:8080"),
        ("localhost:81", "http://localhost:81"),
        (" 10.0.0.1 ", "http://10.0.0.1:8080"),
        ("::1", "http://[::1]:8080"),
        ("[::1]", "http://[::1]:8080"),
        ("[::1]:81", "http://[::1]:81"),
        ("proxy.example/mq/", "http://proxy.example:8080/mq"),
        ("http://localhost", "http://localhost"),
        ("http://localhost:8080/", "http://localhost:8080"),
        ("https://me:secret@proxy.example/mq", "https://me:secret@proxy.example/mq"),
        ("http://::1", "http://[::1]"),
    ],
)
def test_the_port_may_be_left_out(given: str, url: str) -> None:
    assert http_url(given) == url


def test_a_login_is_taken_out_of_a_url() -> None:
    assert without_login("https://ops:a@b@name:8080/a@b") == "https://name:8080/a@b"
    assert without_login("http://[::1]:8080") == "http://[::1]:8080"


@pytest.mark.parametrize(
    "given",
    [
        *("", " ", ":8080", "localhost:", "localhost:http", "localhost:0", "http://", "http:///x"),
        *("ftp://localhost", "http:localhost", "//localhost", "::1:8080", "lo cal", "a\x1b[31m"),
        *("a?b", "http://a#b"),
    ],
)
def test_what_is_no_url_is_refused(given: str) -> None:
    with pytest.raises(ConfigError, match=r"^--http: .*; expected http://host:port, or host for port 8080$"):
        http_url(given)


def test_what_came_too_often_is_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_api, "AGAIN_AFTER_S", 0.01)
    with answering(refusing(http_api.ATTEMPTS - 1), 0.0) as url:
        assert HttpApi(url, LIMIT_S).request(Shape, "PUT", "/v1/x", {}) == Shape("done")
    with answering(refusing(http_api.ATTEMPTS), 0.0) as url, pytest.raises(HttpError, match="too often"):
        HttpApi(url, LIMIT_S).request(Shape, "PUT", "/v1/x", {})
