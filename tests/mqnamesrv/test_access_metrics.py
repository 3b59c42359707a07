"""What a running server counts of credentials that are over, and when the first of those in force ends."""

import ssl
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import httpx
import pytest
from cryptography import x509

from access.tokens import NewToken, new_token
from registry.options.catalogue import BY_KEY
from testbed.connection import Closed, Connection
from testbed.eventually import eventually
from tests.conformance.test_access_certificates import Authority
from tests.conformance.test_access_keys import signed
from tests.mqnamesrv.process import NameServer
from tests.mqnamesrv.test_metrics import value

KEY_ENDS, TOKEN_ENDS = 4_000_000_000, 4_000_000_100
SECRETS = {"old": "old-secret-0123456", "new": "new-secret-0123456"}
LOOKUP = 105


def at(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"


class Guarded(NamedTuple):
    """A server, and what its callers show."""

    server: NameServer
    authority: Authority
    over: NewToken

    def result(self, operation: str, result: str) -> float:
        return value(self.server, "security_events_total", operation=operation, result=result)

    def end(self, kind: str) -> float:
        return value(self.server, "access_expiry_timestamp_seconds", kind=kind)

    def lookup(self, secret: str, tls: ssl.SSLContext | None = None) -> int:
        command = signed(LOOKUP, {"topic": "T"}, secret=SECRETS[secret])
        connection = Connection(self.server.port, tls=tls)
        connection.send_command(command)
        return int(connection.receive().code)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("access")
    authority, over, good = Authority(folder / "tls"), new_token(), new_token()
    (folder / "access.toml").write_text(
        f"""
        [principals.client]
        roles = ["reader"]
        keys = [{{ accessKey = "K", secrets = [
            {{ file = "old", expires = {at(time.time() - 60)} }}, {{ file = "new", expires = {at(KEY_ENDS)} }}] }}]
        certificates = ["dns:client.example"]
        [principals.console]
        roles = ["reader"]
        tokens = [
            {{ id = "{over.id}", hash = "sha256:{over.digest.reveal()}", expires = {at(time.time() - 60)} }},
            {{ id = "{good.id}", hash = "sha256:{good.digest.reveal()}", expires = {at(TOKEN_ENDS)} }}]
        """
    )
    for name, secret in SECRETS.items():
        (folder / name).write_text(secret)
    for file in folder.iterdir():
        if file.is_file():
            file.chmod(0o600)
    options = authority.files.server_properties | {
        **{"tls.server.need.client.auth": "optional", "accessRead": "signed mtls token"},
        "accessFile": str(folder / "access.toml"),
    }
    env = {BY_KEY[key].env: text for key, text in options.items()}
    with NameServer(folder, MQNS_REMOTING_WORKERS="1", MQNS_HTTP_WORKERS="1", **env) as server:
        yield Guarded(server, authority, over)


def grows(counted: Callable[[], float], act: Callable[[], object]) -> None:
    """Do something, and have it counted once."""
    before = counted()
    act()
    eventually(lambda: counted() == before + 1, 10)


def test_expired_credentials_are_counted_as_expired(guarded: Guarded) -> None:
    grows(lambda: guarded.result("authn", "allowed"), lambda: guarded.lookup("new"))
    grows(lambda: guarded.result("authn", "expired"), lambda: guarded.lookup("old"))
    shown = {"Authorization": f"Bearer {guarded.over.token.reveal()}"}
    whoami = f"http://127.0.0.1:{guarded.server.http_port}/v1/whoami"
    grows(
        lambda: guarded.result("authn", "expired"),
        lambda: httpx.get(whoami, headers=shown, timeout=30),
    )
    assert guarded.result("authn", "denied") == 0


def test_tls_sessions_are_counted_also_those_with_an_expired_certificate(guarded: Guarded) -> None:
    good = guarded.authority.client("x", x509.DNSName("client.example"))
    grows(lambda: guarded.result("tls", "allowed"), lambda: guarded.lookup("new", good))
    over = guarded.authority.client("x", x509.DNSName("client.example"), ends=-timedelta(hours=1))

    def refused() -> None:
        with pytest.raises((ssl.SSLError, Closed, ConnectionError)):
            guarded.lookup("new", over)

    grows(lambda: guarded.result("tls", "expired"), refused)
    assert guarded.result("tls", "denied") == 0


def test_the_first_ends_of_keys_tokens_and_certificates(guarded: Guarded) -> None:
    eventually(lambda: (guarded.end("key"), guarded.end("token")) == (KEY_ENDS, TOKEN_ENDS), 10)
    shown = Connection(
        guarded.server.port,
        tls=guarded.authority.client("x", x509.DNSName("client.example"), ends=timedelta(hours=5)),
    )
    assert shown.usable()
    eventually(lambda: guarded.end("cert") == pytest.approx(time.time() + 5 * 3600, abs=600), 10)
    shown.close()
    eventually(lambda: guarded.end("cert") == float("inf"), 10)
