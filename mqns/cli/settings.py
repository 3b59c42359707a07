"""The options of every command, and the context of a command that follows from them."""

import os
import ssl
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import msgspec

from mqns.addresses.sources import ENVIRONMENT, configured_addresses
from mqns.addresses.syntax import parse_addresses
from mqns.cli.http_api import HttpApi
from mqns.cli.output import OutputFormat, Printer
from mqns.errors import AddressError, ConfigError
from mqns.name_server.client import TIMEOUT_S, AsyncNameServerClient, NameServerClient
from mqns.remoting.acl import AclCredentials
from mqns.remoting.credentials import SECRET_KEY, SECURITY_TOKEN
from mqns.remoting.options import RemotingOptions
from mqns.remoting.tls import tls_context

DEFAULT_ADDRESS: Final = "127.0.0.1:9876"
CONNECT_TIMEOUT_S: Final = 3.0
CONCURRENT_CALLS: Final = 64
SECRET_KEY_FILE: Final = "MQNS_SECRET_KEY_FILE"
TLS_KEY_PASSWORD: Final = "MQNS_TLS_KEY_PASSWORD"
TOKEN: Final = "MQNS_TOKEN"
TOKEN_FILE: Final = "MQNS_TOKEN_FILE"
"""Environment variables, those of secrets instead of options, which are visible in lists of processes."""


class Intent(msgspec.Struct, frozen=True):
    """What a command that changes something is to do first: `dry_run` shows what it would change and does nothing;
    `asks` shows that on a terminal, and asks whether to go on."""

    dry_run: bool = False
    asks: bool = False


AT_ONCE: Final = Intent()


class CommonOptions(msgspec.Struct, frozen=True):
    """The options of every command; None: not given."""

    namesrv_addr: str | None = None
    output: OutputFormat | None = None
    timeout: float | None = None
    tls: bool | None = None
    tls_trust: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    tls_insecure: bool | None = None
    access_key: str | None = None
    secret_key_file: Path | None = None
    token_file: Path | None = None
    no_color: bool | None = None

    def overridden(self, by: "CommonOptions") -> "CommonOptions":
        """Return these options, replaced by those given in `by`."""
        members = {name: value for name, value in msgspec.structs.asdict(by).items() if value is not None}
        return msgspec.structs.replace(self, **members)


def named_addresses(source: str, text: str) -> tuple[str, ...]:
    """Return the addresses of a list, one at least. Raises ConfigError, which names the option or argument."""
    try:
        addresses = parse_addresses(text)
    except AddressError as error:
        raise ConfigError(f"{source}: {error}") from None
    if not addresses:
        raise ConfigError(f"{source}: no address in {text!r}")
    return addresses


class CommandContext:
    """Name servers, connection options and output of a command.

    Properties raise ConfigError or AddressError for invalid options."""

    def __init__(
        self, options: CommonOptions, environ: Mapping[str, str] = os.environ, intent: Intent = AT_ONCE
    ) -> None:
        self.intent = intent
        self._options = options
        self._environ = environ
        self.output = Printer(options.output or OutputFormat.TABLE, color=not options.no_color)
        self.timeout_s = TIMEOUT_S if options.timeout is None else options.timeout

    @property
    def given_addresses(self) -> str | None:
        """The value of `-n`."""
        return self._options.namesrv_addr

    @property
    def addresses(self) -> tuple[str, ...]:
        """The name servers, in the order options; one of this machine where none is named."""
        return self.named or (DEFAULT_ADDRESS,)

    @cached_property
    def named(self) -> tuple[str, ...]:
        """The name servers that `-n` or the environment names."""
        given = self._options.namesrv_addr
        if given is not None:
            return named_addresses("-n", given)
        try:
            return tuple(configured_addresses(environ=self._environ) or ())
        except AddressError as error:
            raise ConfigError(f"{ENVIRONMENT}: {error}") from None

    @cached_property
    def options(self) -> RemotingOptions:
        """The options of connections to name servers."""
        return RemotingOptions(
            connect_timeout_s=min(CONNECT_TIMEOUT_S, self.timeout_s),
            tls=self._tls(),
            hooks=self._hooks(),
        )

    def name_server(self) -> NameServerClient:
        """Return a client for a command with sequential calls."""
        return NameServerClient(self.addresses, options=self.options, timeout_s=self.timeout_s)

    def async_name_server(self) -> AsyncNameServerClient:
        """Return a client for a command with concurrent calls."""
        return AsyncNameServerClient(self.addresses, options=self.options, timeout_s=self.timeout_s)

    def async_name_server_at(self, address: str) -> AsyncNameServerClient:
        """Return a client of one of the name servers alone."""
        return AsyncNameServerClient((address,), options=self.options, timeout_s=self.timeout_s)

    def http_api(self, url: str) -> HttpApi:
        """Return the HTTP API at a URL, asked with the token if there is one. Raises ConfigError for no URL."""
        return HttpApi(url, self.timeout_s, self.token)

    @cached_property
    def token(self) -> str | None:
        """The bearer token of requests over HTTP."""
        path = self._options.token_file
        token = self._environ.get(TOKEN, "") if path is None else _read_secret("the token", path)
        if not (token.isascii() and token.isprintable()) or " " in token:
            raise ConfigError("the token: not one word of printable ASCII characters")
        return token or None

    def in_order(self, by_address: Mapping[str, Any]) -> list[tuple[str, Any]]:
        """Return the results of all name servers in the order in which they were given."""
        return [(address, by_address[address]) for address in self.addresses]

    def _tls(self) -> ssl.SSLContext | None:
        options = self._options
        if not options.tls:
            if options.tls_trust or options.tls_cert or options.tls_key or options.tls_insecure:
                raise ConfigError("the files of TLS need --tls")
            return None
        if options.tls_key and not options.tls_cert:
            raise ConfigError("--tls-key needs --tls-cert")
        try:
            return tls_context(
                trust=options.tls_trust,
                certificate=options.tls_cert,
                key=options.tls_key,
                key_password=self._environ.get(TLS_KEY_PASSWORD),
                auth_server=not options.tls_insecure,
            )
        except OSError as error:
            raise ConfigError(f"TLS: {error}") from error

    def _hooks(self) -> tuple[AclCredentials, ...]:
        if self._options.access_key is None:
            return ()
        secret = self._secret()
        if not secret:
            raise ConfigError(f"--access-key needs --secret-key-file or the variable {SECRET_KEY}")
        return (AclCredentials(self._options.access_key, secret, self._environ.get(SECURITY_TOKEN)),)

    def _secret(self) -> str | None:
        path = self._options.secret_key_file
        return self._environ.get(SECRET_KEY) if path is None else _read_secret("the secret key", path)


def _read_secret(what: str, path: Path) -> str:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{what}: {error}") from error
