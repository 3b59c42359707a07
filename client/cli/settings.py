"""The options of every command, and what they come to: whom to ask, how, and where to print."""

import os
import ssl
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import msgspec

from client.addresses.sources import configured_addresses
from client.cli.output import Form, Output
from client.errors import ConfigError
from client.name_server.client import TIMEOUT_S, AsyncNameServer, NameServer
from client.wire.acl import AclCredentials
from client.wire.options import RemotingOptions
from client.wire.tls import client_context

DEFAULT_ADDRESS: Final = "127.0.0.1:9876"
CONNECT_TIMEOUT_S: Final = 3.0
SECRET_KEY: Final = "MQNS_SECRET_KEY"
SECURITY_TOKEN: Final = "MQNS_SECURITY_TOKEN"
TLS_KEY_PASSWORD: Final = "MQNS_TLS_KEY_PASSWORD"
"""Environment variables for what is not to be seen in a list of processes."""


class Given(msgspec.Struct, frozen=True):
    """The options of every command as they were given; None: not at all."""

    namesrv_addr: str | None = None
    output: Form | None = None
    timeout: float | None = None
    tls: bool | None = None
    tls_trust: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    tls_insecure: bool | None = None
    access_key: str | None = None
    secret_key_file: Path | None = None
    no_color: bool | None = None

    def overridden(self, by: "Given") -> "Given":
        """These, where the others were not given."""
        members = {name: value for name, value in msgspec.structs.asdict(by).items() if value is not None}
        return msgspec.structs.replace(self, **members)


class Settings:
    """What a command works with. Raises ConfigError or AddressError, when used, for options that make no sense."""

    def __init__(self, given: Given, environ: Mapping[str, str] = os.environ) -> None:
        self._given = given
        self._environ = environ
        self.output = Output(given.output or Form.TABLE, color=not given.no_color)
        self.timeout_s = TIMEOUT_S if given.timeout is None else given.timeout

    @property
    def given_addresses(self) -> str | None:
        """What `-n` says."""
        return self._given.namesrv_addr

    @cached_property
    def addresses(self) -> tuple[str, ...]:
        """The name servers, in the order given."""
        return configured_addresses(self._given.namesrv_addr, environ=self._environ) or (DEFAULT_ADDRESS,)

    @cached_property
    def options(self) -> RemotingOptions:
        """How name servers are spoken to."""
        return RemotingOptions(
            connect_timeout_s=min(CONNECT_TIMEOUT_S, self.timeout_s),
            tls=self._tls(),
            hooks=self._hooks(),
        )

    def name_server(self) -> NameServer:
        """The name servers for a command that asks one thing after the other."""
        return NameServer(self.addresses, options=self.options, timeout_s=self.timeout_s)

    def async_name_server(self) -> AsyncNameServer:
        """The name servers for a command that asks many things at once."""
        return AsyncNameServer(self.addresses, options=self.options, timeout_s=self.timeout_s)

    def in_order(self, by_address: Mapping[str, Any]) -> list[tuple[str, Any]]:
        """Results of all name servers, in the order in which these were given."""
        return [(address, by_address[address]) for address in self.addresses]

    def _tls(self) -> ssl.SSLContext | None:
        given = self._given
        if not given.tls:
            if given.tls_trust or given.tls_cert or given.tls_key or given.tls_insecure:
                raise ConfigError("the files of TLS need --tls")
            return None
        if given.tls_key and not given.tls_cert:
            raise ConfigError("--tls-key needs --tls-cert")
        try:
            return client_context(
                trust=given.tls_trust,
                certificate=given.tls_cert,
                key=given.tls_key,
                key_password=self._environ.get(TLS_KEY_PASSWORD),
                auth_server=not given.tls_insecure,
            )
        except OSError as error:
            raise ConfigError(f"TLS: {error}") from error

    def _hooks(self) -> tuple[AclCredentials, ...]:
        if self._given.access_key is None:
            return ()
        secret = self._secret()
        if not secret:
            raise ConfigError(f"--access-key needs --secret-key-file or the variable {SECRET_KEY}")
        return (AclCredentials(self._given.access_key, secret, self._environ.get(SECURITY_TOKEN)),)

    def _secret(self) -> str | None:
        path = self._given.secret_key_file
        if path is None:
            return self._environ.get(SECRET_KEY)
        try:
            return path.read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"the secret key: {error}") from error
