"""The changes of a redis-namesrv as Server-Sent Events, over reconnects."""

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Iterable
from typing import Any, Final

import httpx
import msgspec

from mqns.changes.messages import ChangeMessage
from mqns.errors import ClientError, ConfigError
from rocketmq_remoting.typed import decoded

__all__ = ["ChangeStream", "ChangesUnavailable"]

log = logging.getLogger(__name__)

EVENT_STREAM: Final = "text/event-stream"
SILENT_S: Final = 45.0
"""A server has a heartbeat each 15 s."""
RETRY_S: Final = 1.0
RETRY_MOST_S: Final = 30.0
BEGUN: Final = "begun"
AGAIN: Final = frozenset({429, 500, 502, 503, 504})
"""Statuses of servers, and of proxies before them, that will be others later."""


class ChangesUnavailable(ClientError):
    """The server has no changes for this caller: it refuses, or is none that sends them."""


class ChangeStream:
    """What is recorded behind `after`, or from the first connection on, for ever. In the latter case the first message
    is a reset, `begun`: what is read then lacks no change that is not sent.

    `position` is behind the last message; another stream may begin there. Filters are those of `/v1/watch`."""

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        after: str | None = None,
        topic: str | None = None,
        broker: str | None = None,
        cluster: str | None = None,
        kinds: Iterable[str] = (),
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """`url` is that of the HTTP side, `http://host:8080`. Raises ConfigError for no such URL."""
        try:
            self._url: Final = httpx.URL(url.rstrip("/") + "/v1/watch")
        except httpx.InvalidURL as error:
            raise ConfigError(f"{url!r} is no URL: {error}") from None
        if self._url.scheme not in ("http", "https") or not self._url.host:
            raise ConfigError(f"{url!r} is no URL of a name server; expected http://host:port")
        wanted = {"topic": topic, "broker": broker, "cluster": cluster, "kind": ",".join(kinds) or None}
        self._parameters = {name: text for name, text in wanted.items() if text is not None}
        self._headers = {"Accept": EVENT_STREAM, "Accept-Encoding": "identity"}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"
        self._transport = transport
        self._retry_s = RETRY_S
        self.position = after
        self.connected = False
        """Whether what is recorded now would be sent."""

    async def messages(self) -> AsyncIterator[ChangeMessage]:
        """Yield messages for ever; where the connection ends, go on behind the last one.

        Raises ChangesUnavailable where no later attempt would do better."""
        failures = 0
        while True:
            try:
                async for message in self._connection():
                    failures = 0
                    yield message
                failures = 0
                pause_s = self._retry_s
            except httpx.HTTPError as error:
                failures += 1
                pause_s = min(RETRY_MOST_S, self._retry_s * 2 ** min(failures - 1, 6))
                log.warning(
                    "%s sends no changes: %s; retried in %g s",
                    self._url,
                    error or type(error).__name__,
                    pause_s,
                )
            finally:
                self.connected = False
            await asyncio.sleep(pause_s * random.uniform(0.9, 1.1))

    async def _connection(self) -> AsyncIterator[ChangeMessage]:
        headers = self._headers | ({} if self.position is None else {"Last-Event-ID": self.position})
        timeout = httpx.Timeout(10.0, read=SILENT_S)
        async with (
            httpx.AsyncClient(
                timeout=timeout, transport=self._transport or httpx.AsyncHTTPTransport()
            ) as client,
            client.stream("GET", self._url, params=self._parameters, headers=headers) as response,
        ):
            await self._check(response)
            event: dict[str, str] = {}
            async for line in response.aiter_lines():
                if line:
                    name, _, value = line.partition(": ")
                    event[name] = value
                    continue
                message = self._take(event)
                event = {}
                if message is not None:
                    yield message

    async def _check(self, response: httpx.Response) -> None:
        kind = response.headers.get("Content-Type", "").partition(";")[0]
        if response.status_code == 200 and kind == EVENT_STREAM:
            return
        if response.status_code in AGAIN:
            raise httpx.RemoteProtocolError(f"status {response.status_code}")
        await response.aread()
        raise ChangesUnavailable(f"{self._url}: {_reason(response)}")

    def _take(self, event: dict[str, str]) -> ChangeMessage | None:
        """Take an event; return its message, None where it has only a position."""
        if event.get("retry", "").isdecimal():
            self._retry_s = int(event["retry"]) / 1000
        try:
            message = None if "data" not in event else decoded(event["data"].encode(), ChangeMessage)
        except (msgspec.DecodeError, UnicodeError) as error:
            raise ChangesUnavailable(f"{self._url}: no message of a redis-namesrv: {error}") from None
        if "id" in event:
            if self.position is None and message is None:
                message = ChangeMessage(event["id"], BEGUN)
            self.position = event["id"]
            self.connected = True
        return message


class _Problem(msgspec.Struct):
    detail: str


def _reason(response: httpx.Response) -> str:
    try:
        problem: Any = decoded(response.content, _Problem)
    except (msgspec.DecodeError, UnicodeError):
        return f"status {response.status_code}, and no changes of a redis-namesrv"
    return f"{problem.detail} ({response.status_code})"
