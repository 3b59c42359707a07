"""Requests to the HTTP API of redis-namesrv, for commands without a RocketMQ request (docs/http-api.md)."""

import asyncio
import ssl
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Annotated, Any, Final, Protocol, TypeVar
from urllib.parse import quote

import httpx
import msgspec
import typer

from mqns.addresses.syntax import check_address, with_port
from mqns.errors import AddressError, CallTimeout, ClientError, ConfigError, ConnectError
from rocketmq_remoting.typed import decoded

T = TypeVar("T")
P = TypeVar("P", bound="Page")
SCHEMES: Final = ("http", "https")
OK: Final = 200
TOO_MANY: Final = 429
ATTEMPTS: Final = 4
AGAIN_AFTER_S: Final = 1.0
"""The Retry-After of a redis-namesrv, which did nothing (docs/http-api.md, Rates)."""
HTTP_PORT: Final = 8080
"""The port of the HTTP side, where neither a port nor a scheme is given."""
ANSWER_MOST: Final = 64 << 20
"""Bytes of an answer; a page of 1,000 brokers has some hundred thousand."""
WHAT_IS_IT_S: Final = 2.0
"""How long is waited for HTTP where no name server answered."""
PAGES_MAX: Final = 100
AS_IT_IS: Final = {"Accept-Encoding": "identity"}
"""How an answer is asked for, and read: one compressed twice has a thousand times a thousand bytes for one."""
NO_HEADERS: Final[Mapping[str, str]] = {}
VARIABLE: Final = "MQNS_HTTP"
Http = Annotated[
    str,
    typer.Option(
        "--http", help="HTTP side of a redis-namesrv", metavar="URL", envvar=VARIABLE, show_default=False
    ),
]
HttpIfAny = Annotated[
    str | None,
    typer.Option(
        "--http",
        help="HTTP side of a redis-namesrv, which knows what brokers are drained",
        metavar="URL",
        envvar=VARIABLE,
        show_default=False,
    ),
]


class HttpError(ClientError):
    """The HTTP API responded with an error; the text is its own.

    `kind` is the end of the problem's type, such as `broker-not-found`; "" without one."""

    def __init__(self, text: str, kind: str = "") -> None:
        super().__init__(text)
        self.kind = kind


class Page(Protocol):
    """A page of a list; `next` is the name after which the rest begins, None on the last."""

    @property
    def next(self) -> str | None: ...


class _Problem(msgspec.Struct):
    detail: str
    type: str = ""


class _Ready(msgspec.Struct, rename="camel"):
    now_millis: int


def http_url(given: str) -> str:
    """Return the URL of an HTTP side: `http://localhost:8080` for `localhost`; one with a scheme as it is.

    Raises ConfigError for what is no such URL."""
    text = given.strip()
    scheme, has_scheme, rest = text.partition("://") if "://" in text else ("http", "", text)
    authority, _, path = rest.rstrip("/").partition("/")
    login, at, host = authority.rpartition("@")
    try:
        address = with_port(host, HTTP_PORT)
        if scheme.lower() not in SCHEMES or not set(text).isdisjoint("?#\\"):
            raise AddressError(f"{given!r} is no URL of a name server")
        check_address(address)
    except AddressError as error:
        raise ConfigError(
            f"--http: {error}; expected http://host:port, or host for port {HTTP_PORT}"
        ) from None
    if has_scheme:
        address = host if address.startswith(host) else address.removesuffix(f":{HTTP_PORT}")
    return f"{scheme}://{login}{at}{address}" + (path and f"/{path}")


def without_login(url: str) -> str:
    """Return an `http_url` without the login that it may have."""
    scheme, separator, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    return f"{scheme}{separator}{authority.rpartition('@')[2]}{slash}{path}"


def bearer(token: str | None) -> Mapping[str, str]:
    """Return the header that shows a token, none without one."""
    return NO_HEADERS if token is None else {"Authorization": f"Bearer {token}"}


def is_etag(text: str) -> bool:
    """Return whether a text can be sent as an entity tag: it has a character, and all are of printable ASCII."""
    return text.isascii() and text.isprintable() and text.strip() != ""


def name_in_path(name: str) -> str:
    """Return a name as a part of a path; `=` before it keeps what is empty or dots from being taken out."""
    return ("" if name.strip(".") else "=") + quote(name, safe="")


