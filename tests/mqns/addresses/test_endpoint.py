"""The HTTP endpoint: what is asked, what counts as an answer. Some of it over real sockets."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import httpx
import pytest

from mqns.addresses.endpoint import BODY_MAX_BYTES, AddressEndpoint, endpoint_url
from testbed.virtual_time import now, run

URL = "http://127.0.0.1:8080/rocketmq/nsaddr"
Fetched = tuple[str, ...] | None


def said(text: str | bytes, status: int = 200) -> httpx.Response:
    """An answer that was not read yet, as real ones are."""
    body = text.encode() if isinstance(text, str) else text
    return httpx.Response(status, headers={"Location": f"{URL}-other"}, stream=httpx.ByteStream(body))


def fetched(handler: Callable[[httpx.Request], httpx.Response | Awaitable[httpx.Response]]) -> Fetched:
    """What a fetch gives when the endpoint answers so."""
    endpoint = AddressEndpoint(URL, transport=httpx.MockTransport(handler), now_ms=lambda: 1700000000000)  # type: ignore[arg-type]
    return run(endpoint.fetch())


@pytest.mark.parametrize(
    ("properties", "unit", "parameters", "url"),
    [
        ({}, None, {}, "http://jmenv.tbsite.net:8080/rocketmq/nsaddr"),
        ({}, "", {}, "http://jmenv.tbsite.net:8080/rocketmq/nsaddr"),
        ({"rocketmq.namesrv.domain": "ns"}, None, {}, "http://ns:8080/rocketmq/nsaddr"),
        ({"rocketmq.namesrv.domain": "ns:80"}, None, {}, "http://ns:80/rocketmq/nsaddr"),
        (
            {"rocketmq.namesrv.domain": "ns", "rocketmq.namesrv.domain.subgroup": "other"},
            "u",
            {},
            "http://ns:8080/rocketmq/other-u?nofix=1",
        ),
        ({"rocketmq.namesrv.domain": "ns"}, "u", {"k": "v"}, "http://ns:8080/rocketmq/nsaddr-u?nofix=1&k=v"),
        ({"rocketmq.namesrv.domain": "ns"}, None, {"k": "a b"}, "http://ns:8080/rocketmq/nsaddr?k=a+b"),
    ],
)
def test_the_url(properties: dict[str, str], unit: str | None, parameters: dict[str, str], url: str) -> None:
    assert endpoint_url(properties, unit=unit, parameters=parameters) == url


def test_the_request_is_as_javas() -> None:
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return said("a:9876")

    assert fetched(answer) == ("a:9876",)
    (request,) = asked
    assert (request.method, str(request.url)) == ("GET", URL)
    assert request.headers["Client-Version"] == "V5_5_0"
    assert request.headers["Content-Type"] == "application/x-www-form-urlencoded;charset=UTF-8"
    assert request.headers["Metaq-Client-RequestTS"] == "1700000000000"


@pytest.mark.parametrize(
    "text",
    [
        "a:9876;b:9876",
        "a:9876;b:9876\n",
        "\r\n a:9876;b:9876 \r\n",
        "a:9876;b:9876\nrest",
        "a:9876;b:9876\r\nrest",
    ],
)
def test_the_first_line_is_the_list(text: str) -> None:
    assert fetched(lambda _: said(text)) == ("a:9876", "b:9876")


@pytest.mark.parametrize("status", [201, 204, 301, 302, 307, 404, 500, 503])
def test_any_other_status_is_no_answer_and_no_redirect_is_followed(status: int) -> None:
    asked: list[httpx.URL] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url)
        return said("a:9876", status)

    assert fetched(answer) is None
    assert len(asked) == 1


@pytest.mark.parametrize("text", ["", "\n", "<html>", "a:9876;nonsense", "a" * (BODY_MAX_BYTES + 1)])
def test_what_is_no_list_is_no_answer(text: str, caplog: pytest.LogCaptureFixture) -> None:
    assert fetched(lambda _: said(text)) is None
    assert URL in caplog.text


def test_a_list_in_bytes_of_anything_is_no_answer() -> None:
    assert fetched(lambda _: said(b"\xff\xfe:\x00")) is None


@pytest.mark.parametrize(("text", "logged"), [("refused", "refused"), ("", "ConnectError")])
def test_a_failure_is_no_answer(text: str, logged: str, caplog: pytest.LogCaptureFixture) -> None:
    def answer(_: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError(text)

    assert fetched(answer) is None
    assert f"{URL}: {logged}; the name servers stay" in caplog.text


def test_it_has_three_seconds() -> None:
    async def answer(_: httpx.Request) -> httpx.Response:
        await asyncio.sleep(wait_s)
        return said("a:9876")

    async def timed() -> tuple[Fetched, float]:
        fetched = await AddressEndpoint(URL, transport=httpx.MockTransport(answer)).fetch()
        return fetched, now()

    wait_s = 2.75
    assert run(timed()) == (("a:9876",), 2.75)
    wait_s = 60
    assert run(timed()) == (None, 3)


def test_a_body_without_end_is_read_only_so_far() -> None:
    given = 0

    async def drip() -> AsyncIterator[bytes]:
        nonlocal given
        while True:
            given += 1000
            yield b"a" * 1000

    assert fetched(lambda _: httpx.Response(200, content=drip())) is None
    assert given <= BODY_MAX_BYTES + 1000


def serving(*answers: bytes) -> list[Fetched]:
    """What fetches give from a server that sends these bytes, one for each connection."""

    async def play() -> list[Fetched]:
        left = iter(answers)

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(next(left))
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        endpoint = AddressEndpoint(f"http://127.0.0.1:{port}/rocketmq/nsaddr")
        results = [await endpoint.fetch() for _ in answers]
        server.close()
        await server.wait_closed()
        return [*results, await endpoint.fetch()]

    return asyncio.run(play())


def test_over_real_sockets() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n"
    found, redirected, garbage, cut, refused = serving(
        head + b"a:9876;b:9876\r\n",
        b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n",
        b"\x00\x00\x00\x04 no HTTP at all\r\n\r\n",
        head + b"a:98",
    )
    assert found == ("a:9876", "b:9876")
    assert [redirected, garbage, cut, refused] == [None] * 4
