"""The HTTP endpoint with the list of name servers (RocketMQ TopAddressing).

Needs httpx: the extra `http` of mqns."""

import asyncio
import logging
import re
import time
from collections.abc import Callable, Mapping
from typing import Final

import httpx

from mqns.addresses.syntax import parse_addresses
from mqns.errors import AddressError
from rocketmq_remoting.version import CURRENT, version_name

log = logging.getLogger(__name__)

DOMAIN: Final = "jmenv.tbsite.net"
SUBGROUP: Final = "nsaddr"
DOMAIN_PROPERTY: Final = "rocketmq.namesrv.domain"
SUBGROUP_PROPERTY: Final = "rocketmq.namesrv.domain.subgroup"
TIMEOUT_S: Final = 3.0
BODY_MAX_BYTES: Final = 1 << 16
"""Most bytes of a body that are read: a list of 2,000 addresses."""
_LINE_END: Final = re.compile(r"[\r\n]")


def endpoint_url(
    properties: Mapping[str, str] | None = None,
    *,
    unit: str | None = None,
    parameters: Mapping[str, str] | None = None,
) -> str:
    """Return `http://jmenv.tbsite.net:8080/rocketmq/nsaddr`, with domain and subgroup of the properties.

    With a unit name `…/nsaddr-<unit>?nofix=1`; `parameters` are added to the query (5.x)."""
    properties = properties or {}
    domain = properties.get(DOMAIN_PROPERTY, DOMAIN)
    authority = domain if ":" in domain else f"{domain}:8080"
    url = f"http://{authority}/rocketmq/{properties.get(SUBGROUP_PROPERTY, SUBGROUP)}"
    query = {"nofix": "1"} if unit else {}
    query |= parameters or {}
    return (f"{url}-{unit}" if unit else url) + (f"?{httpx.QueryParams(query)}" if query else "")


class AddressEndpoint:
    """Fetches the list from `url`.

    `transport` is httpx's; `now_ms` is the wall clock, which is sent in a header."""

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
        """Return the list, or None without a usable response within the timeout; the reason is logged."""
        try:
            async with asyncio.timeout(self._timeout_s):
                text = await self._text()
            addresses = parse_addresses(text, default_port=None)  # any page of a proxy would be a host
        except TimeoutError:
            log.warning(
                "%s: no response within %g s; the name servers stay as they are", self.url, self._timeout_s
            )
        except (httpx.HTTPError, httpx.InvalidURL, AddressError) as error:
            reason = str(error) or type(error).__name__
            log.warning("%s: %s; the name servers stay as they are", self.url, reason)
        else:
            if addresses:
                return addresses
            log.warning("%s: an empty list; the name servers stay as they are", self.url)
        return None

    async def _text(self) -> str:
        """Return the first line of the response; httpx.HTTPError for any status but 200."""
        headers = {
            "Accept-Encoding": "identity",  # the size of a compressed body is not bounded
            "Client-Version": version_name(CURRENT),
            "Content-Type": "application/x-www-form-urlencoded;charset=UTF-8",
            "Metaq-Client-RequestTS": str(self._now_ms()),
        }
        transport = self._transport or httpx.AsyncHTTPTransport()
        async with (
            httpx.AsyncClient(transport=transport, timeout=self._timeout_s) as client,
            client.stream("GET", self.url, headers=headers) as response,
        ):
            if response.status_code != httpx.codes.OK:
                raise httpx.HTTPStatusError(
                    f"status {response.status_code}", request=response.request, response=response
                )
            body = b""
            async for block in response.aiter_raw():
                body += block
                if len(body) >= BODY_MAX_BYTES:
                    break
        return _LINE_END.split(body[:BODY_MAX_BYTES].decode("utf-8", "replace").strip(), maxsplit=1)[0]
