"""Requests to the HTTP API of redis-namesrv, for commands without a RocketMQ request (docs/http-api.md)."""

from typing import Any, Final, TypeVar
from urllib.parse import quote

import httpx
import msgspec

from mqns.errors import CallTimeout, ClientError, ConnectError

T = TypeVar("T")
OK: Final = 200


class HttpError(ClientError):
    """The HTTP API responded with an error; the text is its own."""


class _Problem(msgspec.Struct):
    detail: str


def name_in_path(name: str) -> str:
    """Return a name as a part of a path; `=` before it keeps what is empty or dots from being taken out."""
    return ("" if name.strip(".") else "=") + quote(name, safe="")


class HttpApi:
    """The HTTP API at one URL; requests are made one after the other."""

    def __init__(self, url: str, timeout_s: float) -> None:
        self._url = url.rstrip("/")
        self._timeout_s = timeout_s

    def request(self, shape: type[T], method: str, path: str, body: object = None) -> T:
        """Return the response as `shape`. Raises HttpError, ConnectError, CallTimeout."""
        given: dict[str, Any] = {} if body is None else {"json": body}
        try:
            with httpx.Client(timeout=self._timeout_s, transport=httpx.HTTPTransport()) as client:
                response = client.request(method, f"{self._url}{path}", **given)
        except httpx.TimeoutException as error:
            raise CallTimeout(self._url, f"no answer within {self._timeout_s:g} s") from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise ConnectError(self._url, str(error) or type(error).__name__) from error
        try:
            if response.status_code != OK:
                raise HttpError(msgspec.json.decode(response.content, type=_Problem).detail)
            return msgspec.json.decode(response.content, type=shape)
        except msgspec.DecodeError:
            reason = f"status {response.status_code}, and no answer of a redis-namesrv"
            raise HttpError(f"{self._url}: {reason}") from None
