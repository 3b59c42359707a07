"""An HTTP endpoint that tells the addresses of the name servers (RocketMQ TopAddressing).

Needs httpx: `pip install redis-namesrv[client]`."""

import asyncio
import logging
import re
import time
from collections.abc import Callable, Mapping
from typing import Final

import httpx

from client.addresses.syntax import parse_addresses
from client.errors import AddressError
from remoting.version import CURRENT, version_name

log = logging.getLogger(__name__)

DOMAIN: Final = "jmenv.tbsite.net"
SUBGROUP: Final = "nsaddr"
DOMAIN_PROPERTY: Final = "rocketmq.namesrv.domain"
SUBGROUP_PROPERTY: Final = "rocketmq.namesrv.domain.subgroup"
TIMEOUT_S: Final = 3.0
BODY_MOST: Final = 1 << 16
"""Bytes of a body that are looked at: a list of 2,000 addresses."""
_LINE_END: Final = re.compile(r"[\r\n]")


def endpoint_url(
    properties: Mapping[str, str] | None = None,
    *,
    unit: str | None = None,
    parameters: Mapping[str, str] | None = None,
) -> str:
    """`http://jmenv.tbsite.net:8080/rocketmq/nsaddr`, with the domain and subgroup that the properties name.

    With a unit name `…/nsaddr-<unit>?nofix=1`; `parameters` are added to the query (5.x)."""
    properties = properties or {}
    domain = properties.get(DOMAIN_PROPERTY, DOMAIN)
    authority = domain if ":" in domain else f"{domain}:8080"
    url = f"http://{authority}/rocketmq/{properties.get(SUBGROUP_PROPERTY, SUBGROUP)}"
    query = {"nofix": "1"} if unit else {}
    query |= parameters or {}
    return (f"{url}-{unit}" if unit else url) + (f"?{httpx.QueryParams(query)}" if query else "")


class AddressEndpoint:
    """Asks `url` for the list.

    `transport` is what httpx sends requests with, `now_ms` the wall clock that requests tell."""

    def __init__(
        self,
        url: str,
        *,
        timeout_s: float = TIMEOUT_S,
        transport: httpx.AsyncBaseTransport | None = None,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self.url = url
        self._timeout_s = timeout_s
        self._transport = transport
        self._now_ms = now_ms

    async def fetch(self) -> tuple[str, ...] | None:
        """The list; None, which the log explains, when there is no usable answer within the time: keep the old one."""
        try:
            async with asyncio.timeout(self._timeout_s):
                text = await self._text()
            addresses = parse_addresses(text)
        except TimeoutError:
            log.warning("%s: no answer within %g s", self.url, self._timeout_s)
        except (httpx.HTTPError, httpx.InvalidURL, AddressError) as error:
            log.warning("%s: %s", self.url, error or type(error).__name__)
        else:
            if addresses:
                return addresses
            log.warning("%s: an empty list", self.url)
        return None

    async def _text(self) -> str:
        """The first line of the answer; an httpx.HTTPError for any status but 200."""
        headers = {
            "Accept-Encoding": "identity",  # what is compressed cannot be bounded before it is read
            "Client-Version": version_name(CURRENT),
            "Content-Type": "application/x-www-form-urlencoded;charset=UTF-8",
            "Metaq-Client-RequestTS": str(self._now_ms()),
        }
        transport = self._transport or httpx.AsyncHTTPTransport()
        async with (
            httpx.AsyncClient(transport=transport, timeout=self._timeout_s) as client,
            client.stream("GET", self.url, headers=headers) as answer,
        ):
            if answer.status_code != httpx.codes.OK:
                raise httpx.HTTPStatusError(
                    f"status {answer.status_code}", request=answer.request, response=answer
                )
            body = b""
            async for piece in answer.aiter_raw():
                body += piece
                if len(body) >= BODY_MOST:
                    break
        return _LINE_END.split(body[:BODY_MOST].decode("utf-8", "replace").strip(), maxsplit=1)[0]
