"""The client and the user of a request that came through a trusted proxy (httpTrustedProxies, httpUserHeader), and
whether a request came through any.

Werkzeug's ProxyFix counts proxies, and believes the headers of any peer: of one that reaches the port without the
proxy, and of one behind fewer proxies. Here a header counts only from an address in the networks. `Forwarded`
(RFC 7239) is not read: a proxy that sets one of the two passes on what a client wrote in the other. That a header is
there at all is believed of any peer: it can only take rights."""

import logging
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from registry.options.catalogue import Options
from registry.options.networks import Network, address_of, is_in, networks_of
from worker.logs.rate_limited_log import RateLimitedLog

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

__all__ = ["FORWARDED", "HOPS_MOST", "USER_MOST", "Client", "TrustedProxies", "client_of", "user_of"]

FORWARDED: Final = "redis-namesrv.forwarded"
"""Key of a request's environ: whether a proxy has passed it on, so that its peer is not where it comes from."""
BY_PROXIES: Final = (
    *("HTTP_X_FORWARDED_FOR", "HTTP_FORWARDED", "HTTP_VIA"),
    *("HTTP_X_FORWARDED_HOST", "HTTP_X_FORWARDED_PROTO", "HTTP_X_FORWARDED_PORT", "HTTP_X_REAL_IP"),
    *("HTTP_X_FORWARDED_SERVER", "HTTP_X_FORWARDED_PREFIX", "HTTP_X_FORWARDED_CLIENT_CERT"),
    *("HTTP_X_CLIENT_IP", "HTTP_TRUE_CLIENT_IP", "HTTP_CF_CONNECTING_IP", "HTTP_X_ENVOY_EXTERNAL_ADDRESS"),
)
"""Headers that proxies add, as WSGI names them, whatever their case. Spelt with `_` gunicorn drops them all."""

HOPS_MOST: Final = 16
"""Addresses of X-Forwarded-For that are looked at, the last ones."""
USER_MOST: Final = 256
"""Characters of a user's name."""
PORT_MAX: Final = 65_535
ADDRESS: Final = re.compile(
    r"\[(?P<v6>[0-9a-fA-F:.]{2,45})\](:(?P<port6>[0-9]{1,5}))?"
    r"|(?P<v4>[0-9.]{7,15})(:(?P<port4>[0-9]{1,5}))?"
    r"|(?P<bare>[0-9a-fA-F:.]{2,45})"
)

log = RateLimitedLog(logging.getLogger(__name__))


class Client(NamedTuple):
    """The host of a client as an address, and its port, "" where that is not known."""

    host: str
    port: str


class TrustedProxies:
    """Hands an application requests with their client as REMOTE_ADDR and REMOTE_PORT, their user as REMOTE_USER; and
    says of all whether a proxy has passed them on (FORWARDED)."""

    def __init__(self, application: "WSGIApplication", options: Options) -> None:
        self._application = application
        self._networks = networks_of(options.http_trusted_proxies)
        name = options.http_user_header
        self._user_key = f"HTTP_{name.upper().replace('-', '_')}" if name else ""

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        """Answer a request."""
        environ[FORWARDED] = any(header in environ for header in BY_PROXIES)
        if is_in(environ.get("REMOTE_ADDR", ""), self._networks):
            self._believe(environ)
        return self._application(environ, start_response)

    def _believe(self, environ: "WSGIEnvironment") -> None:
        client = client_of(environ.get("HTTP_X_FORWARDED_FOR", ""), self._networks)
        if client is not None:
            environ["REMOTE_ADDR"], environ["REMOTE_PORT"] = client
        text = environ.get(self._user_key, "")
        if not text:
            return
        user = user_of(text)
        if user is not None:
            environ["REMOTE_USER"] = user
        else:
            log.warning(
                "a user that a proxy named for %s was ignored: a name has 1 to %d printable characters in UTF-8 and is "
                "no address; correct what the proxy sends",
                environ["REMOTE_ADDR"],
                USER_MOST,
            )


def client_of(forwarded_for: str, networks: Iterable[Network]) -> Client | None:
    """Return the last address of an X-Forwarded-For that is in none of the networks; where all are, or what stands
    before is no address, the first one that is known to be a proxy's. None without any.

    A trusted proxy wrote the last address, and each trusted address the one before it; all else a client may have."""
    client = None
    for part in reversed(forwarded_for.rsplit(",", HOPS_MOST)[-HOPS_MOST:]):
        sent_by = _address(part.strip())
        if sent_by is None:
            break
        client = sent_by
        if not is_in(client.host, networks):
            break
    return client


def user_of(text: str) -> str | None:
    """Return the user's name in a header's value, which WSGI has in Latin-1; None if it can be no actor.

    A name that reads as an address would pass for a client without a user."""
    try:
        name = text.strip().encode("latin-1").decode()
    except UnicodeError:
        return None
    if not 0 < len(name) <= USER_MOST or not name.isprintable() or _address(name) is not None:
        return None
    return name


def _address(text: str) -> Client | None:
    """Return what `10.0.0.5`, `10.0.0.5:41210`, `fd00::5`, `[fd00::5]` or `[fd00::5]:41210` name, else None."""
    match = ADDRESS.fullmatch(text)
    if match is None:
        return None
    address = address_of(match["v6"] or match["v4"] or match["bare"])
    port = match["port6"] or match["port4"] or "0"
    if address is None or int(port) > PORT_MAX:
        return None
    return Client(str(address), str(int(port)) if int(port) else "")
