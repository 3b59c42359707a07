"""TLS under gunicorn: modes, client certificates, certificates that change."""

import socket
import ssl
import struct
from pathlib import Path

import pytest

from testbed.eventually import eventually
from tests.worker.transport.certificates import Authority
from tests.worker.transport.client import Server, insecure, request, serving
from tests.worker.transport.echo_worker import ECHO

pytestmark = pytest.mark.usefixtures("transport")

PROXY = b"PROXY TCP4 1.2.3.4 5.6.7.8 1111 9876\r\n"


def plain_is_answered(server: Server) -> bool:
    with server.connect() as client:
        client.send(request(ECHO))
        return client.is_answered()


def tls_is_answered(server: Server, context: ssl.SSLContext | None = None, before: bytes = b"") -> bool:
    try:
        with server.tls(context, before) as client:
            client.send(request(ECHO))
            return client.is_answered()
    except (ssl.SSLError, ConnectionError):
        return False


@pytest.mark.parametrize(
    "before", [pytest.param(b"", id="bare"), pytest.param(PROXY, id="behind a PROXY header")]
)
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_permissive_takes_both(server: Server, version: ssl.TLSVersion, before: bytes) -> None:
    context = insecure()
    context.minimum_version = context.maximum_version = version
    with server.tls(context, before) as client, server.connect() as plain:
        assert client.ask(ECHO, b"b" * 1_000_000).body == b"b" * 1_000_000
        assert plain.ask(ECHO, b"plain").body == b"plain"
        if before:
            assert client.about()["address"] == "1.2.3.4:1111"


def test_a_tls_client_that_sends_close_notify_gets_one_back(server: Server) -> None:
    with server.tls() as client:
        client.ask(ECHO)
        assert client.tls.unwrap().recv(1) == b""


def test_handshakes_that_break_off_leave_nothing(server: Server) -> None:
    with server.connect() as observer:
        before = observer.about()
        for number in range(100):
            sock = socket.create_connection(server.address)
            sock.sendall(b"\x16\x03\x01\x00\x05hello" if number % 2 else b"\x16\x03\x01\x02\x00\x01")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", number % 3 == 0, 0))
            sock.close()
        eventually(lambda: bool(observer.about()["fds"] <= before["fds"]))


@pytest.mark.parametrize(
    ("mode", "plain", "tls"),
    [
        pytest.param("disabled", True, False, id="disabled"),
        pytest.param("enforcing", False, True, id="enforcing"),
    ],
)
def test_modes(tmp_path: Path, mode: str, plain: bool, tls: bool) -> None:
    with serving(tmp_path, tls=mode == "enforcing", tls_server_mode=mode) as server:
        assert plain_is_answered(server) is plain
        assert tls_is_answered(server) is tls
        assert tls_is_answered(server, before=PROXY) is tls


def test_configured_certificates_are_shown_checked_and_replaced(tmp_path: Path) -> None:
    authority, folder = Authority(), tmp_path / "tls"
    folder.mkdir()
    key, certificate = authority.issue_files(folder, "server", password="secret")
    trust = authority.file(folder)
    properties = folder / "tls.properties"
    properties.write_text(
        f"tls.test.mode.enable=false\ntls.server.keyPath={key}\ntls.server.keyPassword=secret\n"
        f"tls.server.certPath={certificate}\ntls.server.trustCertPath={trust}\n"
        "tls.server.need.client.auth=require\ntls.server.authClient=true\n"
    )
    client_context = ssl.create_default_context(cadata=authority.pem.decode())
    client_context.check_hostname = False
    mine = authority.issue_files(folder, "client")
    client_context.load_cert_chain(mine[1], mine[0])
    with (
        serving(tmp_path / "server", tls_config_file=str(properties)) as server,
        server.tls(client_context) as early,
    ):
        assert early.ask(ECHO, b"known").body == b"known"
        assert not tls_is_answered(server)
        assert plain_is_answered(server)

        first = shown(server, client_context)
        authority.issue_files(folder, "server", password="secret")
        eventually(lambda: shown(server, client_context) != first)
        assert early.ask(ECHO, b"old").body == b"old"

        second = shown(server, client_context)
        Path(certificate).write_text("spoilt")
        Path(key).write_text("spoilt")
        eventually(lambda: "the old certificate stays" in server.log)
        assert shown(server, client_context) == second

        other = Authority("other")
        authority.issue_files(folder, "server", password="secret")
        Path(trust).write_bytes(other.pem)
        eventually(lambda: not tls_is_answered(server, client_context))
        assert early.ask(ECHO, b"still").body == b"still"


def shown(server: Server, context: ssl.SSLContext) -> bytes | None:
    """The certificate that a new connection gets, DER."""
    with server.tls(context) as client:
        client.ask(ECHO)
        return client.tls.getpeercert(binary_form=True)


def test_an_unusable_configuration_leaves_plain_connections(tmp_path: Path) -> None:
    with serving(tmp_path, tls_test_mode_enable=False) as server:
        assert not tls_is_answered(server)
        assert plain_is_answered(server)
        assert "tls.server.certPath" in server.log