async def ask(
    client: httpx.AsyncClient, timeout_s: float, method: str, path: str, **given: Any
) -> tuple[int, bytes]:
    """Return status and body of an answer that comes whole in that time, however slowly. Raises httpx.HTTPError."""
    body = bytearray()
    try:
        async with (
            asyncio.timeout(timeout_s),
            client.stream(method, path, headers=AS_IT_IS, **given) as response,
        ):
            async for block in response.aiter_raw():
                body += block
                if len(body) > ANSWER_MOST:
                    raise httpx.ReadError(f"an answer of over {ANSWER_MOST} bytes")
            return response.status_code, bytes(body)
    except TimeoutError:
        raise httpx.ReadTimeout(f"no whole answer within {timeout_s:g} s") from None


async def http_status(address: str) -> int | None:
    """Return the status of an answer to `GET /healthz` at host:port, None where no HTTP is spoken."""
    try:
        check_address(address)
        async with httpx.AsyncClient(transport=httpx.AsyncHTTPTransport(), timeout=WHAT_IS_IT_S) as client:
            status, _ = await ask(client, WHAT_IS_IT_S, "GET", f"http://{address}/healthz")
    except (httpx.HTTPError, httpx.InvalidURL, AddressError):
        return None
    return status


def decode(body: bytes, shape: Any) -> Any:
    """Return JSON as `shape`. Raises msgspec.DecodeError, whatever the body is."""
    try:
        return decoded(body, shape)
    except (UnicodeDecodeError, RecursionError) as error:
        raise msgspec.DecodeError(str(error)) from error


class HttpApi:
    """The HTTP API at one URL; requests are made one after the other, and again where they came too often. Raises
    ConfigError for no URL."""

    def __init__(self, url: str, timeout_s: float, token: str | None = None) -> None:
        self.url = http_url(url)
        self._timeout_s = timeout_s
        self._headers = bearer(token)

    def request(self, shape: type[T], method: str, path: str, body: object = None) -> T:
        """Return the response as `shape`. Raises HttpError, ConnectError, CallTimeout."""
        return self.request_tagged(shape, method, path, body)[0]

    def request_tagged(
        self,
        shape: type[T],
        method: str,
        path: str,
        body: object = None,
        conditions: Mapping[str, str] = NO_HEADERS,
    ) -> tuple[T, str]:
        """Return the response to a request under these conditions (headers), and its ETag, "" without one.

        Raises HttpError, also where a condition does not hold; ConnectError, CallTimeout."""
        given: dict[str, Any] = {} if body is None else {"json": body}
        try:
            status, answer, etag = asyncio.run(self._ask(method, path, conditions, **given))
        except httpx.TimeoutException as error:
            raise CallTimeout(self.url, f"no answer within {self._timeout_s:g} s") from error
        except httpx.RemoteProtocolError as error:
            raise ConnectError(self.url, f"{error} Is it the HTTP port?") from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise ConnectError(self.url, str(error) or type(error).__name__) from error
        try:
            if status != OK:
                problem = decode(answer, _Problem)
                raise HttpError(problem.detail, problem.type.rpartition(":")[2])
            found: T = decode(answer, shape)
        except msgspec.DecodeError:
            reason = f"status {status}, and no answer of a redis-namesrv"
            raise HttpError(f"{self.url}: {reason}") from None
        return found, etag

    def pages(self, shape: type[P], path: str) -> Iterator[P]:
        """Yield the pages of a list, whose path has a query already.

        Raises HttpError also for over PAGES_MAX pages; ConnectError, CallTimeout."""
        after = ""
        for _ in range(PAGES_MAX):
            page = self.request(shape, "GET", f"{path}&after={quote(after, safe='')}")
            yield page
            if page.next is None:
                return
            after = page.next
        raise HttpError(f"{self.url}{path}: over {PAGES_MAX} pages")

    def now_millis(self) -> int:
        """Return the time by the clock of the server's store. Raises HttpError also where the server is not ready."""
        return self.request(_Ready, "GET", "/readyz").now_millis

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        """The certificates that are trusted; reading them takes longer than most requests."""
        return httpx.create_ssl_context()

    async def _ask(
        self, method: str, path: str, conditions: Mapping[str, str], **given: Any
    ) -> tuple[int, bytes, str]:
        etags: list[str] = []

        async def take_etag(response: httpx.Response) -> None:
            etags.append(response.headers.get("ETag", ""))

        transport = httpx.AsyncHTTPTransport(verify=self._tls)
        async with httpx.AsyncClient(
            timeout=self._timeout_s,
            transport=transport,
            headers={**self._headers, **conditions},
            event_hooks={"response": [take_etag]},
        ) as client:
            for left in reversed(range(ATTEMPTS)):
                status, body = await ask(client, self._timeout_s, method, f"{self.url}{path}", **given)
                if status != TOO_MANY or not left:
                    break
                await asyncio.sleep(AGAIN_AFTER_S)
        return status, body, etags[-1]
