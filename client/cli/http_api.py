"""What commands ask the HTTP side of a redis-namesrv, where the wire has no request for it (docs/http-api.md)."""

from typing import Any, Final, TypeVar

import httpx
import msgspec

from client.errors import CallTimeout, ClientError, ConnectError

T = TypeVar("T")
OK: Final = 200


class HttpRefused(ClientError):
    """The HTTP side answered with an error; the text is its own."""


class _Problem(msgspec.Struct):
    detail: str


class HttpApi:
    """One HTTP side, asked one thing after the other."""

    def __init__(self, url: str, timeout_s: float) -> None:
        self._url = url.rstrip("/")
        self._timeout_s = timeout_s

    def ask(self, shape: type[T], method: str, path: str, body: object = None) -> T:
        """The answer. Raises HttpRefused, ConnectError, CallTimeout."""
        given: dict[str, Any] = {} if body is None else {"json": body}
        try:
            with httpx.Client(timeout=self._timeout_s, transport=httpx.HTTPTransport()) as client:
                answer = client.request(method, f"{self._url}{path}", **given)
        except httpx.TimeoutException as error:
            raise CallTimeout(self._url, f"no answer within {self._timeout_s:g} s") from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise ConnectError(self._url, str(error) or type(error).__name__) from error
        try:
            if answer.status_code != OK:
                raise HttpRefused(msgspec.json.decode(answer.content, type=_Problem).detail)
            return msgspec.json.decode(answer.content, type=shape)
        except msgspec.DecodeError:
            reason = f"status {answer.status_code}, and no answer of a redis-namesrv"
            raise HttpRefused(f"{self._url}: {reason}") from None
